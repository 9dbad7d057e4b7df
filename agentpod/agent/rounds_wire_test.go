package agent

// These tests hold the rounds of a real agent with real programs against the office of office_test.go.

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// untilGo is a program that notes its process, and ends well once the file "go" is in its folder.
const untilGo = `
	echo $$ > pid
	echo start >> starts
	until [ -e go ]; do sleep 0.01; done
	echo finished`

func TestAProgramThatFailsFailsTheRoundWithItsLastWords(t *testing.T) {
	o := newOffice(t)
	newPlace(t, o, `echo "trying"; echo "first trouble" >&2; echo "no such branch" >&2; exit 3`).start()
	office := o.welcome()
	office.accepted("i")
	fail := expect[protocol.Fail](office)
	if want := (protocol.Fail{WorkItemID: "i", Reason: "exit status 3: no such branch"}); !cmp.Equal(want, fail.message) {
		t.Error(cmp.Diff(want, fail.message))
	}
}

func TestAKindWithoutReviewSaysSo(t *testing.T) {
	o := newOffice(t)
	newPlace(t, o, `echo swept`).start()
	office := o.welcome()
	office.accepted("i", func(o *protocol.Offer) { o.WorkItem.Kind = "chore" })
	if diff := cmp.Diff([]string{"chore needs no review"}, expect[protocol.Handback](office).message.ToReview); diff != "" {
		t.Error(diff)
	}
}

func TestAHandBackIsSentUntilItIsAnsweredAlwaysTheSame(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, `echo run >> runs; echo "::journal one"; echo "::journal two"; echo bye`)
	p.start()
	office := o.welcome()
	office.accepted("i")
	first := expect[protocol.Handback](office)
	office.refuse(first.id, protocol.CodeFailed) // the store is full
	again := expect[protocol.Handback](office)
	_ = office.ws.Close() // not answered

	office = o.welcome("i")
	last := expect[protocol.Handback](office)
	if first.id != again.id || first.id != last.id {
		t.Errorf("the ids differ: %s, %s, %s", first.id, again.id, last.id)
	}
	if diff := cmp.Diff(first.message, last.message); diff != "" {
		t.Error(diff)
	}
	office.ack(last.id)

	// After the ack the agent is free, and did not run the round again.
	office.accepted("next")
	expect[protocol.Handback](office)
	if got := content(p.file("i", "runs")); got != "run" {
		t.Errorf("the program ran: %q", got)
	}
	for _, j := range all[protocol.Journal](office) {
		if j.WorkItemID == "i" {
			t.Error("an acknowledged journal line was sent again")
		}
	}
}

func TestMessagesArriveInOrderAcrossALostConnection(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, `
		echo "::journal one"
		until [ -e go ]; do sleep 0.01; done
		echo "::journal two"; echo "::journal three"
		echo done-with-it`)
	p.start()
	office := o.welcome()
	office.accepted("i")
	one := expect[protocol.Journal](office)
	o.setDown(true)
	_ = office.ws.Close()
	p.write(p.file("i", "go"), "")
	outbox := filepath.Join(p.home, ".bullpen/state/outbox")
	eventually(t, "four messages wait on disk", func() bool {
		files, _ := filepath.Glob(filepath.Join(outbox, "*.json"))
		return len(files) == 4
	})
	o.setDown(false)
	office = o.welcome("i")
	office.ack(expect[protocol.Handback](office).id)
	var texts []string
	for _, j := range all[protocol.Journal](office) {
		texts = append(texts, j.Text)
	}
	if diff := cmp.Diff([]string{"one", "two", "three"}, texts); diff != "" || one.message.Text != "one" {
		t.Error(diff)
	}
	eventually(t, "the outbox is empty", func() bool {
		files, _ := filepath.Glob(filepath.Join(outbox, "*"))
		return len(files) == 0
	})
}

func TestARoundGoesOnWhereverTheConnectionBreaks(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, untilGo)
	p.start()
	office := o.welcome()
	office.offer("i")
	expect[protocol.Accept](office) // and no answer
	_ = office.ws.Close()

	// The office never saw the accept: it offers again.
	office = o.welcome()
	office.offer("i")
	expect[protocol.Accept](office)
	_ = office.ws.Close()

	// The office took the accept, and its answer was lost.
	office = o.welcome("i")
	eventually(t, "the program runs", func() bool { return content(p.file("i", "starts")) == "start" })
	_ = office.ws.Close()
	office = o.welcome("i")
	p.write(p.file("i", "go"), "")
	if got := expect[protocol.Handback](office).message.Summary; got != "finished" {
		t.Errorf("summary: %q", got)
	}
	if got := content(p.file("i", "starts")); got != "start" {
		t.Errorf("the program was started: %q", got)
	}
}

func TestAnOfferThatIsRepeatedIsAcceptedAgainAndRunsOnce(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, untilGo)
	p.start()
	office := o.welcome()
	office.accepted("i")
	office.accepted("i")
	eventually(t, "the program runs", func() bool { return content(p.file("i", "starts")) == "start" })
	office.offer("other")
	if got := expect[protocol.Decline](office); got.message.WorkItemID != "other" || !strings.Contains(got.message.Reason, "item i") {
		t.Errorf("declined with %+v", got.message)
	}
	p.write(p.file("i", "go"), "")
	expect[protocol.Handback](office)
	if got := content(p.file("i", "starts")); got != "start" {
		t.Errorf("the program was started: %q", got)
	}
}

func TestWhatTheOfficeNoLongerListsIsEnded(t *testing.T) {
	// The program has a child that ignores SIGTERM, in a session of its own.
	const stubborn = `
		setsid sh -c 'trap "" TERM; echo $$ > child; while :; do sleep 0.01; done' &
		` + untilGo
	for name, drop := range map[string]func(*office, *peer) *peer{
		"after a close that asks to connect again": func(o *office, p *peer) *peer {
			p.close(websocket.CloseServiceRestart)
			return o.welcome()
		},
		"after a lost connection": func(o *office, p *peer) *peer {
			_ = p.ws.Close()
			return o.welcome()
		},
		"when a heartbeat is answered with invalid": func(_ *office, p *peer) *peer {
			beat := expectWhere(p, func(h protocol.Heartbeat) bool { return h.WorkItemID == "i" })
			p.refuse(beat.id, protocol.CodeInvalid)
			return p
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			p := newPlace(t, o, stubborn)
			p.start()
			office, _ := o.arrive()
			office.byHand.Store(strings.Contains(name, "heartbeat"))
			office.welcome(o.team, 2*time.Second)
			office.accepted("i")
			eventually(t, "the program and its child run", func() bool {
				return content(p.file("i", "starts")) != "" && content(p.file("i", "child")) != ""
			})
			office = drop(o, office)
			// The next offer comes at once, and waits until the old program is gone.
			office.offer("next")
			office.ack(expect[protocol.Accept](office).id)
			for _, file := range []string{"pid", "child"} {
				if alive(t, p.file("i", file)) {
					t.Errorf("the process in %s still runs", file)
				}
			}
			p.write(p.file("next", "go"), "")
			if got := expect[protocol.Handback](office).message.WorkItemID; got != "next" {
				t.Errorf("%s was handed back", got)
			}
		})
	}
}

func TestACanceledProgramThatIgnoresSIGTERMDoesNotUseItsGrace(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, `trap "" TERM`+untilGo)
	p.start(func(c *Config) { c.Grace = time.Hour })
	office := o.welcome()
	office.accepted("i")
	eventually(t, "the program runs", func() bool { return content(p.file("i", "starts")) == "start" })
	office.close(websocket.CloseServiceRestart)
	office = o.welcome()
	office.accepted("next")
	if alive(t, p.file("i", "pid")) {
		t.Error("the program runs")
	}
}

func TestAnItemThatWasDroppedCanComeBackAtOnce(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, untilGo)
	p.start()
	office := o.welcome()
	office.accepted("i")
	eventually(t, "the program runs", func() bool { return content(p.file("i", "starts")) == "start" })
	office.close(websocket.CloseServiceRestart)
	office = o.welcome()
	office.accepted("i")
	eventually(t, "the program runs anew", func() bool { return content(p.file("i", "starts")) == "start\nstart" })
	p.write(p.file("i", "go"), "")
	office.ack(expect[protocol.Handback](office).id)
	if n := len(all[protocol.Handback](office)); n != 1 {
		t.Errorf("%d hand-backs", n)
	}
}

func TestUsageOfADroppedRoundIsReported(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, `echo '::usage {"session":"s","models":{"m":{"inputTokens":9}}}'`+untilGo)
	p.start()
	office := o.welcome()
	office.accepted("i")
	eventually(t, "the program runs", func() bool { return content(p.file("i", "starts")) == "start" })
	office.close(websocket.CloseServiceRestart)
	office = o.welcome()
	handback := expect[protocol.Handback](office).message
	if handback.Status != protocol.HandbackInterrupted || len(handback.Usage) != 1 || handback.Usage[0].Models["m"].InputTokens != 9 {
		t.Errorf("handed back %+v", handback)
	}
}

func TestAnUnknownItemFailsWithTheReason(t *testing.T) {
	o := newOffice(t)
	newPlace(t, o, untilGo).start()
	office := o.welcome("never-seen")
	fail := expect[protocol.Fail](office)
	if fail.message.WorkItemID != "never-seen" || !strings.Contains(fail.message.Reason, "home volume was lost") {
		t.Errorf("failed with %+v", fail.message)
	}
}

func TestAnEndingThatTheOfficeForgotIsSaidAgain(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, `echo run >> runs; echo bye`)
	p.start()
	office := o.welcome()
	office.accepted("i")
	first := expect[protocol.Handback](office)
	office.ack(first.id)
	office.accepted("other") // the ack was taken
	office.ack(expect[protocol.Handback](office).id)
	office.close(websocket.CloseGoingAway)
	office = o.welcome("i") // restored from a backup
	again := expect[protocol.Handback](office)
	if diff := cmp.Diff(first.message, again.message); diff != "" {
		t.Error(diff)
	}
	if got := content(p.file("i", "runs")); got != "run" {
		t.Errorf("the program ran: %q", got)
	}
}

func TestAHandBackThatCannotBeReadBecomesAFail(t *testing.T) {
	o := newOffice(t)
	newPlace(t, o, `echo bye`).start()
	office := o.welcome()
	office.accepted("i")
	office.refuse(expect[protocol.Handback](office).id, protocol.CodeInvalidMessage)
	if fail := expect[protocol.Fail](office).message; !strings.Contains(fail.Reason, "because the test says so") {
		t.Errorf("failed with %q", fail.Reason)
	}
}

func TestARefusedHandBackIsDroppedAndTheAgentGoesOn(t *testing.T) {
	for _, code := range []protocol.Code{protocol.CodeInvalid, protocol.CodeUnknownItem} {
		t.Run(string(code), func(t *testing.T) {
			o := newOffice(t)
			newPlace(t, o, `echo bye`).start()
			office := o.welcome()
			office.accepted("i")
			office.refuse(expect[protocol.Handback](office).id, code)
			office.accepted("next")
			if got := expect[protocol.Handback](office).message.WorkItemID; got != "next" {
				t.Errorf("%s was handed back", got)
			}
		})
	}
}

func TestARefusedAcceptLeavesTheAgentFree(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, `echo run >> runs`)
	p.start()
	office := o.welcome()
	office.offer("canceled")
	office.refuse(expect[protocol.Accept](office).id, protocol.CodeInvalid)
	office.offer("later")
	accept := expect[protocol.Accept](office)
	office.refuse(accept.id, protocol.CodeFailed) // the store is full; the agent asks again
	accept = expect[protocol.Accept](office)
	office.ack(accept.id)
	expect[protocol.Handback](office)
	if content(p.file("canceled", "runs")) != "" || content(p.file("later", "runs")) != "run" {
		t.Error("the wrong item ran")
	}
}

func TestAHeartbeatNamesTheItemWhileItIsWorked(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, untilGo)
	p.start()
	office, _ := o.arrive()
	office.welcome(o.team, 100*time.Millisecond)
	if got := expect[protocol.Heartbeat](office).message.WorkItemID; got != "" {
		t.Errorf("an idle agent works on %q", got)
	}
	office.accepted("i")
	for range 10 {
		expectWhere(office, func(h protocol.Heartbeat) bool { return h.WorkItemID == "i" })
	}
	p.write(p.file("i", "go"), "")
	expect[protocol.Handback](office)
}

func TestProgressKeepsItsLastLineWhileTheOfficeIsAway(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, `
		echo first
		until [ -e go ]; do sleep 0.01; done
		for i in $(seq 200); do echo "step $i"; done
		echo ready > ready
		until [ -e end ]; do sleep 0.01; done`)
	p.start()
	office := o.welcome()
	office.accepted("i")
	office.ack(expectWhere(office, func(m protocol.Progress) bool { return m.Text == "first" }).id)
	o.setDown(true)
	_ = office.ws.Close()
	p.write(p.file("i", "go"), "")
	eventually(t, "the program said all", func() bool { return content(p.file("i", "ready")) != "" })
	o.setDown(false)
	office = o.welcome("i")
	office.ack(expectWhere(office, func(m protocol.Progress) bool { return m.Text == "step 200" }).id)
	if n := len(all[protocol.Progress](office)); n > 3 {
		t.Errorf("%d lines of progress were sent for 200", n)
	}
	p.write(p.file("i", "end"), "")
	expect[protocol.Handback](office)
}

func TestATextThatIsTooLongIsCutAndSaysSo(t *testing.T) {
	o := newOffice(t)
	// Each of these bytes takes six in JSON, so the line does not fit a frame.
	newPlace(t, o, `printf '::journal '; head -c 250000 /dev/zero | tr '\0' '\001'; echo; echo bye`).start()
	office, _ := o.arrive()
	office.welcome(o.team, time.Minute)
	office.accepted("i")
	office.ack(expect[protocol.Handback](office).id)
	lines := all[protocol.Journal](office)
	if len(lines) != 1 || len(lines[0].Text) < 100_000 || !strings.HasSuffix(lines[0].Text, cutNote) {
		t.Fatalf("%d lines of journal: %.80q", len(lines), lines)
	}
}

func TestAnOfferThatCannotBeKeptIsDeclined(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, `echo run >> runs`)
	p.start()
	office := o.welcome()
	expect[protocol.DoctorReport](office)
	items := filepath.Join(p.home, ".bullpen/state/items")
	if err := os.Remove(items); err != nil {
		t.Fatal(err)
	}
	p.write(items, "not a folder")
	office.offer("i")
	decline := expect[protocol.Decline](office)
	if !strings.Contains(decline.message.Reason, "home cannot be written") {
		t.Errorf("declined with %q", decline.message.Reason)
	}
	office.ack(decline.id)
	if err := os.Remove(items); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(items, 0o750); err != nil {
		t.Fatal(err)
	}
	office.accepted("i")
	expect[protocol.Handback](office)
}

func TestHooksPrepareTheFolderOnceAndEveryRound(t *testing.T) {
	o := newOffice(t)
	o.team = protocol.Raw(`{"name":"web","environment":{"hooks":{
		"build_base":"echo base >> built; echo $BULLPEN_ITEM_ID >> items",
		"after_checkout":"echo checkout >> order; cat $BULLPEN_BASE_DIR/built >> order",
		"before_start":"echo before $BULLPEN_ROUND >> order"}}}`)
	p := newPlace(t, o, `echo run >> order; cat "$BULLPEN_BASE_DIR/built" >> base`)
	p.start()
	office := o.welcome()
	for range 2 {
		office.accepted("i")
		office.ack(expect[protocol.Handback](office).id)
	}
	if got, want := content(p.file("i", "order")), "checkout\nbase\nbefore 1\nrun\nbefore 2\nrun"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := content(p.file("i", "base")); got != "base\nbase" {
		t.Errorf("the base was built more than once: %q", got)
	}
}

func TestAHookThatFailsFailsTheRoundWithItsOutput(t *testing.T) {
	o := newOffice(t)
	o.team = protocol.Raw(`{"name":"web","environment":{"hooks":{"before_start":"echo no disk; exit 4"}}}`)
	p := newPlace(t, o, `echo run > ran`)
	p.start()
	office := o.welcome()
	office.accepted("i")
	want := protocol.Fail{WorkItemID: "i", Reason: "the hook before_start failed: exit status 4: no disk"}
	if diff := cmp.Diff(want, expect[protocol.Fail](office).message); diff != "" {
		t.Error(diff)
	}
	if content(p.file("i", "ran")) != "" {
		t.Error("the program ran all the same")
	}
}

func TestFoldersOfFinishedItemsGoAndOthersStay(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, `echo run >> runs`)
	a := p.start()
	office := o.welcome()
	states := map[string]protocol.ItemState{
		"done": "done", "canceled": "canceled", "gone": protocol.ItemUnknown, "theirs": protocol.ItemNotYours,
		"waiting": "waiting", "blocked": "blocked", "queued": "queued",
	}
	for id := range states {
		office.accepted(id)
		office.ack(expect[protocol.Handback](office).id)
	}
	a.stop()
	a.wait()

	p.start(func(c *Config) { c.keep = -time.Hour })
	office = o.welcome()
	ask := expect[protocol.WorkStatus](office)
	var result protocol.WorkStatusResult
	for _, id := range ask.message.WorkItemIDs {
		result.Items = append(result.Items, protocol.ItemStatus{WorkItemID: id, State: states[id]})
	}
	office.send(ask.id, result)
	eventually(t, "three folders are left", func() bool {
		left, _ := filepath.Glob(filepath.Join(p.home, ".bullpen/items/*"))
		trash, _ := filepath.Glob(filepath.Join(p.home, ".bullpen/trash/*"))
		return len(left) == 3 && len(trash) == 0
	})
	for _, id := range []string{"waiting", "blocked", "queued"} {
		if content(p.file(id, "runs")) != "run" {
			t.Errorf("the folder of the %s item is gone", id)
		}
	}
}

func TestTheEnvironmentTellsAProgramWhatItNeeds(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, `cat "$BULLPEN_TEAM_PAGE" > page; cat "$BULLPEN_TEAM_FILE" > team; env > env`)
	p.start()
	office := o.welcome()
	office.accepted("../../escape")
	expect[protocol.Handback](office)
	dir := filepath.Join(p.home, ".bullpen/items", fileName("../../escape"))
	if page := content(filepath.Join(dir, "page")); !strings.Contains(page, "Be kind.") || !strings.Contains(page, "You are ada (ada), Developer.") {
		t.Errorf("TEAM.md is %q", page)
	}
	if got := content(filepath.Join(dir, "team")); got != teamJSON {
		t.Errorf("team.json is %q", got)
	}
	env := content(filepath.Join(dir, "env"))
	for _, want := range []string{contract.EnvItemID + "=../../escape", contract.EnvItemDir + "=" + dir, contract.EnvPerson + "=ada"} {
		if !strings.Contains(env, want) {
			t.Errorf("%s is missing in the environment", want)
		}
	}
}
