package agent

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

func TestAnOfferIsWorkedAndHandedBack(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, `
		cat > offer.json
		echo "$BULLPEN_ITEM_ID $BULLPEN_ROUND $BULLPEN_SESSION_ID $BULLPEN_MODEL" >> rounds
		env > env
		pwd > pwd
		echo "::session s-1 big-1"
		echo "::journal looked around"
		echo '::usage {"session":"s-1","models":{"big-1":{"inputTokens":5,"outputTokens":7}}}'
		echo "all done"`)
	p.start()
	office := o.welcome()
	office.offer("item-1", func(o *protocol.Offer) { o.SessionID = "s-0" })
	accept := expect[protocol.Accept](office)
	if diff := cmp.Diff(protocol.Accept{WorkItemID: "item-1", Runtime: "command", Model: "small"}, accept.message); diff != "" {
		t.Error(diff)
	}
	if got := content(p.file("item-1", "rounds")); got != "" {
		t.Errorf("the program ran before the accept was acknowledged: %q", got)
	}
	office.ack(accept.id)
	handback := expect[protocol.Handback](office)
	office.ack(handback.id)
	want := protocol.Handback{
		WorkItemID: "item-1", Summary: "all done", Status: protocol.HandbackDone, Links: []protocol.Link{},
		Usage: []protocol.SessionUsage{{Session: "s-1", Models: map[string]protocol.ModelUsage{
			"big-1": {InputTokens: 5, OutputTokens: 7},
		}}},
	}
	if diff := cmp.Diff(want, handback.message); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]protocol.Session{{WorkItemID: "item-1", SessionID: "s-1", Model: "big-1"}},
		all[protocol.Session](office)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]protocol.Journal{{WorkItemID: "item-1", Text: "looked around"}},
		all[protocol.Journal](office)); diff != "" {
		t.Error(diff)
	}

	office.accepted("item-1", func(o *protocol.Offer) { o.SessionID = "s-1" })
	office.ack(expect[protocol.Handback](office).id)
	if got, want := content(p.file("item-1", "rounds")), "item-1 1 s-0 small\nitem-1 2 s-1 small"; got != want {
		t.Errorf("rounds: got %q, want %q", got, want)
	}
	if got, want := content(p.file("item-1", "pwd")), filepath.Dir(p.file("item-1", "pwd")); got != want {
		t.Errorf("the program ran in %q, want %q", got, want)
	}
	if env := content(p.file("item-1", "env")); strings.Contains(env, p.token) {
		t.Error("the program's environment tells where the token is")
	}
	var offer struct {
		WorkItem struct{ ID string } `json:"workItem"`
	}
	if err := json.Unmarshal([]byte(content(p.file("item-1", "offer.json"))), &offer); err != nil || offer.WorkItem.ID != "item-1" {
		t.Errorf("the program was given %+v, %v", offer, err)
	}
}
