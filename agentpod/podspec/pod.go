package podspec

// This file builds the agent's pod.

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
)

const (
	// userID is the uid, gid and fsGroup of every agent.
	userID int64 = 10001
	// GracePeriodSeconds is how long a pod may take to end after SIGTERM; agentGraceSeconds is the agent's part of it.
	GracePeriodSeconds int64 = 60
	agentGraceSeconds  int64 = GracePeriodSeconds - 10
)

// Operator is what the operator itself puts into every pod.
type Operator struct {
	// Image runs where neither person nor team names one.
	Image string
	// OfficeURL is where agents reach the office, for example https://bullpen-office.bullpen.svc:8443.
	OfficeURL string
}

// Pod is the agent's pod, patched, checked, and annotated with the hash of all that it was made of: where the annotation of a
// running pod differs, the pod is to be replaced. The live spec is never compared, because the API server and webhooks fill it
// in. An error is an *InvalidError with a sentence for the user.
//
// credentials name the Secrets that the team's repositories ask for.
func Pod(person *api.Person, settings api.AgentSettings, operator Operator, credentials ...api.ObjectName) (*corev1.Pod, error) {
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: meta(person, AgentName(person.Name)),
		Spec:       podSpec(person, settings, operator, distinct(credentials)),
	}
	want := pod.DeepCopy()
	pod, err := applyPatches(pod, settings.Patches)
	if err != nil {
		return nil, err
	}
	if err := checkPod(want, pod); err != nil {
		return nil, err
	}
	hash, err := podHash(pod)
	if err != nil {
		return nil, err
	}
	if pod.Annotations == nil {
		pod.Annotations = make(map[string]string, 1)
	}
	pod.Annotations[api.AnnotationPodHash] = hash
	return pod, nil
}

// distinct gives the names in order, each once.
func distinct(names []api.ObjectName) []api.ObjectName {
	names = slices.DeleteFunc(slices.Clone(names), func(n api.ObjectName) bool { return n == "" })
	slices.Sort(names)
	return slices.Compact(names)
}

func podSpec(person *api.Person, settings api.AgentSettings, operator Operator, credentials []api.ObjectName) corev1.PodSpec {
	no, yes, user, grace := false, true, userID, GracePeriodSeconds
	onMismatch := corev1.FSGroupChangeOnRootMismatch
	spec := corev1.PodSpec{
		ServiceAccountName:            AgentName(person.Name),
		AutomountServiceAccountToken:  &no,
		EnableServiceLinks:            &no,
		RestartPolicy:                 corev1.RestartPolicyAlways,
		TerminationGracePeriodSeconds: &grace,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot:        &yes,
			RunAsUser:           &user,
			RunAsGroup:          &user,
			FSGroup:             &user,
			FSGroupChangePolicy: &onMismatch,
			SeccompProfile:      &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers:   []corev1.Container{container(person, settings, operator, credentials)},
		Volumes:      volumes(person, settings, credentials),
		NodeSelector: settings.NodeSelector,
		Tolerations:  settings.Tolerations,
	}
	for _, name := range settings.ImagePullSecrets {
		spec.ImagePullSecrets = append(spec.ImagePullSecrets, corev1.LocalObjectReference{Name: string(name)})
	}
	if settings.RuntimeClassName != "" {
		spec.RuntimeClassName = &settings.RuntimeClassName
	}
	return spec
}

func container(person *api.Person, settings api.AgentSettings, operator Operator, credentials []api.ObjectName) corev1.Container {
	no, yes := false, true
	c := corev1.Container{
		Name:            contract.ContainerName,
		Image:           cmp.Or(settings.Image, operator.Image),
		ImagePullPolicy: settings.ImagePullPolicy,
		Command:         []string{contract.AgentBinary},
		Env:             environment(person, settings, operator, credentials),
		Resources:       *settings.Resources,
		SecurityContext: &corev1.SecurityContext{
			RunAsNonRoot:             &yes,
			AllowPrivilegeEscalation: &no,
			ReadOnlyRootFilesystem:   &yes,
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		VolumeMounts: []corev1.VolumeMount{
			{Name: contract.HomeVolume, MountPath: contract.HomePath},
			{Name: contract.TokenVolume, MountPath: contract.TokenPath, ReadOnly: true},
			{Name: contract.TmpVolume, MountPath: contract.TmpPath},
		},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
	for i, use := range settings.Secrets {
		if use.MountPath != "" {
			c.VolumeMounts = append(c.VolumeMounts,
				corev1.VolumeMount{Name: secretVolume(i), MountPath: use.MountPath, ReadOnly: true})
			continue
		}
		c.EnvFrom = append(c.EnvFrom, corev1.EnvFromSource{
			Prefix:    use.EnvPrefix,
			SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: string(use.Name)}},
		})
	}
	for i, name := range credentials {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{
			Name: credentialsVolume(i), MountPath: contract.GitCredentialsPath + "/" + string(name), ReadOnly: true,
		})
	}
	return c
}

// environment has the contract's variables first. Kubernetes lets env win over envFrom, so no key of a Secret replaces them.
func environment(person *api.Person, settings api.AgentSettings, operator Operator, credentials []api.ObjectName) []corev1.EnvVar {
	env := []corev1.EnvVar{
		{Name: contract.EnvHome, Value: contract.HomePath},
		{Name: contract.EnvTmp, Value: contract.TmpPath},
		{Name: contract.EnvOfficeURL, Value: operator.OfficeURL},
		{Name: contract.EnvNamespace, Value: person.Namespace},
		{Name: contract.EnvTeam, Value: string(person.Spec.Team)},
		{Name: contract.EnvPerson, Value: person.HandleOrName()},
		{Name: contract.EnvTokenFile, Value: contract.TokenPath + "/" + contract.TokenKey},
		{Name: contract.EnvCAFile, Value: contract.TokenPath + "/" + contract.CAKey},
		{Name: contract.EnvGrace, Value: strconv.FormatInt(agentGraceSeconds, 10)},
		{Name: contract.EnvRuntime, Value: string(settings.Runtime)},
	}
	env = append(env, secretsEnv(settings, credentials)...)
	if settings.Model != "" {
		env = append(env, corev1.EnvVar{Name: contract.EnvModel, Value: literal(settings.Model)})
	}
	if len(settings.Command) > 0 {
		command, _ := json.Marshal(settings.Command) // a list of strings always has a JSON form
		env = append(env, corev1.EnvVar{Name: contract.EnvCommand, Value: literal(string(command))})
	}
	for _, e := range settings.Env {
		ours := func(o corev1.EnvVar) bool { return o.Name == e.Name }
		if i := slices.IndexFunc(env, ours); i < 0 {
			env = append(env, corev1.EnvVar{Name: e.Name, Value: literal(e.Value)})
		}
	}
	return env
}

// secretsEnv says where the agent finds the credentials of repositories, and what it has to mask in the records of sessions.
func secretsEnv(settings api.AgentSettings, credentials []api.ObjectName) []corev1.EnvVar {
	var env []corev1.EnvVar
	var files, vars []string
	for _, use := range settings.Secrets {
		if use.MountPath != "" {
			files = append(files, use.MountPath)
		}
	}
	if len(credentials) > 0 {
		env = append(env, corev1.EnvVar{Name: contract.EnvGitCredentials, Value: contract.GitCredentialsPath})
		files = append(files, contract.GitCredentialsPath)
	}
	for _, use := range settings.Secrets {
		if use.MountPath == "" {
			vars = append(vars, use.EnvPrefix+"*")
		}
	}
	if len(vars) > 0 {
		for _, e := range settings.Env {
			vars = append(vars, "!"+e.Name) // plain, for everybody to read
		}
	}
	if len(files) > 0 {
		env = append(env, corev1.EnvVar{Name: contract.EnvSecretFiles, Value: literal(strings.Join(files, ":"))})
	}
	if len(vars) > 0 {
		env = append(env, corev1.EnvVar{Name: contract.EnvSecretVars, Value: literal(strings.Join(vars, ","))})
	}
	return env
}

// literal keeps Kubernetes from replacing $(NAME), and $$, in a value that is meant as it stands.
func literal(value string) string {
	if !strings.Contains(value, "$(") && !strings.Contains(value, "$$") {
		return value
	}
	return strings.ReplaceAll(value, "$", "$$")
}

func volumes(person *api.Person, settings api.AgentSettings, credentials []api.ObjectName) []corev1.Volume {
	readable, tmpSize := int32(0o440), resource.MustParse(TmpSize)
	list := []corev1.Volume{
		{Name: contract.HomeVolume, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: HomeName(person.Name)},
		}},
		{Name: contract.TokenVolume, VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{
				SecretName:  AgentName(person.Name),
				DefaultMode: &readable,
				Items: []corev1.KeyToPath{
					{Key: contract.TokenKey, Path: contract.TokenKey},
					{Key: contract.CAKey, Path: contract.CAKey},
				},
			},
		}},
		{Name: contract.TmpVolume, VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &tmpSize},
		}},
	}
	for i, use := range settings.Secrets {
		if use.MountPath != "" {
			list = append(list, corev1.Volume{Name: secretVolume(i), VolumeSource: corev1.VolumeSource{
				Secret: &corev1.SecretVolumeSource{SecretName: string(use.Name), DefaultMode: &readable},
			}})
		}
	}
	optional := true // a missing Secret keeps git from pushing, not the agent from starting
	for i, name := range credentials {
		list = append(list, corev1.Volume{Name: credentialsVolume(i), VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: string(name), DefaultMode: &readable, Optional: &optional},
		}})
	}
	return list
}

func credentialsVolume(i int) string { return fmt.Sprintf("git-%d", i) }

func secretVolume(i int) string { return fmt.Sprintf("secret-%d", i) }

// podHash identifies everything that a pod is made of. JSON of Kubernetes types is deterministic: fields in order, maps sorted.
func podHash(pod *corev1.Pod) (string, error) {
	text, err := json.Marshal(pod)
	if err != nil {
		return "", fmt.Errorf("the pod has no JSON form: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}
