package podspec

// This file applies user patches, and checks what they must leave alone.

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	psapi "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/kustomize/api/filters/patchjson6902"
	"sigs.k8s.io/kustomize/api/filters/patchstrategicmerge"
	"sigs.k8s.io/kustomize/kyaml/kio"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
)

// InvalidError says in a sentence for the user which rule the settings broke.
type InvalidError struct{ Sentence string }

func (e *InvalidError) Error() string { return e.Sentence }

func invalid(format string, args ...any) error {
	return &InvalidError{Sentence: fmt.Sprintf(format, args...)}
}

// patchable is what patches apply to.
type patchable interface {
	*corev1.Pod | *corev1.PersistentVolumeClaim
}

// applyPatches gives the object with the patches of its kind applied, in their order; without any, the object itself.
func applyPatches[T patchable](object T, patches []api.Patch) (T, error) {
	kind := kindOf(object)
	patches = slices.DeleteFunc(slices.Clone(patches), func(p api.Patch) bool { return p.Target != kind })
	if len(patches) == 0 {
		return object, nil
	}
	text, err := yaml.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("the %s has no YAML form: %w", kind, err)
	}
	for i, p := range patches {
		if text, err = applyPatch(text, kind, p.Patch); err != nil {
			return nil, invalid("patch %d of the %s cannot be applied: %s", i+1, kind, oneLine(err))
		}
	}
	var patched T
	if err := yaml.UnmarshalStrict(text, &patched); err != nil {
		return nil, invalid("the patched %s is not a valid one: %s", kind, oneLine(err))
	}
	return patched, nil
}

func kindOf[T patchable](object T) string {
	if _, ok := any(object).(*corev1.Pod); ok {
		return "Pod"
	}
	return "PersistentVolumeClaim"
}

// applyPatch applies one patch: a list is JSON 6902 operations, a mapping a strategic merge.
func applyPatch(text []byte, kind, patch string) ([]byte, error) {
	target, err := kyaml.Parse(string(text))
	if err != nil {
		return nil, err
	}
	filter, err := filterOf(kind, patch)
	if err != nil {
		return nil, err
	}
	nodes, err := filter.Filter([]*kyaml.RNode{target})
	if err != nil {
		return nil, err
	}
	if len(nodes) != 1 {
		return nil, errors.New("it deletes the whole object")
	}
	out, err := nodes[0].String()
	return []byte(out), err
}

func filterOf(kind, patch string) (kio.Filter, error) {
	node, err := kyaml.Parse(patch)
	if err != nil {
		return nil, err
	}
	switch node.YNode().Kind {
	case kyaml.SequenceNode:
		return patchjson6902.Filter{Patch: strings.TrimSpace(patch)}, nil
	case kyaml.MappingNode:
		// The merge finds the keys of lists by the kind.
		node.SetApiVersion("v1")
		node.SetKind(kind)
		return patchstrategicmerge.Filter{Patch: node}, nil
	default:
		return nil, errors.New("a patch is a mapping (strategic merge) or a list (JSON 6902 operations)")
	}
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// checkPod checks the patched pod against the one that was built: whatever a patch does, the pod stays this person's, within
// the restricted Pod Security standard, and its agent finds home, token and environment.
func checkPod(want, got *corev1.Pod) error {
	checks := []func(want, got *corev1.Pod) error{checkIdentity, checkAccount, checkAgent, checkMounts, checkSecurity}
	for _, check := range checks {
		if err := check(want, got); err != nil {
			return err
		}
	}
	return nil
}

func checkIdentity(want, got *corev1.Pod) error {
	if _, taken := got.Annotations[api.AnnotationPodHash]; taken {
		return invalid("a patch of the Pod must leave the annotation %s alone", api.AnnotationPodHash)
	}
	return sameIdentity("Pod", want.ObjectMeta, got.ObjectMeta)
}

func checkAccount(want, got *corev1.Pod) error {
	if got.Spec.ServiceAccountName != want.Spec.ServiceAccountName {
		return invalid("a patch of the Pod must leave serviceAccountName %s alone", want.Spec.ServiceAccountName)
	}
	if got.Spec.AutomountServiceAccountToken == nil || *got.Spec.AutomountServiceAccountToken {
		return invalid("a patch of the Pod must leave automountServiceAccountToken false: agents have no access to the Kubernetes API")
	}
	for _, v := range got.Spec.Volumes {
		if v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
			if source.ServiceAccountToken != nil {
				return invalid("volume %s projects a service account token: agents have no access to the Kubernetes API", v.Name)
			}
		}
	}
	if grace := got.Spec.TerminationGracePeriodSeconds; grace == nil || *grace < GracePeriodSeconds {
		return invalid("a patch of the Pod must leave terminationGracePeriodSeconds at %d or more", GracePeriodSeconds)
	}
	if got.Spec.RestartPolicy != want.Spec.RestartPolicy {
		return invalid("a patch of the Pod must leave restartPolicy %s alone", want.Spec.RestartPolicy)
	}
	return nil
}

func checkAgent(want, got *corev1.Pod) error {
	agent := agentContainer(got)
	if agent == nil {
		return invalid("a patch of the Pod must keep the container %s", contract.ContainerName)
	}
	for _, env := range agentContainer(want).Env {
		if !ownName(env.Name) {
			continue
		}
		same := func(e corev1.EnvVar) bool { return e.Name == env.Name && e.Value == env.Value && e.ValueFrom == nil }
		named := func(e corev1.EnvVar) bool { return e.Name == env.Name }
		if !slices.ContainsFunc(agent.Env, same) || count(agent.Env, named) != 1 {
			return invalid("a patch of the Pod must leave the variable %s alone", env.Name)
		}
	}
	security := agent.SecurityContext
	if security == nil || security.ReadOnlyRootFilesystem == nil || !*security.ReadOnlyRootFilesystem {
		return invalid("the container %s must keep readOnlyRootFilesystem: home is the only place that lasts", contract.ContainerName)
	}
	return nil
}

// ownName says whether a variable is the operator's own, which neither user nor patch may set.
func ownName(name string) bool {
	return name == contract.EnvHome || strings.HasPrefix(name, "BULLPEN_")
}

// checkMounts checks that home and token are where the agent looks for them, that nothing lies over them, and that no other
// container sees the token.
func checkMounts(want, got *corev1.Pod) error {
	for _, name := range []string{contract.HomeVolume, contract.TokenVolume} {
		named := func(v corev1.Volume) bool { return v.Name == name }
		w, g := slices.IndexFunc(want.Spec.Volumes, named), slices.IndexFunc(got.Spec.Volumes, named)
		if g < 0 || !apiequality.Semantic.DeepEqual(want.Spec.Volumes[w], got.Spec.Volumes[g]) {
			return invalid("a patch of the Pod must leave the volume %s alone", name)
		}
	}
	agent := agentContainer(got)
	for at, volume := range map[string]string{contract.HomePath: contract.HomeVolume, contract.TokenPath: contract.TokenVolume} {
		mounted := func(m corev1.VolumeMount) bool { return path.Clean(m.MountPath) == at }
		i := slices.IndexFunc(agent.VolumeMounts, mounted)
		if count(agent.VolumeMounts, mounted) != 1 || agent.VolumeMounts[i].Name != volume || agent.VolumeMounts[i].SubPath != "" ||
			agent.VolumeMounts[i].SubPathExpr != "" {
			return invalid("%s must be mounted at %s in the container %s, and nothing else there: choose another mountPath",
				volume, at, contract.ContainerName)
		}
	}
	under := func(m corev1.VolumeMount) bool {
		return strings.HasPrefix(path.Clean(m.MountPath), contract.TokenPath+"/")
	}
	if slices.ContainsFunc(agent.VolumeMounts, under) {
		return invalid("nothing may be mounted below %s: choose another mountPath", contract.TokenPath)
	}
	for _, c := range append(slices.Clone(got.Spec.InitContainers), got.Spec.Containers...) {
		token := func(m corev1.VolumeMount) bool { return m.Name == contract.TokenVolume }
		if c.Name != contract.ContainerName && slices.ContainsFunc(c.VolumeMounts, token) {
			return invalid("container %s must not mount the volume %s: the token is the agent's alone", c.Name, contract.TokenVolume)
		}
	}
	return nil
}

// evaluator has the checks of the Pod Security standards, as the API server's own admission has them.
var evaluator = mustEvaluator()

func mustEvaluator() policy.Evaluator {
	e, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		panic(fmt.Sprintf("podspec: the checks of the Pod Security standards contradict themselves: %v", err))
	}
	return e
}

func checkSecurity(_, got *corev1.Pod) error {
	restricted := psapi.LevelVersion{Level: psapi.LevelRestricted, Version: psapi.LatestVersion()}
	result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &got.ObjectMeta, &got.Spec))
	if !result.Allowed {
		return invalid("the pod must keep to the restricted Pod Security standard: %s", result.ForbiddenDetail())
	}
	return nil
}

func agentContainer(pod *corev1.Pod) *corev1.Container {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == contract.ContainerName {
			return &pod.Spec.Containers[i]
		}
	}
	return nil
}

func count[T any](list []T, is func(T) bool) int {
	n := 0
	for _, e := range list {
		if is(e) {
			n++
		}
	}
	return n
}
