package mainline

// This file changes the world while no manager looks, and while the manager cannot write.

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/agentpod/podspec"
	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

func TestWhatWasDeletedWhileTheManagerWasDownIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.team(time.Second)
	ada, bob := w.person("ada"), w.person("bob")
	running := w.holding("running", "ada", 0)
	waiting := w.item("waiting", "ada", "quick")
	orphan := w.holding("orphan", "bob", 1)
	w.state(waiting, protocol.StateQueued)
	secret := w.agentSecret(bob)

	w.manager.kill()
	for _, o := range []client.Object{running, waiting, bob} {
		w.must(cluster.admin.Delete(t.Context(), o))
	}
	w.manager.start()

	// The program of the deleted item ends, and its person works on.
	w.notes(running).over(soon)
	next := w.item("next", "ada", "quick")
	w.state(next, protocol.StateDone)
	// The item of the deleted person waits for another one of that handle.
	w.itemIs(orphan, func(item *api.WorkItem) error {
		if got := reason(item); got != api.ReasonPersonNotFound || item.Status.State != "queued" {
			return fmt.Errorf("the reason is %q, not %q, and the state %s", got, api.ReasonPersonNotFound, item.Status.State)
		}
		return nil
	})
	if code := w.dial("bob", secret); code != protocol.CodeAuthFailed {
		t.Errorf("the office answered the agent of a person who was deleted with %q", code)
	}
	// That it is not the dialing: the same with another token is welcome.
	if code := w.dial("ada", w.agentSecret(ada)); code != "" {
		t.Errorf("the office refused a good token with %q", code)
	}
	if starts := w.notes(waiting).starts(); len(starts) != 0 {
		t.Error("a deleted item was started")
	}
	// The pod of the deleted person goes, and with it the program. The garbage collector of a young cluster takes half a minute
	// to learn of new kinds.
	w.notes(orphan).over(2 * soon)

	w.manager.stop()
	for _, item := range []*api.WorkItem{running, waiting} {
		if h := w.manager.history(string(item.UID)); h.item.State != protocol.StateCanceled || !h.item.Gone {
			t.Errorf("the store has the deleted item %s as %s, gone %t", item.Name, h.item.State, h.item.Gone)
		}
	}
}

// agentSecret reads the Secret of a person's agent.
func (w *world) agentSecret(person *api.Person) *corev1.Secret {
	w.Helper()
	secret := &corev1.Secret{}
	w.must(cluster.admin.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: podspec.AgentName(person.Name)}, secret))
	return secret
}

// dial connects to the office as the agent of a person, and gives the code of the error by which it was refused, if it was.
func (w *world) dial(handle string, secret *corev1.Secret) protocol.Code {
	w.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(secret.Data[contract.CAKey]) {
		w.Fatal("the agent's Secret has no CA")
	}
	ctx, cancel := context.WithTimeout(w.Context(), soon)
	defer cancel()
	dialer := websocket.Dialer{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}}
	ws, response, err := dialer.DialContext(ctx, fmt.Sprintf("wss://%s/v1/teams/%s/%s/agent", w.manager.office, w.namespace, teamName), nil)
	w.must(err)
	defer ws.Close() //nolint:errcheck // the test is over with it
	w.must(response.Body.Close())
	hello, err := protocol.Encode(protocol.Frame{ID: "1", Message: protocol.Hello{
		Person: handle, Token: string(secret.Data[contract.TokenKey]), ProtocolVersion: protocol.Version, AgentVersion: "test",
	}})
	w.must(errors.Join(err, ws.WriteMessage(websocket.TextMessage, hello), ws.SetReadDeadline(time.Now().Add(soon))))
	_, data, err := ws.ReadMessage()
	w.must(err)
	frame, werr := protocol.Decode(data)
	if werr != nil {
		w.Fatalf("the office's answer cannot be read: %v", werr)
	}
	if refused, ok := frame.Message.(protocol.Error); ok {
		if _, _, err := ws.ReadMessage(); !websocket.IsCloseError(err, protocol.CloseAuthFailed) {
			w.Errorf("the office refused and then did not close with %d: %v", protocol.CloseAuthFailed, err)
		}
		return refused.Code
	}
	if _, ok := frame.Message.(protocol.Welcome); !ok {
		w.Fatalf("the office answered hello with %s", frame.Message.Type())
	}
	return ""
}

func TestAStoreThatCannotBeWrittenLosesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.team(time.Second)
	ada := w.person("ada")
	item := w.holding("held", "ada", 0)

	lift := w.manager.limitFiles(1)
	w.notes(item).put("say", "said to a full disk")
	w.homeHas(ada, "said to a full disk")
	w.notes(item).letGo()
	w.notes(item).wait("end", 1)
	// The office says that it cannot, and acknowledges nothing: the agent keeps what it has to say.
	w.manager.answered(1, "journal", "failed")
	eventually(t, soon, func() error {
		body, code, err := get(t.Context(), "http://"+w.manager.health+"/readyz")
		if err != nil || code != http.StatusInternalServerError {
			return fmt.Errorf("readiness is %d %s (%w)", code, body, err)
		}
		return nil
	})
	w.homeHas(ada, "held on")
	untold := w.item("untold", "ada", "quick")
	w.itemIs(untold, func(item *api.WorkItem) error {
		ready := apimeta.FindStatusCondition(item.Status.Conditions, api.ConditionReady)
		if ready == nil || ready.Reason != api.ReasonOfficeUnavailable {
			return fmt.Errorf("its condition is %+v", ready)
		}
		return nil
	})
	for kind, want := range map[string]int{"journal": 1, "handback": 0} {
		if got := w.manager.messages(kind, "ok"); got != want {
			t.Errorf("%d messages %s were acknowledged, not %d, while the store could not be written", got, kind, want)
		}
	}
	w.must(w.reload(item))
	if item.Status.State != api.WorkItemState(protocol.StateActive) {
		t.Errorf("the item is %s while its hand-back cannot be stored", item.Status.State)
	}

	lift()
	w.manager.waitReady()
	w.doneOnce(item, 1, 0)
	w.state(untold, protocol.StateDone)
	if starts := w.notes(item).starts(); len(starts) != 1 {
		t.Errorf("the program was started %d times, not once: %q", len(starts), starts)
	}
	w.manager.stop()
	w.recordedOnce(item, []string{"began", "said to a full disk"}, model.OutcomeDone)
}
