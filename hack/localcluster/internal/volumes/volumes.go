// Package volumes provides storage: each PersistentVolumeClaim of the class
// local-folder gets a folder of its own.
//
// A folder knows no size and no mount, so requested capacities are recorded and
// not enforced. That one pod at a time uses a ReadWriteOncePod claim is seen to
// by the scheduler.
package volumes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/bullpen-dev/bullpen/hack/localcluster/internal/folder"
)

// ClassName is the name of the storage class; Driver is who provides for it and
// any other class that names it.
const (
	ClassName = "local-folder"
	Driver    = "localcluster.bullpen.dev/folder"
)

const (
	annotationDefaultClass  = "storageclass.kubernetes.io/is-default-class"
	annotationProvisioner   = "volume.kubernetes.io/storage-provisioner"
	annotationProvisionedBy = "pv.kubernetes.io/provisioned-by"
)

// A Provisioner makes and removes folders.
type Provisioner struct {
	client  kubernetes.Interface
	dir     string
	factory informers.SharedInformerFactory
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
	classes storagelisters.StorageClassLister
	queue   workqueue.TypedRateLimitingInterface[key]
}

// A key names an object to look at: a claim, or without a namespace a volume.
type key struct{ namespace, name string }

// New makes a provisioner whose folders are below dir.
func New(client kubernetes.Interface, dir string) (*Provisioner, error) {
	factory := informers.NewSharedInformerFactory(client, 0)
	p := &Provisioner{
		client:  client,
		dir:     dir,
		factory: factory,
		claims:  factory.Core().V1().PersistentVolumeClaims().Lister(),
		volumes: factory.Core().V1().PersistentVolumes().Lister(),
		classes: factory.Storage().V1().StorageClasses().Lister(),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[key](20*time.Millisecond, 10*time.Second)),
	}
	for _, informer := range []cache.SharedIndexInformer{
		factory.Core().V1().PersistentVolumeClaims().Informer(),
		factory.Core().V1().PersistentVolumes().Informer(),
	} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    p.enqueue,
			UpdateFunc: func(_, updated any) { p.enqueue(updated) },
		}); err != nil {
			return nil, err
		}
	}
	factory.Storage().V1().StorageClasses().Informer()
	return p, nil
}

// EnsureClass makes the default storage class.
func EnsureClass(ctx context.Context, client kubernetes.Interface) error {
	reclaim, binding := corev1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate
	_, err := client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta:        metav1.ObjectMeta{Name: ClassName, Annotations: map[string]string{annotationDefaultClass: "true"}},
		Provisioner:       Driver,
		ReclaimPolicy:     &reclaim,
		VolumeBindingMode: &binding,
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (p *Provisioner) enqueue(object any) {
	accessor, ok := object.(metav1.Object)
	if !ok {
		return
	}
	p.queue.Add(key{accessor.GetNamespace(), accessor.GetName()})
}

// Run works until ctx ends.
func (p *Provisioner) Run(ctx context.Context) error {
	p.factory.Start(ctx.Done())
	for kind, synced := range p.factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("read %s: %w", kind, context.Cause(ctx))
		}
	}
	stop := context.AfterFunc(ctx, p.queue.ShutDown)
	defer stop()
	for p.work(ctx) {
	}
	p.factory.Shutdown()
	return nil
}

// work handles one object and reports whether there can be more.
func (p *Provisioner) work(ctx context.Context) bool {
	k, shutdown := p.queue.Get()
	if shutdown {
		return false
	}
	defer p.queue.Done(k)
	handle := p.claim
	if k.namespace == "" {
		handle = p.volume
	}
	if err := handle(ctx, k); err != nil && ctx.Err() == nil {
		klog.ErrorS(err, "Providing storage failed, trying again", "namespace", k.namespace, "name", k.name)
		p.queue.AddRateLimited(k)
		return true
	}
	p.queue.Forget(k)
	return true
}

// claim makes the folder and the volume of a claim that waits for them.
func (p *Provisioner) claim(ctx context.Context, k key) error {
	claim, err := p.claims.PersistentVolumeClaims(k.namespace).Get(k.name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || !wanted(claim) {
		return err
	}
	class, err := p.classes.Get(*claim.Spec.StorageClassName)
	if err != nil {
		return err
	}
	volume := newVolume(claim, class, filepath.Join(p.dir, folderName(claim)))
	if err := os.MkdirAll(volume.Spec.HostPath.Path, 0o755); err != nil {
		return err
	}
	if _, err := p.client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// volume removes the folder and the object of a volume whose claim is gone.
func (p *Provisioner) volume(ctx context.Context, k key) error {
	volume, err := p.volumes.Get(k.name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || !disposable(volume) {
		return err
	}
	path := volume.Spec.HostPath.Path
	if filepath.Dir(path) != p.dir {
		return fmt.Errorf("volume %s names the folder %s, which is not below %s", volume.Name, path, p.dir)
	}
	if err := folder.RemoveAll(path); err != nil {
		return err
	}
	uid := metav1.NewUIDPreconditions(string(volume.UID))
	err = p.client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{Preconditions: uid})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// wanted reports whether a claim waits for this provisioner. The volume
// controller has written the annotation once it found nothing to bind.
func wanted(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Spec.VolumeName == "" && claim.DeletionTimestamp == nil &&
		claim.Spec.StorageClassName != nil && claim.Annotations[annotationProvisioner] == Driver
}

// disposable reports whether a volume of ours is to be removed.
func disposable(volume *corev1.PersistentVolume) bool {
	return volume.Annotations[annotationProvisionedBy] == Driver &&
		volume.Spec.HostPath != nil &&
		volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete &&
		volume.Status.Phase == corev1.VolumeReleased
}

// folderName is short, since programs put sockets into their volumes and a
// socket's path may have no more than 107 bytes, and says what it is for.
func folderName(claim *corev1.PersistentVolumeClaim) string {
	uid, _, _ := strings.Cut(string(claim.UID), "-")
	return claim.Namespace + "_" + claim.Name + "_" + uid
}

func newVolume(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, path string) *corev1.PersistentVolume {
	reclaim := corev1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		reclaim = *class.ReclaimPolicy
	}
	directory := corev1.HostPathDirectory
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "pvc-" + string(claim.UID),
			Annotations: map[string]string{annotationProvisionedBy: Driver},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   claim.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: reclaim,
			StorageClassName:              class.Name,
			VolumeMode:                    claim.Spec.VolumeMode,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &directory},
			},
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
			},
		},
	}
}
