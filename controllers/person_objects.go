package controllers

// This file decides on a person's Secret, ServiceAccount and home, and makes them.

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/agentpod/podspec"
	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// tokenBytes is how much randomness a token holds; minTokenLength is the length of its text, below which it is none of ours.
const (
	tokenBytes     = 32
	minTokenLength = 43
)

// wanted is what there should be for a person.
type wanted struct {
	settings api.AgentSettings
	// problem is why no objects can be made; they stay as they are.
	problem *problem
	// token is the agent's token, empty where it is not known.
	token string
	// steps make the objects other than the pod what they should be.
	steps []step
	// pod is the pod that should run, nil where that cannot be said: then the one that runs, runs on.
	pod *corev1.Pod
}

// step is one write: object is created where old is nil, else patched from old.
type step struct{ old, object client.Object }

// planObjects decides. It is pure but for the token's randomness.
func planObjects(s *personSnapshot, operator podspec.Operator) *wanted {
	w := &wanted{settings: podspec.Settings(teamSettings(s.team), s.person.Spec.Agent)}
	if w.problem = preconditions(s); w.problem != nil {
		if s.secretErr == nil && s.secret != nil && isOurs(s.person, s.secret) {
			w.token = validToken(s.secret)
		}
		return w
	}
	home, err := podspec.Home(s.person, w.settings)
	pod, podErr := podspec.Pod(s.person, w.settings, operator, gitCredentials(s.team)...)
	if err := errors.Join(err, podErr); err != nil {
		w.problem = &problem{reason: api.ReasonInvalidPatch, message: err.Error(), stalled: true}
		w.token = validToken(s.secret)
		return w
	}
	w.token = validToken(s.secret)
	if w.token == "" {
		w.token = newToken()
	}
	w.pod = pod
	w.steps = compact(
		planSecret(s, w.token),
		planAccount(s),
		planHome(s, home),
	)
	return w
}

func teamSettings(team *api.Team) api.AgentSettings {
	if team == nil {
		return api.AgentSettings{}
	}
	return team.Spec.Agent
}

// preconditions says what must be mended before objects of a person can be made or changed.
func preconditions(s *personSnapshot) *problem {
	for _, object := range []client.Object{s.secret, s.account, s.home, s.pod} {
		if reflect.ValueOf(object).IsNil() {
			continue
		}
		if p := foreign(s.person, object); p != nil {
			return p
		}
	}
	switch {
	case s.rival != "":
		return &problem{reason: api.ReasonHandleTaken, stalled: true, message: fmt.Sprintf(
			"Person %s has the handle %s in team %s already; delete it, or make this person anew with another spec.handle.",
			s.rival, s.person.HandleOrName(), s.person.Spec.Team)}
	case s.team == nil:
		return &problem{reason: api.ReasonTeamNotFound, message: fmt.Sprintf(
			"There is no Team %s in namespace %s; the person gets work once there is.", s.person.Spec.Team, s.person.Namespace)}
	case s.secretErr != nil:
		return &problem{reason: api.ReasonSecretUnreadable, message: fmt.Sprintf(
			"Secret %s cannot be read: %v. The pod stays as it is.", podspec.AgentName(s.person.Name), s.secretErr)}
	case s.caErr != nil:
		return &problem{reason: api.ReasonOfficeUnavailable, message: fmt.Sprintf(
			"The office's CA bundle is not there yet: %v", s.caErr)}
	}
	return nil
}

// isOurs says whether an object was made for this very person; a home that stays is marked instead of owned.
func isOurs(person *api.Person, object client.Object) bool {
	if object.GetLabels()[api.LabelManagedBy] != api.LabelManagedByValue {
		return false
	}
	owner := apimeta.GetControllerOf(object)
	if owner != nil {
		return owner.UID == person.UID
	}
	_, home := object.(*corev1.PersistentVolumeClaim)
	return home && object.GetAnnotations()[api.AnnotationHomeOf] == person.Name
}

// foreign says why an object is not this person's, or nil.
func foreign(person *api.Person, object client.Object) *problem {
	if isOurs(person, object) {
		return nil
	}
	kind := kindOf(object)
	owner := apimeta.GetControllerOf(object)
	if owner != nil && owner.Kind == "Person" && owner.Name == person.Name && owner.UID != person.UID {
		return &problem{reason: api.ReasonPodTerminating, message: fmt.Sprintf(
			"%s %s of the deleted person of this name is not gone yet.", kind, object.GetName())}
	}
	return notOurs(person, kind, object.GetName())
}

func notOurs(person *api.Person, kind, name string) *problem {
	return &problem{reason: api.ReasonNotOurs, stalled: true, message: fmt.Sprintf(
		"%s %s exists in namespace %s and was not made for this person, so it is left alone; delete or rename it, "+
			"or make this person anew with another name.", kind, name, person.Namespace)}
}

func kindOf(object client.Object) string {
	switch object.(type) {
	case *corev1.Pod:
		return "Pod"
	case *corev1.Secret:
		return "Secret"
	case *corev1.ServiceAccount:
		return "ServiceAccount"
	case *corev1.PersistentVolumeClaim:
		return "PersistentVolumeClaim"
	}
	return fmt.Sprintf("%T", object)
}

func validToken(secret *corev1.Secret) string {
	if secret == nil {
		return ""
	}
	if token := string(secret.Data[contract.TokenKey]); len(token) >= minTokenLength {
		return token
	}
	return ""
}

func newToken() string {
	var random [tokenBytes]byte
	_, _ = rand.Read(random[:]) // never fails: it ends the process where there is no randomness
	return base64.RawURLEncoding.EncodeToString(random[:])
}

func planSecret(s *personSnapshot, token string) *step {
	want := podspec.Secret(s.person, token, s.caBundle)
	if s.secret == nil {
		return &step{object: want}
	}
	data := s.secret.Data
	if string(data[contract.TokenKey]) == token && bytes.Equal(data[contract.CAKey], s.caBundle) {
		return nil
	}
	changed := s.secret.DeepCopy()
	if changed.Data == nil {
		changed.Data = make(map[string][]byte, len(want.Data))
	}
	for key, value := range want.Data {
		changed.Data[key] = value
	}
	return &step{old: s.secret, object: changed}
}

func planAccount(s *personSnapshot) *step {
	if s.account != nil {
		return nil
	}
	return &step{object: podspec.ServiceAccount(s.person)}
}

// planHome makes a home, lets it grow, and keeps its owner as spec.agent.home.retention says. All else of a home is for new
// ones only.
func planHome(s *personSnapshot, want *corev1.PersistentVolumeClaim) *step {
	if s.home == nil {
		return &step{object: want}
	}
	if s.home.DeletionTimestamp != nil {
		return nil
	}
	changed := s.home.DeepCopy()
	owned := apimeta.GetControllerOf(s.home) != nil
	if stays := len(want.OwnerReferences) == 0; stays == owned {
		changed.OwnerReferences = want.OwnerReferences
	}
	if changed.Annotations == nil {
		changed.Annotations = make(map[string]string, 1)
	}
	changed.Annotations[api.AnnotationHomeOf] = s.person.Name
	changed.Labels[api.LabelTeam] = want.Labels[api.LabelTeam]
	changed.Labels[api.LabelPerson] = want.Labels[api.LabelPerson]
	size := want.Spec.Resources.Requests[corev1.ResourceStorage]
	if size.Cmp(s.home.Spec.Resources.Requests[corev1.ResourceStorage]) > 0 && s.home.Status.Phase == corev1.ClaimBound {
		changed.Spec.Resources.Requests[corev1.ResourceStorage] = size
	}
	if reflect.DeepEqual(s.home, changed) {
		return nil
	}
	return &step{old: s.home, object: changed}
}

func compact(steps ...*step) []step {
	var out []step
	for _, s := range steps {
		if s != nil {
			out = append(out, *s)
		}
	}
	return out
}

// applyObjects does the steps in order, and stops at the first that fails. A *problem is told in conditions.
func (r *personReconciler) applyObjects(ctx context.Context, s *personSnapshot, want *wanted) error {
	if want.problem != nil {
		return want.problem
	}
	for _, step := range want.steps {
		if err := r.apply(ctx, s.person, step); err != nil {
			return err
		}
	}
	return nil
}

func (r *personReconciler) apply(ctx context.Context, person *api.Person, do step) error {
	if do.old == nil {
		return r.create(ctx, person, do.object)
	}
	err := r.client.Patch(ctx, do.object, client.MergeFromWithOptions(do.old, client.MergeFromWithOptimisticLock{}))
	if refused(err) {
		return &problem{reason: api.ReasonVolumePending, stalled: true, message: fmt.Sprintf(
			"%s %s cannot be changed: %v", kindOf(do.object), do.object.GetName(), err)}
	}
	return err
}

// create makes an object. One that exists already is either ours, and the cache is behind, or somebody else's.
func (r *personReconciler) create(ctx context.Context, person *api.Person, object client.Object) error {
	err := r.client.Create(ctx, object)
	switch {
	case apierrors.IsAlreadyExists(err):
		return r.whose(ctx, person, object)
	case refused(err):
		return &problem{reason: api.ReasonPodRefused, stalled: true, message: fmt.Sprintf(
			"The API server refuses %s %s: %v", kindOf(object), object.GetName(), err)}
	}
	return err
}

// refused says that the API server understood a write and will not have it: admission, quota or validation.
func refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

func (r *personReconciler) whose(ctx context.Context, person *api.Person, object client.Object) error {
	gvk, err := apiutil.GVKForObject(object, r.client.Scheme())
	if err != nil {
		return err
	}
	live := &apimeta.PartialObjectMetadata{}
	live.SetGroupVersionKind(gvk)
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
		return err
	}
	object.SetLabels(live.Labels)
	object.SetAnnotations(live.Annotations)
	object.SetOwnerReferences(live.OwnerReferences)
	if p := foreign(person, object); p != nil {
		return p
	}
	return errStale
}

// gitCredentials names the Secrets that a team's repositories ask for.
func gitCredentials(team *api.Team) []api.ObjectName {
	var names []api.ObjectName
	if team != nil {
		for _, r := range team.Spec.Repositories {
			names = append(names, r.CredentialsSecret)
		}
	}
	return names
}

func mcpServers(list []api.MCPServer) []protocol.TeamMCPServer {
	var servers []protocol.TeamMCPServer
	for _, s := range list {
		server := protocol.TeamMCPServer{Name: s.Name, Command: s.Command, Args: s.Args, URL: s.URL}
		for _, e := range s.Env {
			if server.Env == nil {
				server.Env = make(map[string]string, len(s.Env))
			}
			server.Env[e.Name] = e.Value
		}
		for _, h := range s.Headers {
			if server.Headers == nil {
				server.Headers = make(map[string]string, len(s.Headers))
			}
			server.Headers[h.Name] = h.Value
		}
		servers = append(servers, server)
	}
	return servers
}

// personFacts is what the office hears of a person.
func personFacts(s *personSnapshot, want *wanted) model.Person {
	person := s.person
	facts := model.Person{
		UID: string(person.UID),
		Key: model.PersonKey{
			Team:   model.TeamKey{Namespace: person.Namespace, Name: string(person.Spec.Team)},
			Handle: person.HandleOrName(),
		},
		Name:        person.Name,
		DisplayName: person.Spec.DisplayName,
		Role:        string(person.Spec.Role),
		Runtime:     string(want.settings.Runtime),
		Model:       want.settings.Model,

		Effort:        want.settings.Effort,
		FallbackModel: want.settings.FallbackModel,
		MaxTurns:      int(ptr.Deref(want.settings.MaxTurns, 0)),
		AllowedTools:  want.settings.AllowedTools,
		Approvals:     strings.ToLower(string(want.settings.Approvals)),
		MCPServers:    mcpServers(want.settings.MCPServers),

		Subscription: person.Spec.Subscription,
		Tools:        person.Spec.Tools,
		Command:      want.settings.Command,
		Suspended:    person.Spec.Suspend,
		Draining:     draining(s, want),
		TokenHash:    sha256.Sum256([]byte(want.token)),
		CreatedAt:    person.CreationTimestamp.UTC(),
	}
	if facts.DisplayName == "" {
		facts.DisplayName = person.HandleOrName()
	}
	if person.Spec.Agent.Hooks != nil {
		facts.Environment = &protocol.TeamEnvironment{Hooks: teamHooks(want.settings.Hooks)}
	}
	for _, service := range person.Spec.Services {
		facts.Services = append(facts.Services, protocol.TeamService{Name: service.Name, Address: service.Address})
	}
	facts.Incarnation, facts.IncarnationAt = incarnation(s.pod)
	return facts
}
