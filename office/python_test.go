package office_test

// These tests run the example agent in Python, which was written from docs/protocol.md alone, against a real office.

import (
	"crypto/tls"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/pki"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

// example is the example agent of one person, with a home that outlives its process.
type example struct {
	b    *bench
	home string
	env  []string
	cmd  *exec.Cmd
	out  *lockedBuffer
}

func (b *bench) example() *example {
	b.t.Helper()
	home := b.t.TempDir()
	b.must(os.WriteFile(filepath.Join(home, "token"), []byte("token-ada\n"), 0o600))
	return &example{b: b, home: home, out: &lockedBuffer{to: b.t.Output()}}
}

// start runs the agent.
func (e *example) start() {
	e.b.t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		e.b.t.Fatal("python3 is not in PATH: the example agent in examples/agents/python needs it, and so does this test. Install Python 3.10 or newer.")
	}
	script, err := filepath.Abs("../examples/agents/python/agent.py")
	e.b.must(err)
	e.cmd = exec.Command(python, script)
	e.cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + e.home, "PYTHONDONTWRITEBYTECODE=1", "AGENT_STEP_SECONDS=0.1",
		"BULLPEN_OFFICE_URL=" + strings.Replace(e.b.url, "ws", "http", 1), "BULLPEN_NAMESPACE=" + shop.Namespace, "BULLPEN_TEAM=" + shop.Name,
		"BULLPEN_PERSON=ada", "BULLPEN_TOKEN_FILE=" + filepath.Join(e.home, "token"),
	}
	e.cmd.Env = append(e.cmd.Env, e.env...)
	e.cmd.Stdout, e.cmd.Stderr = e.out, e.out
	e.b.must(e.cmd.Start())
	cmd := e.cmd
	e.b.t.Cleanup(func() { _ = cmd.Process.Kill() })
}

// ended waits until the agent has ended, and gives its exit status.
func (e *example) ended() int {
	e.b.t.Helper()
	done := make(chan error, 1)
	go func() { done <- e.cmd.Wait() }()
	select {
	case err := <-done:
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			e.b.t.Fatal(err)
		}
		return e.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		e.b.t.Fatal("the agent does not end")
		return 0
	}
}

// until waits until an item is as it should be.
func (b *bench) until(name, what string, is func(model.Item) bool) model.Item {
	b.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		it := b.item(name)
		if is(it) {
			return it
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("%s is not %s: it is %s, %q, %q", name, what, it.State, it.Progress, it.Summary)
		}
	}
}

func isDone(it model.Item) bool { return it.State == protocol.StateDone }

// hasCounted says that a round of the example is in its middle.
func hasCounted(it model.Item) bool { return strings.HasPrefix(it.Progress, "counted ") }

// words is what is asked of the example.
func words(n int) func(*model.ItemFacts) {
	return func(f *model.ItemFacts) { f.Spec.Body = strings.Repeat("word ", n) }
}

func TestAnAgentWrittenFromThePageWorksAnItemOverALostConnection(t *testing.T) {
	b := open(t, beats(500*time.Millisecond))
	b.apply("count", words(12))
	b.must(b.store.Update(t.Context(), func(tx store.Tx) error {
		ada := model.PersonKey{Team: shop, Handle: "ada"}
		return errors.Join(
			tx.PutAct(model.Act{ID: "act-1", Person: ada, Ops: []protocol.Raw{protocol.Raw(`{"op":"move"}`)}, CreatedAt: time.Now()}),
			tx.PutReport(model.Report{ID: "report-1", Person: ada, ItemID: "uid-count", Kind: protocol.ReportResult, Text: "all is well", CreatedAt: time.Now()}))
	}))
	network := b.through(0)
	e := b.example()
	e.start()
	b.until("count", "in its middle", hasCounted)
	network.sever()
	it := b.until("count", "done", isDone)
	if it.Rounds != 1 || it.LostRounds != 0 || it.Failures != 0 {
		t.Errorf("%d rounds, %d lost, %d failures", it.Rounds, it.LostRounds, it.Failures)
	}
	if it.Summary != "What was asked has 12 words." || len(it.ToReview) != 1 || it.SessionID != "session-uid-count" {
		t.Errorf("it was handed back as %q, to review %v, with session %q", it.Summary, it.ToReview, it.SessionID)
	}
	if it.Usage.InputTokens != 12 || it.Usage.OutputTokens != 1 {
		t.Errorf("usage is %+v", it.Usage)
	}
	if journal := b.journal("uid-count"); len(journal) != 1 {
		t.Errorf("the journal is %v", journal)
	}
	b.must(b.store.View(t.Context(), func(r store.Reader) error {
		act, err := r.Act(shop, "act-1")
		report, err2 := r.Report("report-1")
		if act.AnsweredAt.IsZero() || act.OK || !strings.Contains(act.Error, "no tracker") || report.PostedAt.IsZero() {
			t.Errorf("the act is %+v, the report %+v", act, report)
		}
		return errors.Join(err, err2)
	}))
	if n := strings.Count(e.out.String(), "report on uid-count: all is well"); n != 1 {
		t.Errorf("the report was posted %d times", n)
	}
	b.apply("another", words(1))
	b.until("another", "done", isDone)
}

func TestAnAgentWrittenFromThePageRunsARoundAgainAfterItWasKilled(t *testing.T) {
	b := open(t, beats(500*time.Millisecond))
	b.apply("count", words(8))
	e := b.example()
	e.start()
	b.until("count", "in its middle", hasCounted)
	b.must(e.cmd.Process.Kill())
	e.ended()
	e.start()
	if it := b.until("count", "done", isDone); it.Rounds != 1 || it.LostRounds != 0 {
		t.Errorf("%d rounds, %d lost", it.Rounds, it.LostRounds)
	}
}

func TestAnAgentWrittenFromThePageEndsWhatIsNotWantedAndHandsBackWhenItIsStopped(t *testing.T) {
	b := open(t, beats(500*time.Millisecond))
	b.apply("count", words(1000))
	e := b.example()
	e.start()
	b.until("count", "in its middle", hasCounted)
	b.apply("count", words(1000), func(f *model.ItemFacts) { f.Spec.Cancel = true })
	b.apply("next", words(1000))
	b.until("next", "in its middle", hasCounted)
	b.must(e.cmd.Process.Signal(syscall.SIGTERM))
	if code := e.ended(); code != 0 {
		t.Errorf("it exited with %d", code)
	}
	it := b.until("next", "handed back", func(it model.Item) bool { return it.State == protocol.StateQueued })
	if !it.Front || !it.Interrupted || it.Failures != 0 {
		t.Errorf("it is in front: %v, interrupted: %v, failures: %d", it.Front, it.Interrupted, it.Failures)
	}
}

func TestAnAgentWrittenFromThePageGivesWayToANewerOne(t *testing.T) {
	b := open(t, beats(500*time.Millisecond))
	b.apply("count", words(1000))
	e := b.example()
	e.start()
	b.until("count", "in its middle", hasCounted)
	newer, welcome := b.connect("ada")
	if code := e.ended(); code != 1 {
		t.Errorf("it exited with %d", code)
	}
	if len(welcome.Resume) != 1 {
		t.Errorf("resume is %v", welcome.Resume)
	}
	newer.ok(protocol.Heartbeat{WorkItemID: "uid-count"})
}

func TestAnAgentWrittenFromThePageSpeaksTLSAndTrustsOnlyTheOfficesCA(t *testing.T) {
	b := open(t)
	b.apply("count", words(1))
	issue := func() (tls.Certificate, []byte) {
		files, _, _, err := pki.Plan(nil, []string{"127.0.0.1"}, time.Now())
		b.must(err)
		pair, err := tls.X509KeyPair(files["tls.crt"], files["tls.key"])
		b.must(err)
		return pair, files["ca.crt"]
	}
	pair, ca := issue()
	_, stranger := issue()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}})
	b.must(err)
	b.wired(listener, 0)
	b.url = "wss://" + listener.Addr().String()
	e := b.example()
	caFile := filepath.Join(e.home, "ca.crt")
	e.env = []string{"BULLPEN_CA_FILE=" + caFile}
	b.must(os.WriteFile(caFile, stranger, 0o600))
	e.start()
	for deadline := time.Now().Add(patience); !strings.Contains(e.out.String(), "cannot be reached"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not complain about an office of another CA")
		}
	}
	b.must(os.WriteFile(caFile, ca, 0o600)) // rotated: read at every dial
	b.until("count", "done", isDone)
}

func TestAnAgentWrittenFromThePageWaitsForAnotherToken(t *testing.T) {
	b := open(t, beats(500*time.Millisecond))
	b.apply("count", words(1))
	e := b.example()
	token := filepath.Join(e.home, "token")
	b.must(os.WriteFile(token, []byte("old"), 0o600))
	e.start()
	for deadline := time.Now().Add(patience); b.counted("bullpen_office_auth_failures_total", "reason", string(protocol.CodeAuthFailed)) == 0; {
		if time.Now().After(deadline) {
			t.Fatal("it never came")
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.must(os.WriteFile(token, []byte("token-ada"), 0o600))
	b.until("count", "done", isDone)
}
