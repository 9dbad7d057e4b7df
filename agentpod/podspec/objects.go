package podspec

// This file has names, labels and owner of a person's objects, and all of them but the pod.

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
)

// ComponentAgent is the value of the component label.
const ComponentAgent = "agent"

// AgentName is the name of a person's Pod, Secret and ServiceAccount.
func AgentName(person string) string { return person + "-agent" }

// HomeName is the name of a person's PersistentVolumeClaim.
func HomeName(person string) string { return person + "-home" }

// Labels are those of everything that belongs to the person. The labels of the Person itself are never among them: GitOps
// tools take an object with their labels for their own.
func Labels(person *api.Person) map[string]string {
	return map[string]string{
		api.LabelManagedBy: api.LabelManagedByValue,
		api.LabelComponent: ComponentAgent,
		api.LabelPerson:    person.Name,
		api.LabelTeam:      string(person.Spec.Team),
	}
}

// Owner is the reference by which the person's objects go with it. It does not hold the person's deletion up.
func Owner(person *api.Person) metav1.OwnerReference {
	owner := *metav1.NewControllerRef(person, api.GroupVersion.WithKind("Person"))
	owner.BlockOwnerDeletion = nil
	return owner
}

func meta(person *api.Person, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace:       person.Namespace,
		Name:            name,
		Labels:          Labels(person),
		OwnerReferences: []metav1.OwnerReference{Owner(person)},
	}
}

// Secret holds the agent's token and the CA bundle (PEM) by which it trusts the office.
func Secret(person *api.Person, token string, caBundle []byte) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: meta(person, AgentName(person.Name)),
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{contract.TokenKey: []byte(token), contract.CAKey: caBundle},
	}
}

// ServiceAccount is the identity of the agent's pod, without permissions and without a token.
func ServiceAccount(person *api.Person) *corev1.ServiceAccount {
	no := false
	return &corev1.ServiceAccount{
		TypeMeta:                     metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta:                   meta(person, AgentName(person.Name)),
		AutomountServiceAccountToken: &no,
	}
}

// Home is the claim of the person's home. It is owned by the person only where it goes with the person; one that stays says
// whose it is, so that a person of the same name takes it again. An error is an *InvalidError.
func Home(person *api.Person, settings api.AgentSettings) (*corev1.PersistentVolumeClaim, error) {
	home := settings.Home
	claim := &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: meta(person, HomeName(person.Name)),
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{home.AccessMode},
			StorageClassName: home.StorageClassName,
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: *home.Size},
			},
		},
	}
	claim.Annotations = map[string]string{api.AnnotationHomeOf: person.Name}
	if home.Retention != api.DeleteHome {
		claim.OwnerReferences = nil
	}
	want := claim.ObjectMeta
	patched, err := applyPatches(claim, settings.Patches)
	if err != nil {
		return nil, err
	}
	if err := sameIdentity("PersistentVolumeClaim", want, patched.ObjectMeta); err != nil {
		return nil, err
	}
	if patched.Annotations[api.AnnotationHomeOf] != person.Name {
		return nil, invalid("a patch of the PersistentVolumeClaim must leave the annotation %s alone", api.AnnotationHomeOf)
	}
	return patched, nil
}

// sameIdentity checks what a patch must leave alone: name, namespace, our labels and the owner.
func sameIdentity(kind string, want, got metav1.ObjectMeta) error {
	if got.Name != want.Name || got.Namespace != want.Namespace {
		return invalid("a patch of the %s must leave its name and namespace alone: it made %s/%s of %s/%s",
			kind, got.Namespace, got.Name, want.Namespace, want.Name)
	}
	for key, value := range want.Labels {
		if got.Labels[key] != value {
			return invalid("a patch of the %s must leave the label %s=%s alone", kind, key, value)
		}
	}
	owners := func(m metav1.ObjectMeta) map[metav1.OwnerReference]bool {
		set := make(map[metav1.OwnerReference]bool, len(m.OwnerReferences))
		for _, ref := range m.OwnerReferences {
			ref.Controller, ref.BlockOwnerDeletion = nil, nil
			set[ref] = true
		}
		return set
	}
	if !maps.Equal(owners(want), owners(got)) || len(got.Finalizers) > 0 {
		return invalid("a patch of the %s must leave its owner references and finalizers alone", kind)
	}
	return nil
}
