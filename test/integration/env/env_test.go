package env_test

// This file tests the control plane that the other integration tests stand on.

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/test/integration/env"
)

var cluster *env.Env

func TestMain(m *testing.M) { env.Main(m, &cluster, env.WithAudit()) }

func TestEveryTestHasANamespaceOfItsOwn(t *testing.T) {
	if a, b := cluster.Namespace(t), cluster.Namespace(t); a == b {
		t.Errorf("two namespaces are called %s", a)
	}
}

func TestTheAuditLogHasEveryWriteOnceAndInOrder(t *testing.T) {
	namespace := cluster.Namespace(t)
	team := &api.Team{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "core"}}
	if err := cluster.Client.Create(t.Context(), team); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Client.Create(t.Context(), team.DeepCopy()); err == nil {
		t.Fatal("a team was created twice")
	}
	team.Status.ObservedGeneration = 1
	if err := cluster.Client.Status().Update(t.Context(), team); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Client.Delete(t.Context(), team); err != nil {
		t.Fatal(err)
	}

	var verbs []string
	for _, event := range cluster.AuditEvents(t, env.Writes(namespace, "teams")) {
		verbs = append(verbs, event.Verb)
	}
	if got, want := strings.Join(verbs, " "), "create delete"; got != want {
		t.Errorf("the audit log has %q for teams, not %q", got, want)
	}
	status := cluster.AuditEvents(t, env.Writes(namespace, "teams/status"))
	if len(status) != 1 || status[0].Verb != "update" || status[0].ObjectRef.Name != "core" {
		t.Errorf("the audit log has not exactly the one update of the status: %v", status)
	}
}

func TestAUserMayDoOnlyWhatRBACAllows(t *testing.T) {
	nobody, err := client.New(cluster.User(t, "nobody-special"), client.Options{Scheme: cluster.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	err = nobody.List(t.Context(), &api.TeamList{}, client.InNamespace(cluster.Namespace(t)))
	if !apierrors.IsForbidden(err) {
		t.Errorf("a user without a role gets %v, not %d", err, http.StatusForbidden)
	}
}

func TestTheKubeconfigReachesTheAPIServer(t *testing.T) {
	config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	admin, err := client.New(config, client.Options{Scheme: cluster.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.List(t.Context(), &corev1.NamespaceList{}); err != nil {
		t.Error(err)
	}
}
