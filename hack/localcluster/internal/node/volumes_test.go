package node

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// aVolume is a pod with one volume.
func aVolume(source corev1.VolumeSource) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "ada-agent", Labels: map[string]string{"app": "agent"}},
		Spec:       corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: source}}},
	}
}

// files reads the visible files of a folder: their content and permissions.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got[entry.Name()] = info.Mode().String() + " " + string(data)
	}
	return got
}

func TestVolumesShowObjects(t *testing.T) {
	mode, own, yes := int32(0o644), int32(0o400), true
	for name, test := range map[string]struct {
		source  corev1.VolumeSource
		want    map[string]string
		wantErr string
	}{
		"all keys of a secret": {
			source: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s", DefaultMode: &own}},
			want:   map[string]string{"token": "-r-------- t0", "ca.crt": "-r-------- pem"},
		},
		"some keys under other names, one with a mode of its own": {
			source: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s", DefaultMode: &mode, Items: []corev1.KeyToPath{
				{Key: "token", Path: "t", Mode: &own}, {Key: "ca.crt", Path: "ca"},
			}}},
			want: map[string]string{"t": "-r-------- t0", "ca": "-rw-r--r-- pem"},
		},
		"a config map": {
			source: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: ref("c"), DefaultMode: &mode}},
			want:   map[string]string{"level": "-rw-r--r-- high"},
		},
		"the pod itself": {
			source: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{DefaultMode: &mode, Items: []corev1.DownwardAPIVolumeFile{
				{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}},
			}}},
			want: map[string]string{"labels": `-rw-r--r-- app="agent"`},
		},
		"several sources in one": {
			source: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: &mode, Sources: []corev1.VolumeProjection{
				{Secret: &corev1.SecretProjection{LocalObjectReference: ref("s"), Items: []corev1.KeyToPath{{Key: "token", Path: "t"}}}},
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: ref("c")}},
			}}},
			want: map[string]string{"t": "-rw-r--r-- t0", "level": "-rw-r--r-- high"},
		},
		"nothing of an optional secret that is not there": {
			source: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "nope", DefaultMode: &mode, Optional: &yes}},
			want:   map[string]string{},
		},
		"a secret that is not there": {
			source:  corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "nope", DefaultMode: &mode}},
			wantErr: `volume "v": secret "nope" not found`,
		},
		"a key that is not there": {
			source:  corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s", DefaultMode: &mode, Items: []corev1.KeyToPath{{Key: "nope", Path: "n"}}}},
			wantErr: "references non-existent secret key: nope",
		},
		"a kind of volume that this node does not have": {
			source:  corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{}},
			wantErr: "this node knows emptyDir, hostPath",
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := podVolumes{dir: t.TempDir(), sources: objects{
				secrets:    map[string]map[string][]byte{"s": {"token": []byte("t0"), "ca.crt": []byte("pem")}},
				configMaps: map[string]map[string]string{"c": {"level": "high"}},
			}}
			dirs, err := v.prepare(context.Background(), aVolume(test.source), time.Now())
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Fatalf("error %v, want %q", err, test.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, files(t, dirs["v"])); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVolumesFollowTheirObject(t *testing.T) {
	mode := int32(0o600)
	data := map[string][]byte{"token": []byte("old"), "gone": []byte("x")}
	v := podVolumes{dir: t.TempDir(), sources: objects{secrets: map[string]map[string][]byte{"s": data}}}
	pod := aVolume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s", DefaultMode: &mode}})
	dirs, err := v.prepare(context.Background(), pod, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	data["token"] = []byte("new")
	delete(data, "gone")
	if _, err := v.prepare(context.Background(), pod, time.Now()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"token": "-rw------- new"}, files(t, dirs["v"])); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestMountsOf(t *testing.T) {
	dir := t.TempDir()
	container := &corev1.Container{VolumeMounts: []corev1.VolumeMount{
		{Name: "v", MountPath: "/a"},
		{Name: "v", MountPath: "/b", SubPath: "x/y"},
		{Name: "v", MountPath: "/c", SubPathExpr: "of-$(NAME)"},
	}}
	got, err := mountsOf(container, map[string]string{"v": dir}, map[string]string{"NAME": "ada"})
	if err != nil {
		t.Fatal(err)
	}
	want := []mount{{"/a", dir}, {"/b", dir + "/x/y"}, {"/c", dir + "/of-ada"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(mount{})); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
	for _, m := range got {
		if info, err := os.Stat(m.target); err != nil || !info.IsDir() {
			t.Errorf("%s is no folder: %v", m.target, err)
		}
	}
	outside := &corev1.Container{VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/a", SubPathExpr: "$(NAME)"}}}
	if _, err := mountsOf(outside, map[string]string{"v": dir}, map[string]string{"NAME": "../x"}); err == nil {
		t.Error("a subPath that leads out of its volume was mounted")
	}
}
