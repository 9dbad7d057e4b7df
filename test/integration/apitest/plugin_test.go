package apitest_test

// This file runs the plugin of kubectl as users do, on a real API server.

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
)

// plugin builds kubectl-bullpen and gives a function that runs kubectl bullpen with it.
func plugin(t *testing.T, kubeconfig string) func(args ...string) (output string, code int) {
	t.Helper()
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "kubectl-bullpen"), "./cmd/kubectl-bullpen")
	build.Dir, build.Env = cluster.Root, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	// kubectl is the machine's, or the one that was built beside the API server.
	path := strings.Join([]string{dir, os.Getenv("PATH"), filepath.Join(cluster.Root, ".cache", "k8s"), os.Getenv("KUBEBUILDER_ASSETS")}, string(os.PathListSeparator))
	t.Setenv("PATH", path)
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Fatalf("run make localcluster, which builds kubectl where there is none: %v", err)
	}
	return func(args ...string) (string, int) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), kubectl, append([]string{"bullpen"}, args...)...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
		output, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return string(output), cmd.ProcessState.ExitCode()
	}
}

func TestThePluginShowsWhatTheAPIHas(t *testing.T) {
	namespace := cluster.Namespace(t)
	create := func(object client.Object, fill func()) {
		t.Helper()
		object.SetNamespace(namespace)
		if err := strict().Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		fill()
		if err := strict().Status().Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	team := goTeam()
	create(team, func() { fillStatus(team) })
	ada := goPerson()
	create(ada, func() {
		fillStatus(ada)
		ada.Status.Doctor = []api.DoctorCheck{{Name: "Tools install", Status: "fail", Detail: "make is not in PATH", Fix: "Put make into the image."}}
	})
	for name, order := range map[string]string{"second": "person.ada/1/1000100/ab", "first": "person.ada/0/1000100/zz"} {
		it := &api.WorkItem{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: api.WorkItemSpec{Team: "core", Person: "ada", Title: "T"}}
		create(it, func() { it.Status.State, it.Status.Order, it.Status.Priority = "queued", order, ptr(int32(100)) })
	}

	run := plugin(t, cluster.Kubeconfig(t))
	for _, test := range []struct {
		args []string
		code int
		want []string // lines with these words, in this order
	}{
		{[]string{"status", "-n", namespace}, 0, []string{"core True 1/2", "ada core dev working fix-login 3 1 fail"}},
		{[]string{"queue", "ada", "-n", namespace}, 0, []string{"1 first queued 100 task", "2 second queued 100 task"}},
		{[]string{"usage", "-n", namespace}, 0, []string{"core 1200 0.42", "ada core 1200 0.42", "Team core 0.42 12.50 12.08 USD ok"}},
		{[]string{"doctor", "--namespace", namespace}, 1, []string{"ada: fail: Tools install", "fix: Put make into the image.", "1 check fails"}},
		{[]string{"usage", "-A", "--by", "item"}, 0, []string{"NAMESPACE TEAM"}},
		{[]string{"status", "-n", "nowhere"}, 0, []string{"There are no teams, people or work items in namespace nowhere"}},
		{[]string{"queue", "nobody", "-n", namespace}, 2, []string{`error: there is no person "nobody"`}},
	} {
		t.Run(strings.Join(test.args[:1], " "), func(t *testing.T) {
			output, code := run(test.args...)
			lines := strings.Split(output, "\n")
			if code != test.code {
				t.Errorf("it exits with %d, not %d:\n%s", code, test.code, output)
			}
			for _, want := range test.want {
				for len(lines) > 0 && !strings.Contains(strings.Join(strings.Fields(lines[0]), " "), want) {
					lines = lines[1:]
				}
				if len(lines) == 0 {
					t.Fatalf("no line says %q:\n%s", want, output)
				}
			}
		})
	}
}

func TestThePluginSaysWhatAUserMayNot(t *testing.T) {
	config := cluster.User(t, "nobody-in-particular")
	path := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u", Namespace: "default"}},
		CurrentContext: "x",
	}, path)
	if err != nil {
		t.Fatal(err)
	}
	output, code := plugin(t, path)("status")
	if code != 2 || !strings.Contains(output, "your role needs get and list of teams, people and workitems") {
		t.Errorf("it exits with %d:\n%s", code, output)
	}
}
