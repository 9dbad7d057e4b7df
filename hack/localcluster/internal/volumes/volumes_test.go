package volumes

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// aClaim is one that waits for this provisioner, after some changes.
func aClaim(changes ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	class := ClassName
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: "ada-home", UID: "0d1e2f3a-0000-0000-0000-000000000000",
			Annotations: map[string]string{annotationProvisioner: Driver},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod},
		},
	}
	for _, change := range changes {
		change(claim)
	}
	return claim
}

func TestWanted(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		want   bool
	}{
		"a claim that the volume controller left to us": {func(*corev1.PersistentVolumeClaim) {}, true},
		"a claim that is bound":                         {func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv" }, false},
		"a claim of another provisioner":                {func(c *corev1.PersistentVolumeClaim) { c.Annotations[annotationProvisioner] = "other" }, false},
		"a claim that nobody has looked at yet":         {func(c *corev1.PersistentVolumeClaim) { c.Annotations = nil }, false},
		"a claim that is being deleted":                 {func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := wanted(aClaim(test.change)); got != test.want {
				t.Errorf("wanted = %t, want %t", got, test.want)
			}
		})
	}
}

func TestNewVolumeIsForItsClaimOnly(t *testing.T) {
	retain := corev1.PersistentVolumeReclaimRetain
	for name, test := range map[string]struct {
		reclaim *corev1.PersistentVolumeReclaimPolicy
		want    corev1.PersistentVolumeReclaimPolicy
	}{
		"the class says what becomes of it": {&retain, retain},
		"else it is deleted":                {nil, corev1.PersistentVolumeReclaimDelete},
	} {
		t.Run(name, func(t *testing.T) {
			claim := aClaim()
			class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: ClassName}, ReclaimPolicy: test.reclaim}
			got := newVolume(claim, class, "/state/volumes/x")
			if got.Spec.PersistentVolumeReclaimPolicy != test.want {
				t.Errorf("reclaim policy %s, want %s", got.Spec.PersistentVolumeReclaimPolicy, test.want)
			}
			if got.Spec.ClaimRef.UID != claim.UID || got.Spec.HostPath.Path != "/state/volumes/x" {
				t.Errorf("volume %+v is not that of the claim", got.Spec)
			}
			if diff := cmp.Diff(claim.Spec.AccessModes, got.Spec.AccessModes); diff != "" {
				t.Errorf("access modes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDisposable(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.PersistentVolume)
		want   bool
	}{
		"a volume whose claim is gone": {func(*corev1.PersistentVolume) {}, true},
		"a volume that is in use":      {func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeBound }, false},
		"a volume that is to be kept": {func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		}, false},
		"a volume that somebody else made": {func(v *corev1.PersistentVolume) { v.Annotations = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			volume := newVolume(aClaim(), &storagev1.StorageClass{}, "/state/volumes/x")
			volume.Status.Phase = corev1.VolumeReleased
			test.change(volume)
			if got := disposable(volume); got != test.want {
				t.Errorf("disposable = %t, want %t", got, test.want)
			}
		})
	}
}
