package agent

// These tests are about an office that says no, or what this agent does not understand, and about connections that fail: what
// users of comparable systems report must not be possible here.

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

var allCodes = []protocol.Code{
	protocol.CodeMalformed, protocol.CodeUnknownType, protocol.CodeInvalidMessage, protocol.CodeUnauthenticated, protocol.CodeAuthFailed,
	protocol.CodeVersionMismatch, protocol.CodeReplaced, protocol.CodeUnknownItem, protocol.CodeNotFound, protocol.CodeInvalid,
	protocol.CodeUnsupported, protocol.CodeFailed,
}

// ownRequests are what the agent sends by itself, beside hello; usage windows come from runtimes that have a subscription.
func ownRequests() []protocol.Type {
	var types []protocol.Type
	for _, spec := range protocol.Specs() {
		_, ofPrograms := routes[spec.Type]
		own := spec.SentBy == protocol.Agent && len(spec.AnsweredBy) > 0
		if own && (!ofPrograms || slices.Contains([]protocol.Type{"journal", "progress", "work_status", "report_posted"}, spec.Type)) &&
			spec.Type != protocol.TypeHello && spec.Type != protocol.TypeUsage {
			types = append(types, spec.Type)
		}
	}
	return types
}

func TestEveryRequestAnsweredByEveryErrorLeavesTheAgentAbleToWork(t *testing.T) {
	for _, code := range allCodes {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			o.team = hooked(t, "echo made", "true")
			p := newPlace(t, o, `
				echo line; echo "::session s-$BULLPEN_ITEM_ID m"; echo "::journal j"
				sleep 0.1
				case "$BULLPEN_ITEM_ID" in *odd) exit 3; esac`)
			p.start(func(c *Config) { c.keep, c.clean = -time.Hour, 20*time.Millisecond })
			office, _ := o.arrive()
			office.byHand.Store(true)
			office.send(office.hello, protocol.Welcome{
				ProtocolVersion: protocol.Version, HeartbeatMs: 200, Team: o.team, Resume: []string{},
				Acts: []protocol.Act{anAct("a")}, Reports: []protocol.Report{aReport("r")},
			})
			missing := map[protocol.Type]bool{}
			for _, typ := range ownRequests() {
				missing[typ] = true
			}
			limit := time.After(3 * patience)
			offers := time.NewTicker(15 * time.Millisecond)
			defer offers.Stop()
			for count := 0; ; {
				select {
				case f := <-office.frames:
					typ := f.Message.Type()
					h, ended := f.Message.(protocol.Handback)
					switch {
					case ended && len(missing) == 0 && h.Status == protocol.HandbackDone:
						return
					case missing[typ]:
						delete(missing, typ)
						office.refuse(f.ID, code)
					case typ == protocol.TypeWorkStatus:
						var result protocol.WorkStatusResult
						for _, id := range f.Message.(protocol.WorkStatus).WorkItemIDs {
							result.Items = append(result.Items, protocol.ItemStatus{WorkItemID: id, State: "queued"})
						}
						office.send(f.ID, result)
					case typ == protocol.TypeError || typ == protocol.TypePong:
						t.Errorf("the agent sent %+v", f.Message)
					default:
						office.ack(f.ID)
					}
				case <-offers.C:
					count++
					office.offer(fmt.Sprintf("i%d-%s", count, []string{"even", "odd"}[count%2]))
				case <-office.ended:
					t.Fatalf("the agent hung up: %v; never sent: %v", office.err, missing)
				case <-limit:
					t.Fatalf("the agent works no more; not sent: %v", missing)
				}
			}
		})
	}
}

func TestAHelloAnsweredByAnErrorIsSaidAgain(t *testing.T) {
	for _, code := range allCodes {
		if slices.Contains([]protocol.Code{protocol.CodeAuthFailed, protocol.CodeVersionMismatch, protocol.CodeReplaced}, code) {
			continue // these have tests of their own
		}
		t.Run(string(code), func(t *testing.T) {
			o := newOffice(t)
			newPlace(t, o, "echo bye").start()
			office, _ := o.arrive()
			office.refuse(office.hello, code)
			office.close(websocket.ClosePolicyViolation)
			office = o.welcome()
			office.accepted("i")
			expect[protocol.Handback](office)
		})
	}
}

func TestAnAnswerThatANewerOfficeWordsOtherwiseIsARefusal(t *testing.T) {
	for name, test := range map[string]struct {
		answer string
		errors int
	}{
		"a code that this agent does not know":    {`"type":"error","payload":{"code":"rate_limited","message":"slow down"}`, 0},
		"an answer that this agent does not know": {`"type":"handback_result","payload":{}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			newPlace(t, o, "echo bye").start()
			office, _ := o.arrive()
			office.welcome(o.team, time.Minute)
			office.accepted("i")
			handback := expect[protocol.Handback](office)
			office.write(fmt.Appendf(nil, `{"id":"x","replyTo":%q,%s}`, handback.id, test.answer))
			office.accepted("next") // it does not wait for another answer
			expect[protocol.Handback](office)
			if sent := all[protocol.Error](office); len(sent) != test.errors {
				t.Errorf("the agent sent %+v", sent)
			}
		})
	}
}

func TestTenFailedConnectsAreNotTheEndIfTheOfficeComesLate(t *testing.T) {
	o := newOffice(t)
	o.setDown(true)
	newPlace(t, o, "echo bye").start()
	eventually(t, "ten connects have failed", func() bool { return o.tries.Load() >= 10 })
	o.setDown(false)
	office := o.welcome()
	office.accepted("i")
	expect[protocol.Handback](office)
}

func TestARestartedAgentWithAnOldTokenIsNotAnswered403ForEver(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			o := newOffice(t)
			o.setStatus(status)
			p := newPlace(t, o, "echo bye")
			a := p.start(func(c *Config) { c.timing.retryFirst, c.timing.retryMost = time.Hour, time.Hour })
			eventually(t, "the log says so", func() bool { return strings.Contains(a.logs.String(), fmt.Sprint("the office answered ", status)) })
			a.stop()
			a.wait()
			// The next one reads the token anew, and again when it changes, however long it would have waited.
			a = p.start(func(c *Config) { c.timing.retryFirst, c.timing.retryMost = time.Hour, time.Hour })
			eventually(t, "it is refused too", func() bool { return strings.Contains(a.logs.String(), fmt.Sprint("the office answered ", status)) })
			o.setStatus(0)
			p.write(p.token, "renewed")
			if _, hello := o.arrive(); hello.Token != "renewed" {
				t.Errorf("the token was %q", hello.Token)
			}
		})
	}
}

func TestAConnectionIsNeverIdleSoLongThatAProxyCutsIt(t *testing.T) {
	if defaultTiming.idle >= 30*time.Second {
		t.Errorf("it may be idle for %s; proxies cut connections after 30 s", defaultTiming.idle)
	}
	for name, heartbeat := range map[string]time.Duration{"rare heartbeats": time.Hour, "usual heartbeats": 15 * time.Second} {
		a := &Agent{cfg: Config{timing: defaultTiming}, machine: newMachine(nil), heartbeat: heartbeat, beat: time.NewTicker(time.Hour)}
		a.setBeat()
		a.beat.Stop()
		if a.beatEvery > defaultTiming.idle || a.beatEvery > heartbeat {
			t.Errorf("%s: one every %s", name, a.beatEvery)
		}
	}
	o := newOffice(t)
	newPlace(t, o, "true").start(func(c *Config) { c.timing.idle = 5 * time.Millisecond })
	office, _ := o.arrive()
	office.welcome(o.team, time.Hour)
	for range 5 {
		expect[protocol.Heartbeat](office)
	}
}

func TestALeakedSocketsHeartbeatsDoNotCountAsActivity(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, untilGo)
	p.start()
	first := o.welcome()
	first.accepted("i")
	eventually(t, "the program runs", func() bool { return content(p.file("i", "starts")) == "start" })
	// The office asks to connect again, and keeps its end open: a socket that nobody cares for.
	first.close(websocket.CloseServiceRestart)
	second := o.welcome("i")
	select {
	case <-first.ended:
	case <-time.After(patience):
		t.Fatal("the agent holds two sockets")
	}
	expectWhere(second, func(h protocol.Heartbeat) bool { return h.WorkItemID == "i" })
	p.write(p.file("i", "go"), "")
	second.ack(expect[protocol.Handback](second).id)
	for range 3 { // and one that has nothing to do names nothing that it does
		if h := expect[protocol.Heartbeat](second).message; h.WorkItemID != "" {
			t.Errorf("an idle agent's heartbeat names %s", h.WorkItemID)
		}
	}
}
