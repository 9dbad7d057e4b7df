package podspec

// This file joins a team's agent defaults and a person's overrides.

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
)

// Defaults of the settings that neither team nor person gives.
const (
	// DefaultHomeSize is the size of a home.
	DefaultHomeSize = "10Gi"
	// TmpSize bounds the folder for what need not last.
	TmpSize = "2Gi"
)

// Settings are the effective agent settings of a person: the team's, overridden field by field by the person's, with defaults
// filled in. Lists and maps with keys are joined by key; lists without one (command, tolerations, patches) and resources are
// replaced as a whole. The arguments are not changed.
func Settings(team, person api.AgentSettings) api.AgentSettings {
	joined := api.AgentSettings{
		Image:            cmp.Or(person.Image, team.Image),
		ImagePullPolicy:  cmp.Or(person.ImagePullPolicy, team.ImagePullPolicy),
		ImagePullSecrets: joinByKey(team.ImagePullSecrets, person.ImagePullSecrets, func(n api.ObjectName) api.ObjectName { return n }),
		Runtime:          cmp.Or(person.Runtime, team.Runtime, api.RuntimeCommand),
		Model:            cmp.Or(person.Model, team.Model),
		Effort:           cmp.Or(person.Effort, team.Effort),
		FallbackModel:    cmp.Or(person.FallbackModel, team.FallbackModel),
		MaxTurns:         cmp.Or(person.MaxTurns, team.MaxTurns),
		AllowedTools:     firstList(person.AllowedTools, team.AllowedTools),
		Approvals:        cmp.Or(person.Approvals, team.Approvals, api.ApprovalsAllow),
		MCPServers:       joinByKey(team.MCPServers, person.MCPServers, func(s api.MCPServer) string { return s.Name }),
		Command:          firstList(person.Command, team.Command),
		Resources:        cmp.Or(person.Resources, team.Resources, defaultResources()).DeepCopy(),
		Home:             joinHome(team.Home, person.Home),
		Env:              joinByKey(team.Env, person.Env, func(e api.EnvVar) string { return e.Name }),
		Secrets:          joinByKey(team.Secrets, person.Secrets, func(s api.SecretUse) api.ObjectName { return s.Name }),
		Hooks:            joinHooks(team.Hooks, person.Hooks),
		NodeSelector:     joinMaps(team.NodeSelector, person.NodeSelector),
		Tolerations:      firstList(person.Tolerations, team.Tolerations),
		RuntimeClassName: cmp.Or(person.RuntimeClassName, team.RuntimeClassName),
		Patches:          firstList(person.Patches, team.Patches),
	}
	return joined
}

func defaultResources() *corev1.ResourceRequirements {
	return &corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("100m"),
			corev1.ResourceMemory: resource.MustParse("256Mi"),
		},
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")},
	}
}

func joinHome(team, person *api.HomeSettings) *api.HomeSettings {
	size := resource.MustParse(DefaultHomeSize)
	home := api.HomeSettings{Size: &size, AccessMode: corev1.ReadWriteOncePod, Retention: api.RetainHome}
	for _, over := range []*api.HomeSettings{team, person} {
		if over == nil {
			continue
		}
		home.Size = cmp.Or(over.Size, home.Size)
		home.StorageClassName = cmp.Or(over.StorageClassName, home.StorageClassName)
		home.AccessMode = cmp.Or(over.AccessMode, home.AccessMode)
		home.Retention = cmp.Or(over.Retention, home.Retention)
	}
	return home.DeepCopy()
}

func joinHooks(team, person *api.EnvironmentHooks) *api.EnvironmentHooks {
	if team == nil || person == nil {
		return cmp.Or(person, team).DeepCopy()
	}
	joined := &api.EnvironmentHooks{
		BuildBase:       cmp.Or(person.BuildBase, team.BuildBase),
		BuildBaseInputs: team.BuildBaseInputs,
		AfterCheckout:   cmp.Or(person.AfterCheckout, team.AfterCheckout),
		BeforeStart:     cmp.Or(person.BeforeStart, team.BeforeStart),
		OnAct:           cmp.Or(person.OnAct, team.OnAct),
		OnReport:        cmp.Or(person.OnReport, team.OnReport),
	}
	if person.BuildBase != "" || person.BuildBaseInputs != nil { // the inputs are those of the script
		joined.BuildBaseInputs = person.BuildBaseInputs
	}
	return joined.DeepCopy()
}

// joinByKey keeps the order of base, with elements of over in the place of those with the same key, and the rest after them.
func joinByKey[T any, K comparable](base, over []T, key func(T) K) []T {
	joined := slices.Clone(base)
	for _, o := range over {
		same := func(b T) bool { return key(b) == key(o) }
		if at := slices.IndexFunc(joined, same); at >= 0 {
			joined[at] = o
		} else {
			joined = append(joined, o)
		}
	}
	return joined
}

func joinMaps(base, over map[string]string) map[string]string {
	if len(base)+len(over) == 0 {
		return nil
	}
	joined := make(map[string]string, len(base)+len(over))
	maps.Copy(joined, base)
	maps.Copy(joined, over)
	return joined
}

func firstList[T any](lists ...[]T) []T {
	for _, l := range lists {
		if len(l) > 0 {
			return slices.Clone(l)
		}
	}
	return nil
}
