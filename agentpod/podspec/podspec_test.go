package podspec_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/agentpod/podspec"
	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files")

var operator = podspec.Operator{Image: "bullpen-agent:test", OfficeURL: "https://bullpen-office.bullpen.svc:8443"}

func ada() *api.Person {
	return &api.Person{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "dev", Name: "ada", UID: "11111111-2222-3333-4444-555555555555",
			Labels: map[string]string{"argocd.argoproj.io/instance": "not-to-be-copied"},
		},
		Spec: api.PersonSpec{Team: "core"},
	}
}

func everything() api.AgentSettings {
	return api.AgentSettings{
		Image:            "example.com/agent:2",
		ImagePullPolicy:  corev1.PullAlways,
		ImagePullSecrets: []api.ObjectName{"pull"},
		Runtime:          api.RuntimeClaude,
		Model:            "some-model",
		Command:          []string{"sh", "-c", "echo $(date) $HOME"},
		Resources: &corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
		},
		Home: &api.HomeSettings{
			Size: ptr(resource.MustParse("1Gi")), StorageClassName: ptr("fast"), AccessMode: corev1.ReadWriteOnce, Retention: api.DeleteHome,
		},
		Env:              []api.EnvVar{{Name: "PLAIN", Value: "value"}, {Name: "HOME", Value: "/elsewhere"}, {Name: "BULLPEN_TEAM", Value: "x"}},
		Secrets:          []api.SecretUse{{Name: "git", MountPath: "/var/run/secrets/git"}, {Name: "llm", EnvPrefix: "LLM_"}},
		NodeSelector:     map[string]string{"disk": "ssd"},
		Tolerations:      []corev1.Toleration{{Key: "agents", Operator: corev1.TolerationOpExists}},
		RuntimeClassName: "gvisor",
		Patches: []api.Patch{
			{Target: "Pod", Patch: "spec:\n  containers:\n  - name: agent\n    resources:\n      limits:\n        memory: 3Gi\n"},
			{Target: "Pod", Patch: "- op: add\n  path: /metadata/annotations\n  value: {example.com/scrape: \"true\"}\n"},
			{Target: "PersistentVolumeClaim", Patch: "metadata:\n  labels:\n    backup: daily\n"},
		},
	}
}

func TestGolden(t *testing.T) {
	for name, settings := range map[string]api.AgentSettings{"small": {}, "full": everything()} {
		t.Run(name, func(t *testing.T) {
			person, settings := ada(), podspec.Settings(api.AgentSettings{}, settings)
			pod, err := podspec.Pod(person, settings, operator)
			if err != nil {
				t.Fatal(err)
			}
			home, err := podspec.Home(person, settings)
			if err != nil {
				t.Fatal(err)
			}
			var documents []string
			for _, object := range []any{
				podspec.Secret(person, "the-token", []byte("the-ca")), podspec.ServiceAccount(person), home, pod,
			} {
				text, err := yaml.Marshal(object)
				if err != nil {
					t.Fatal(err)
				}
				documents = append(documents, string(text))
			}
			got := strings.Join(documents, "---\n")
			file := filepath.Join("testdata", name+".yaml")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v (write it with -update)", err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("want -, got + (write anew with -update):\n%s", diff)
			}
		})
	}
}

func TestHash(t *testing.T) {
	hash := func(person *api.Person, settings api.AgentSettings, operator podspec.Operator) string {
		t.Helper()
		pod, err := podspec.Pod(person, podspec.Settings(api.AgentSettings{}, settings), operator)
		if err != nil {
			t.Fatal(err)
		}
		return pod.Annotations[api.AnnotationPodHash]
	}
	base := hash(ada(), everything(), operator)
	tests := map[string]struct {
		change  func(p *api.Person, s *api.AgentSettings, o *podspec.Operator)
		another bool
	}{
		"the same again":                  {change: func(*api.Person, *api.AgentSettings, *podspec.Operator) {}},
		"the user's labels do not matter": {change: func(p *api.Person, _ *api.AgentSettings, _ *podspec.Operator) { p.Labels = nil }},
		"a display name does not matter":  {change: func(p *api.Person, _ *api.AgentSettings, _ *podspec.Operator) { p.Spec.DisplayName = "Ada" }},
		"suspend does not matter":         {change: func(p *api.Person, _ *api.AgentSettings, _ *podspec.Operator) { p.Spec.Suspend = true }},
		"the same quantity written otherwise": {change: func(_ *api.Person, s *api.AgentSettings, _ *podspec.Operator) {
			s.Resources.Limits[corev1.ResourceCPU] = resource.MustParse("2000m")
		}},
		"another image":   {another: true, change: func(_ *api.Person, s *api.AgentSettings, _ *podspec.Operator) { s.Image = "example.com/agent:3" }},
		"another model":   {another: true, change: func(_ *api.Person, s *api.AgentSettings, _ *podspec.Operator) { s.Model = "x" }},
		"another command": {another: true, change: func(_ *api.Person, s *api.AgentSettings, _ *podspec.Operator) { s.Command = []string{"x"} }},
		"another office":  {another: true, change: func(_ *api.Person, _ *api.AgentSettings, o *podspec.Operator) { o.OfficeURL = "https://other:1" }},
		"a patch less":    {another: true, change: func(_ *api.Person, s *api.AgentSettings, _ *podspec.Operator) { s.Patches = s.Patches[1:] }},
		"a home that only grows": {change: func(_ *api.Person, s *api.AgentSettings, _ *podspec.Operator) {
			s.Home.Size = ptr(resource.MustParse("9Gi"))
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			person, settings, operator := ada(), everything(), operator
			test.change(person, &settings, &operator)
			if changed := hash(person, settings, operator) != base; changed != test.another {
				t.Errorf("the hash changed: %v", changed)
			}
		})
	}
}

func TestHashIsThatOfTheBuiltPodWhateverTheServerFillsIn(t *testing.T) {
	pod, err := podspec.Pod(ada(), podspec.Settings(api.AgentSettings{}, everything()), operator)
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	var back corev1.Pod
	if err := yaml.UnmarshalStrict(text, &back); err != nil {
		t.Fatal(err)
	}
	if back.Annotations[api.AnnotationPodHash] == "" || pod.Annotations["example.com/scrape"] != "true" {
		t.Errorf("the annotations are %v", back.Annotations)
	}
}

func TestPatchesMayNotBreakTheRules(t *testing.T) {
	const container = "spec:\n  containers:\n  - name: agent\n"
	tests := map[string]struct {
		target, patch string
		// broken is part of the sentence; empty where the patch is fine.
		broken string
	}{
		"a label more":                      {patch: "metadata:\n  labels:\n    a: b\n"},
		"more memory":                       {patch: container + "    resources:\n      limits:\n        memory: 8Gi\n"},
		"a cache volume beside the home":    {patch: "spec:\n  volumes:\n  - name: cache\n    emptyDir: {}\n  containers:\n  - name: agent\n    volumeMounts:\n    - name: cache\n      mountPath: /cache\n"},
		"a careful sidecar":                 {patch: "- op: add\n  path: /spec/containers/-\n  value: {name: proxy, image: proxy:1, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}\n"},
		"a longer grace period":             {patch: "spec:\n  terminationGracePeriodSeconds: 600\n"},
		"another name":                      {patch: "metadata:\n  name: other\n", broken: "name and namespace"},
		"another namespace":                 {patch: "metadata:\n  namespace: other\n", broken: "name and namespace"},
		"another person's label":            {patch: "metadata:\n  labels:\n    bullpen.dev/person: bob\n", broken: "label bullpen.dev/person=ada"},
		"no label of ours":                  {patch: "- op: remove\n  path: /metadata/labels\n", broken: "label"},
		"another owner":                     {patch: "- op: remove\n  path: /metadata/ownerReferences\n", broken: "owner references"},
		"a finalizer":                       {patch: "metadata:\n  finalizers: [example.com/x]\n", broken: "finalizers"},
		"a hash of its own":                 {patch: "metadata:\n  annotations:\n    bullpen.dev/pod-hash: x\n", broken: "bullpen.dev/pod-hash"},
		"another service account":           {patch: "spec:\n  serviceAccountName: admin\n", broken: "serviceAccountName"},
		"a service account token":           {patch: "spec:\n  automountServiceAccountToken: true\n", broken: "automountServiceAccountToken"},
		"a projected service account token": {patch: "spec:\n  volumes:\n  - name: t\n    projected:\n      sources:\n      - serviceAccountToken: {path: token}\n", broken: "service account token"},
		"no restarts":                       {patch: "spec:\n  restartPolicy: Never\n", broken: "restartPolicy"},
		"a shorter grace period":            {patch: "spec:\n  terminationGracePeriodSeconds: 5\n", broken: "terminationGracePeriodSeconds"},
		"no agent":                          {patch: "- op: replace\n  path: /spec/containers/0/name\n  value: other\n", broken: "container agent"},
		"another home in the environment":   {patch: container + "    env:\n    - name: HOME\n      value: /tmp\n", broken: "variable HOME"},
		"another office":                    {patch: container + "    env:\n    - name: BULLPEN_OFFICE_URL\n      value: https://evil\n", broken: "variable BULLPEN_OFFICE_URL"},
		"a variable given twice":            {patch: "- op: add\n  path: /spec/containers/0/env/-\n  value: {name: HOME, value: /x}\n", broken: "variable HOME"},
		"another claim as home":             {patch: "spec:\n  volumes:\n  - name: home\n    persistentVolumeClaim:\n      claimName: bob-home\n", broken: "volume home"},
		"another Secret as token":           {patch: "spec:\n  volumes:\n  - name: bullpen-agent\n    secret:\n      secretName: bob-agent\n", broken: "volume bullpen-agent"},
		"something mounted over the token":  {patch: "spec:\n  containers:\n  - name: agent\n    volumeMounts:\n    - name: tmp\n      mountPath: /var/run/bullpen/\n", broken: "bullpen-agent must be mounted at /var/run/bullpen"},
		"something mounted below the token": {patch: "- op: add\n  path: /spec/containers/0/volumeMounts/-\n  value: {name: tmp, mountPath: /var/run/bullpen/x}\n", broken: "below /var/run/bullpen"},
		"a sidecar that sees the token":     {patch: "- op: add\n  path: /spec/containers/-\n  value: {name: spy, image: spy:1, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}, volumeMounts: [{name: bullpen-agent, mountPath: /token}]}\n", broken: "container spy must not mount"},
		"a writable root":                   {patch: container + "    securityContext:\n      readOnlyRootFilesystem: false\n", broken: "readOnlyRootFilesystem"},
		"root":                              {patch: "spec:\n  securityContext:\n    runAsUser: 0\n", broken: "runAsUser=0"},
		"root in the container":             {patch: container + "    securityContext:\n      runAsNonRoot: false\n", broken: "runAsNonRoot"},
		"privilege escalation":              {patch: container + "    securityContext:\n      allowPrivilegeEscalation: true\n", broken: "allowPrivilegeEscalation"},
		"a privileged container":            {patch: container + "    securityContext:\n      privileged: true\n", broken: "privileged"},
		"a capability":                      {patch: container + "    securityContext:\n      capabilities:\n        add: [SYS_ADMIN]\n", broken: "capabilities"},
		"no seccomp profile":                {patch: "spec:\n  securityContext:\n    seccompProfile:\n      type: Unconfined\n", broken: "seccomp"},
		"the host's network":                {patch: "spec:\n  hostNetwork: true\n", broken: "host namespaces"},
		"a folder of the host":              {patch: "spec:\n  volumes:\n  - name: host\n    hostPath:\n      path: /\n", broken: "hostPath"},
		"a careless sidecar":                {patch: "- op: add\n  path: /spec/containers/-\n  value: {name: proxy, image: proxy:1}\n", broken: "proxy"},
		"a field that does not exist":       {patch: "spec:\n  nonsense: 1\n", broken: "not a valid one"},
		"an operation on nothing":           {patch: "- op: replace\n  path: /spec/nowhere/x\n  value: 1\n", broken: "patch 1 of the Pod cannot be applied"},
		"no YAML":                           {patch: "spec: [", broken: "patch 1 of the Pod cannot be applied"},
		"a word":                            {patch: "hello", broken: "a patch is a mapping"},
		"the whole pod deleted":             {patch: "$patch: delete\n", broken: "deletes the whole object"},
		"the home's label":                  {target: "PersistentVolumeClaim", patch: "metadata:\n  labels:\n    app.kubernetes.io/managed-by: me\n", broken: "label app.kubernetes.io/managed-by=bullpen"},
		"the home's mark":                   {target: "PersistentVolumeClaim", patch: "metadata:\n  annotations:\n    bullpen.dev/home-of: bob\n", broken: "bullpen.dev/home-of"},
		"the home's owner":                  {target: "PersistentVolumeClaim", patch: "metadata:\n  ownerReferences:\n  - {apiVersion: v1, kind: ConfigMap, name: x, uid: y}\n", broken: "owner references"},
		"the home's size":                   {target: "PersistentVolumeClaim", patch: "spec:\n  resources:\n    requests:\n      storage: 77Gi\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			target := test.target
			if target == "" {
				target = "Pod"
			}
			settings := podspec.Settings(api.AgentSettings{}, api.AgentSettings{Patches: []api.Patch{{Target: target, Patch: test.patch}}})
			_, err := podspec.Pod(ada(), settings, operator)
			if target != "Pod" {
				if err != nil {
					t.Fatalf("the pod is refused for a patch of the home: %v", err)
				}
				_, err = podspec.Home(ada(), settings)
			}
			if test.broken == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			var invalid *podspec.InvalidError
			if !errors.As(err, &invalid) || !strings.Contains(err.Error(), test.broken) {
				t.Errorf("want a sentence with %q, got %v", test.broken, err)
			}
		})
	}
}

func TestSettingsMayNotBreakTheRules(t *testing.T) {
	for _, path := range []string{contract.TokenPath, contract.HomePath, contract.HomePath + "/", contract.TokenPath + "/below"} {
		settings := podspec.Settings(api.AgentSettings{}, api.AgentSettings{Secrets: []api.SecretUse{{Name: "git", MountPath: path}}})
		var invalid *podspec.InvalidError
		if _, err := podspec.Pod(ada(), settings, operator); !errors.As(err, &invalid) {
			t.Errorf("a Secret mounted at %s gives %v", path, err)
		}
	}
}

func TestAPatchedPodTakesOverWhatThePatchSays(t *testing.T) {
	settings := podspec.Settings(api.AgentSettings{}, everything())
	pod, err := podspec.Pod(ada(), settings, operator)
	if err != nil {
		t.Fatal(err)
	}
	agent := pod.Spec.Containers[0]
	if agent.Resources.Limits.Memory().String() != "3Gi" || agent.Resources.Limits.Cpu().String() != "2" {
		t.Errorf("the limits are %v", agent.Resources.Limits)
	}
	home, err := podspec.Home(ada(), settings)
	if err != nil {
		t.Fatal(err)
	}
	if home.Labels["backup"] != "daily" || len(home.OwnerReferences) != 1 {
		t.Errorf("the home is %v", home.ObjectMeta)
	}
}
