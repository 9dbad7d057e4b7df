package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/configmap"
	"k8s.io/kubernetes/pkg/volume/downwardapi"
	"k8s.io/kubernetes/pkg/volume/secret"
	volumeutil "k8s.io/kubernetes/pkg/volume/util"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
)

// podVolumes are the folders of one pod's volumes. One goroutine uses it.
type podVolumes struct {
	// dir has a folder for each volume that belongs to the pod alone.
	dir         string
	client      kubernetes.Interface
	sources     sources
	allocatable corev1.ResourceList
	// tokens are the service account tokens in use, by volume and file.
	tokens map[string]token
}

// A token is one service account token in a projected volume.
type token struct {
	value     string
	refreshAt time.Time
}

// prepare makes all volumes of the pod or brings them up to date, and returns
// their folders by name.
func (v *podVolumes) prepare(ctx context.Context, pod *corev1.Pod, now time.Time) (map[string]string, error) {
	dirs := map[string]string{}
	for i := range pod.Spec.Volumes {
		wanted := &pod.Spec.Volumes[i]
		dir, err := v.one(ctx, pod, wanted, now)
		if err != nil {
			return nil, fmt.Errorf("volume %q: %w", wanted.Name, err)
		}
		dirs[wanted.Name] = dir
	}
	return dirs, nil
}

// one makes one volume or brings it up to date.
func (v *podVolumes) one(ctx context.Context, pod *corev1.Pod, wanted *corev1.Volume, now time.Time) (string, error) {
	dir := filepath.Join(v.dir, wanted.Name)
	switch {
	case wanted.PersistentVolumeClaim != nil:
		return v.claim(ctx, pod.Namespace, wanted.PersistentVolumeClaim.ClaimName)
	case wanted.HostPath != nil:
		return hostPath(wanted.HostPath)
	case wanted.EmptyDir != nil:
		return dir, os.MkdirAll(dir, 0o777)
	}
	payload, err := v.payload(ctx, pod, wanted, now)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	writer, err := volumeutil.NewAtomicWriter(dir, pod.Namespace+"/"+pod.Name+"/"+wanted.Name)
	if err != nil {
		return "", err
	}
	return dir, writer.Write(payload, nil)
}

// payload returns the files of a volume that shows objects.
func (v *podVolumes) payload(ctx context.Context, pod *corev1.Pod, wanted *corev1.Volume, now time.Time) (map[string]volumeutil.FileProjection, error) {
	switch {
	case wanted.Secret != nil:
		s := wanted.Secret
		return v.secret(pod.Namespace, s.SecretName, s.Items, s.DefaultMode, s.Optional)
	case wanted.ConfigMap != nil:
		c := wanted.ConfigMap
		return v.configMap(pod.Namespace, c.Name, c.Items, c.DefaultMode, c.Optional)
	case wanted.DownwardAPI != nil:
		return v.downward(pod, wanted.DownwardAPI.Items, wanted.DownwardAPI.DefaultMode)
	case wanted.Projected != nil:
		return v.projected(ctx, pod, wanted, now)
	}
	return nil, errors.New("this node knows emptyDir, hostPath, persistentVolumeClaim, secret, configMap, downwardAPI and projected volumes only")
}

func (v *podVolumes) secret(namespace, name string, items []corev1.KeyToPath, mode *int32, optional *bool) (map[string]volumeutil.FileProjection, error) {
	object, err := v.sources.secret(namespace, name)
	if err != nil {
		if err := missing(err, optional); err != nil {
			return nil, err
		}
		object = &corev1.Secret{}
	}
	return secret.MakePayload(items, object, mode, nil, isOptional(optional))
}

func (v *podVolumes) configMap(namespace, name string, items []corev1.KeyToPath, mode *int32, optional *bool) (map[string]volumeutil.FileProjection, error) {
	object, err := v.sources.configMap(namespace, name)
	if err != nil {
		if err := missing(err, optional); err != nil {
			return nil, err
		}
		object = &corev1.ConfigMap{}
	}
	return configmap.MakePayload(items, object, mode, nil, isOptional(optional))
}

func (v *podVolumes) downward(pod *corev1.Pod, items []corev1.DownwardAPIVolumeFile, mode *int32) (map[string]volumeutil.FileProjection, error) {
	return downwardapi.CollectData(items, pod, allocatableHost{allocatable: v.allocatable}, mode, nil)
}

// allocatableHost is as much of a volume host as the downward API asks for.
type allocatableHost struct {
	volume.VolumeHost
	allocatable corev1.ResourceList
}

func (h allocatableHost) GetNodeAllocatable() (corev1.ResourceList, error) {
	return h.allocatable, nil
}

// projected puts the files of several sources into one volume.
func (v *podVolumes) projected(ctx context.Context, pod *corev1.Pod, wanted *corev1.Volume, now time.Time) (map[string]volumeutil.FileProjection, error) {
	mode := wanted.Projected.DefaultMode
	all := map[string]volumeutil.FileProjection{}
	for _, source := range wanted.Projected.Sources {
		var files map[string]volumeutil.FileProjection
		var err error
		switch {
		case source.Secret != nil:
			files, err = v.secret(pod.Namespace, source.Secret.Name, source.Secret.Items, mode, source.Secret.Optional)
		case source.ConfigMap != nil:
			files, err = v.configMap(pod.Namespace, source.ConfigMap.Name, source.ConfigMap.Items, mode, source.ConfigMap.Optional)
		case source.DownwardAPI != nil:
			files, err = v.downward(pod, source.DownwardAPI.Items, mode)
		case source.ServiceAccountToken != nil:
			files, err = v.serviceAccountToken(ctx, pod, wanted.Name, source.ServiceAccountToken, *mode, now)
		default:
			err = errors.New("this node projects secrets, config maps, the downward API and service account tokens only")
		}
		if err != nil {
			return nil, err
		}
		maps.Copy(all, files)
	}
	return all, nil
}

// serviceAccountToken asks for a token bound to the pod, and for another one
// when four fifths of its life are over.
func (v *podVolumes) serviceAccountToken(ctx context.Context, pod *corev1.Pod, volumeName string, source *corev1.ServiceAccountTokenProjection, mode int32, now time.Time) (map[string]volumeutil.FileProjection, error) {
	key := volumeName + "/" + source.Path
	held, ok := v.tokens[key]
	if !ok || now.After(held.refreshAt) {
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: source.ExpirationSeconds,
			BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
		}}
		if source.Audience != "" {
			request.Spec.Audiences = []string{source.Audience}
		}
		answer, err := v.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		life := answer.Status.ExpirationTimestamp.Sub(now)
		held = token{value: answer.Status.Token, refreshAt: now.Add(life * 4 / 5)}
		v.tokens[key] = held
	}
	return map[string]volumeutil.FileProjection{source.Path: {Data: []byte(held.value), Mode: mode}}, nil
}

// claim returns the folder of the volume that a claim is bound to.
func (v *podVolumes) claim(ctx context.Context, namespace, name string) (string, error) {
	claim, err := v.client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	if claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "" {
		return "", fmt.Errorf("persistentvolumeclaim %q is not bound", name)
	}
	bound, err := v.client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	if bound.Spec.HostPath == nil {
		return "", fmt.Errorf("persistentvolume %q is not a folder; this node mounts hostPath volumes only", bound.Name)
	}
	return hostPath(bound.Spec.HostPath)
}

func hostPath(source *corev1.HostPathVolumeSource) (string, error) {
	if source.Type != nil && *source.Type == corev1.HostPathDirectoryOrCreate {
		return source.Path, os.MkdirAll(source.Path, 0o755)
	}
	_, err := os.Stat(source.Path)
	return source.Path, err
}

// mountsOf returns where a container's paths lead. Folders that a subPath names are
// made if they are not there.
func mountsOf(container *corev1.Container, dirs map[string]string, variables map[string]string) ([]mount, error) {
	mounts := make([]mount, 0, len(container.VolumeMounts))
	for _, wanted := range container.VolumeMounts {
		dir, ok := dirs[wanted.Name]
		if !ok {
			return nil, fmt.Errorf("volume %q is not mounted", wanted.Name)
		}
		sub := wanted.SubPath
		if wanted.SubPathExpr != "" {
			sub = expansion.Expand(wanted.SubPathExpr, expansion.MappingFuncFor(variables))
		}
		if sub != "" && !filepath.IsLocal(sub) {
			return nil, fmt.Errorf("subPath %q of volume %q leads out of it", sub, wanted.Name)
		}
		target := filepath.Join(dir, sub)
		if sub != "" && !exists(target) {
			if err := os.MkdirAll(target, 0o755); err != nil {
				return nil, err
			}
		}
		mounts = append(mounts, mount{path: wanted.MountPath, target: target})
	}
	return mounts, nil
}

// refersTo reports whether a pod's volumes show an object of a kind ("Secret",
// "ConfigMap") and name.
func refersTo(pod *corev1.Pod, kind, name string) bool {
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.Secret != nil && kind == "Secret" && v.Secret.SecretName == name,
			v.ConfigMap != nil && kind == "ConfigMap" && v.ConfigMap.Name == name:
			return true
		case v.Projected != nil:
			for _, source := range v.Projected.Sources {
				if source.Secret != nil && kind == "Secret" && source.Secret.Name == name ||
					source.ConfigMap != nil && kind == "ConfigMap" && source.ConfigMap.Name == name {
					return true
				}
			}
		}
	}
	return false
}

func isOptional(optional *bool) bool { return optional != nil && *optional }
