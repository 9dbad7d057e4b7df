package mainline

// This file follows an event of a tracker to an agent's work, and what comes of that back to the tracker.

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bullpen-dev/bullpen/agentpod/podspec"
	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// tracker sends events as a webhook does.
type tracker struct {
	*world
	client *http.Client
	token  string
	sent   int
}

// newTracker trusts the office by the CA that agents have.
func (w *world) newTracker(token, agentOf string) *tracker {
	w.Helper()
	secret := &corev1.Secret{}
	w.must(cluster.admin.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: podspec.AgentName(agentOf)}, secret))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(secret.Data["ca.crt"])
	return &tracker{world: w, token: token, client: &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}, DisableKeepAlives: true,
	}}}
}

// send posts an event and gives the status and the body of the answer.
func (t *tracker) send(kind string, data map[string]any) (int, string) {
	t.Helper()
	t.sent++
	event, err := json.Marshal(map[string]any{
		"specversion": "1.0", "type": kind, "source": "https://tracker.example.com", "id": fmt.Sprint(t.sent), "data": data,
	})
	t.must(err)
	url := "https://" + t.manager.office + "/v1/teams/" + t.namespace + "/" + teamName + "/events"
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(event))
	t.must(err)
	request.Header.Set("Content-Type", "application/cloudevents+json")
	request.Header.Set("Authorization", "Bearer "+t.token)
	response, err := t.client.Do(request)
	t.must(err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	t.must(err)
	return response.StatusCode, string(body)
}

func TestAnAssignedTicketIsWorkedACommentStartsOneMoreRoundAndTheTrackerHearsWhatItCost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(cluster.admin.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "hooks"}, StringData: map[string]string{"token": "let-me-in"},
	}))
	w.team(2*time.Second, func(spec *api.TeamSpec) {
		spec.Events = &api.Events{TokenSecret: api.SecretKey{Name: "hooks", Key: "token"}}
		spec.Usage.TrackCost = true
		spec.Humans = []api.Human{{Name: "grace", Identities: map[string]string{"github": "grace-h"}}}
		spec.Agent.Hooks = &api.EnvironmentHooks{OnAct: `cat >>"$HOME/acts"; echo "it is in the tracker"`}
	})
	ada := w.person("ada")
	w.personIs(ada, "idle")
	tracker := w.newTracker("let-me-in", "ada")
	ticket := map[string]any{
		"key": "ACME-12", "title": "Login fails", "url": "https://tracker.example.com/ACME-12", "status": "ready",
		"assignee": map[string]any{"login": "ada"}, "by": map[string]any{"login": "grace-h", "system": "github"},
	}
	eventually(t, soon, func() error { // the office hears of the token with the team
		if code, body := tracker.send("ticket.changed", ticket); code != http.StatusAccepted {
			return fmt.Errorf("the event was answered with %d %s", code, body)
		}
		return nil
	})

	item := &api.WorkItem{}
	eventually(t, soon, func() error {
		var items api.WorkItemList
		if err := cluster.admin.List(t.Context(), &items, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		if len(items.Items) != 1 {
			return fmt.Errorf("there are %d items", len(items.Items))
		}
		*item = items.Items[0]
		return nil
	})
	if s := item.Spec; s.Kind != "assigned" || s.Person != "ada" || s.Subject == nil || s.Subject.Ref != "ACME-12" || s.Subject.URL != ticket["url"] {
		t.Errorf("the item is %+v", s)
	}
	w.state(item, protocol.StateDone)

	for _, stranger := range []string{"mallory", "ada"} { // who is not trusted, and who said it herself
		code, body := tracker.send("ticket.commented", map[string]any{
			"ticket": "ACME-12", "comment": map[string]any{"id": stranger, "author": map[string]any{"login": stranger}, "body": "Do it again!"},
		})
		if code != http.StatusAccepted {
			t.Errorf("a comment of %s was answered with %d %s", stranger, code, body)
		}
	}
	code, body := tracker.send("ticket.commented", map[string]any{
		"ticket": "ACME-12", "comment": map[string]any{"id": "501", "author": map[string]any{"login": "grace-h", "system": "github"}, "body": "Please add a test."},
	})
	if code != http.StatusAccepted || !strings.Contains(body, item.Name) {
		t.Errorf("the comment was answered with %d %s", code, body)
	}
	w.itemIs(item, func(item *api.WorkItem) error {
		if item.Status.Rounds != 2 || item.Status.State != api.WorkItemState(protocol.StateDone) {
			return fmt.Errorf("it is %s after %d rounds", item.Status.State, item.Status.Rounds)
		}
		return nil
	})
	eventually(t, soon, func() error {
		acts, err := os.ReadFile(filepath.Join(w.home(ada), "acts"))
		if err == nil && !strings.Contains(string(acts), "set_field") {
			err = fmt.Errorf("the agent made %s", acts)
		}
		return err
	})

	tracker.token = "let-me-out"
	if code, _ := tracker.send("ticket.changed", ticket); code != http.StatusUnauthorized {
		t.Errorf("a wrong token was answered with %d", code)
	}
}
