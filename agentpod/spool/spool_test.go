package spool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/agentpod/disk"
	"github.com/bullpen-dev/bullpen/office/feed"
)

const patience = time.Minute

// logs is a log that can be read while it is written.
type logs struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logs) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(data)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func open(t *testing.T, dir string, change ...func(*Options)) *Spool {
	t.Helper()
	log := &logs{}
	o := Options{Log: slog.New(slog.NewTextHandler(log, nil))}
	for _, c := range change {
		c(&o)
	}
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the spool's log:\n%s", log)
		}
	})
	return s
}

func text(n int) feed.Entry {
	return feed.Entry{Source: feed.SourceCommand, Format: feed.FormatCommand, Type: "stdout",
		Payload: json.RawMessage(fmt.Sprintf(`{"lines":["line %d"]}`, n))}
}

func sized(n int) feed.Entry {
	e := text(0)
	e.Payload = json.RawMessage(`{"lines":["` + strings.Repeat("x", n-len(`{"lines":[""]}`)) + `"]}`)
	return e
}

func lifecycle(kind, payload string) feed.Entry {
	return feed.Entry{Source: feed.SourceLifecycle, Format: feed.FormatLifecycle, Type: kind, Payload: json.RawMessage(payload)}
}

var theEnd = lifecycle(feed.TypeTurnEnded, `{"status":"completed"}`)

// all reads what a queue has, as it is sent.
func all(t *testing.T, q *Queue) []feed.Entry {
	t.Helper()
	c := cursor{q: q}
	defer c.close()
	var list []feed.Entry
	for seq := q.first; seq < q.next; {
		raw, err := c.read(seq, q.next-1, maxBatch, maxBatchBytes)
		if err != nil || len(raw) == 0 {
			t.Fatalf("at %d: %d entries, %v", seq, len(raw), err)
		}
		for _, entry := range raw {
			var e feed.Entry
			if err := json.Unmarshal(wire(nil, seq, q.meta.Offer, entry), &e); err != nil {
				t.Fatal(err)
			}
			list = append(list, e)
			seq++
		}
	}
	return list
}

func types(list []feed.Entry) []string {
	var out []string
	for _, e := range list {
		out = append(out, e.Type)
	}
	return out
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for limit := time.Now().Add(patience); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestEntriesComeBackAsTheyWereAdded(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	q := s.Begin("item-1", "r1-item-1")
	two := 2
	at := time.Date(2030, 1, 2, 3, 4, 5, 678, time.UTC)
	added := []feed.Entry{
		{At: at, Source: "claude_code", Format: "claude_jsonl@1", Type: "user", Echo: &two,
			Payload: json.RawMessage(`{"z":12345678901234567890.10,"a":"<é\u00e9>","unknown":[1e400,null]}`)},
		{At: at, Source: "codex", Format: "codex_app_server@1", Type: "with \"quotes\"", Payload: json.RawMessage("{\n  \"a\": 1,\n  \"b\" : \"x\\ny\"\n}")},
		{At: at, Format: feed.FormatState, Type: feed.StateGit, Payload: json.RawMessage(`{"repos":[]}`)},
	}
	for _, e := range added {
		q.Append(e)
	}
	got := all(t, q)
	want := []string{`{"z":12345678901234567890.10,"a":"<é\u00e9>","unknown":[1e400,null]}`, `{"a":1,"b":"x\ny"}`, `{"repos":[]}`}
	for i, e := range got {
		if string(e.Payload) != want[i] {
			t.Errorf("payload %d: %s", i, e.Payload)
		}
		expect := added[i]
		expect.Seq, expect.Offer, expect.Payload = int64(i+1), "r1-item-1", e.Payload
		if diff := cmp.Diff(expect, e); diff != "" {
			t.Error(diff)
		}
	}
}

func TestWhatIsNoRecordIsLeftOut(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	q := s.Begin("i", "r1-i")
	for _, payload := range []string{``, `[]`, `"x"`, `{"a":`, `{} {}`, `null`} {
		e := text(1)
		e.Payload = json.RawMessage(payload)
		q.Append(e)
	}
	e := text(1)
	e.Payload = json.RawMessage("{\"a\":\"\xff\xfe\"}")
	q.Append(e)
	got := all(t, q)
	if len(got) != 1 || string(got[0].Payload) != `{"a":"�"}` {
		t.Errorf("got %v", got)
	}
}

func TestARecordThatIsTooLargeLeavesANote(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	q := s.Begin("i", "r1-i")
	q.Append(sized(feed.MaxRecord))
	q.Append(sized(feed.MaxRecord + 1))
	got := all(t, q)
	if len(got[0].Payload) != feed.MaxRecord || got[0].Format != feed.FormatCommand {
		t.Errorf("the largest one was changed: %d bytes of %s", len(got[0].Payload), got[0].Format)
	}
	var note Omitted
	if err := json.Unmarshal(got[1].Payload, &note); err != nil {
		t.Fatal(err)
	}
	if got[1].Type != "stdout" || got[1].Format != FormatSpool || note.Bytes != feed.MaxRecord+1 || note.Format != feed.FormatCommand {
		t.Errorf("the note is %+v of %+v", note, got[1])
	}
}

func TestSegmentsAreRemovedWhenTheOfficeHasThem(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	defer s.Close()
	q := s.Begin("i", "r1-i")
	const count = 50
	for range count {
		q.Append(sized(100_000))
	}
	files := func() int {
		list, err := filepath.Glob(filepath.Join(q.path(), "*"+segmentExt))
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	before := files()
	if before < 4 {
		t.Fatalf("only %d segments", before)
	}
	used := s.used
	for seq := range int64(count + 1) {
		if q.acknowledge(seq) {
			t.Fatal("an open queue is gone")
		}
	}
	if files() != 1 || s.used >= used/4 {
		t.Errorf("%d segments are left, with %d bytes of %d", files(), s.used, used)
	}
	q.End(theEnd)
	if q.acknowledge(count) {
		t.Error("gone before its end was stored")
	}
	if !q.acknowledge(count+1) || s.used != 0 || len(s.all()) != 0 {
		t.Errorf("not gone; %d bytes, %d queues", s.used, len(s.all()))
	}
	if _, err := os.Stat(q.path()); !os.IsNotExist(err) {
		t.Errorf("the folder is there: %v", err)
	}
}

func TestNothingIsAddedAfterTheEnd(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	q := s.Begin("i", "r1-i")
	q.End(theEnd)
	q.Append(text(1))
	q.End(theEnd)
	if got := types(all(t, q)); !cmp.Equal(got, []string{feed.TypeTurnEnded}) {
		t.Errorf("got %v", got)
	}
}

func TestATurnStartsOnceWhateverLifeSaysSo(t *testing.T) {
	dir := t.TempDir()
	started := lifecycle(feed.TypeTurnStarted, "{}")
	for name, leave := range map[string]func(q *Queue){
		"its folder says so": func(*Queue) {},
		"the agent was killed before the folder said so": func(q *Queue) {
			data, err := os.ReadFile(filepath.Join(q.path(), metaName))
			if err != nil {
				t.Fatal(err)
			}
			data = bytes.Replace(data, []byte(`,"started":true`), nil, 1)
			if err := os.WriteFile(filepath.Join(q.path(), metaName), data, 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(dir, name)
			s := open(t, dir)
			q := s.Begin("i", "r1-i")
			q.Append(text(0))
			if !q.Start(started) || q.Start(started) {
				t.Error("it should start once")
			}
			begun := q.Begun()
			leave(q)
			s.Close()

			s = open(t, dir)
			q = s.Begin("i", "r1-i")
			if q.Start(started) {
				t.Error("it started again in the next life")
			}
			if !q.Begun().Equal(begun) {
				t.Errorf("it began at %s, and then at %s", begun, q.Begun())
			}
			s.Close()
			s = open(t, dir)
			if q := s.Begin("i", "r1-i"); q.Start(started) {
				t.Error("it started again in the life after the next")
			}
			if q := s.Begin("i", "r2-i"); !q.Start(started) {
				t.Error("another turn did not start")
			}
			s.Close()
		})
	}
}

func TestTurnsThatWereLeftAreListedUntilTheyEnd(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	s.Begin("done", "r1-done").End(theEnd)
	s.Begin("left", "r1-left").Append(text(1))
	s.Begin("empty", "r1-empty")
	s.Begin("given", "r1-given").Leave()
	if got := s.Left(); !cmp.Equal(got, []Turn{{"given", "r1-given"}}) {
		t.Errorf("in the same life: %v", got)
	}
	s.Close()
	s = open(t, dir)
	want := []Turn{{"left", "r1-left"}, {"empty", "r1-empty"}, {"given", "r1-given"}}
	if got := s.Left(); !cmp.Equal(got, want) {
		t.Errorf("in the next life: %v", got)
	}
	goesOn := s.Begin("left", "r1-left")
	s.Begin("empty", "r1-empty").End(theEnd)
	if got := s.Left(); !cmp.Equal(got, want[2:]) {
		t.Errorf("when one goes on and one has ended: %v", got)
	}
	goesOn.Append(text(2))
	s.Close()
	s = open(t, dir)
	defer s.Close()
	if got := s.Left(); !cmp.Equal(got, []Turn{want[2], want[0]}) {
		t.Errorf("in the life after the next: %v", got)
	}
}

func TestWhatAKillCutIsCutOff(t *testing.T) {
	for name, tail := range map[string]string{
		"nothing":            "",
		"half a line":        "0badcafe 3 {\"at\":\"2030",
		"zeros":              strings.Repeat("\x00", 5000),
		"a line of nonsense": "00000000 3 {}\n",
		"several":            "nonsense\n\n\nmore",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			q := s.Begin("i", "r1-i")
			q.Append(text(1))
			q.Append(text(2))
			s.Close()
			path := q.segmentPath(1)
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteString(tail); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			s = open(t, dir)
			defer s.Close()
			q = s.all()[0]
			if got := all(t, q); len(got) != 2 || got[1].Seq != 2 || q.next != 3 {
				t.Errorf("got %+v, next is %d", got, q.next)
			}
			if data, err := os.ReadFile(path); err != nil || bytes.Contains(data, []byte("nonsense")) {
				t.Errorf("the file has %q, %v", data, err)
			}
		})
	}
}

func TestHalfMadeAndForeignFoldersDoNotKeepASpoolFromOpening(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	s.Begin("i", "r1-i").Append(text(1))
	s.Close()
	for name, content := range map[string]string{
		"000000000007/" + disk.TmpPrefix + metaName: "half", "000000000008/000000000000001.log": "x",
		"000000000009/" + metaName: "no json", "000000000010/" + metaName: "{}", "other/file": "x", "file": "x",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s = open(t, dir)
	defer s.Close()
	if got := s.all(); len(got) != 1 || got[0].meta.Item != "i" {
		t.Errorf("%d queues", len(got))
	}
	for name, want := range map[string]bool{
		"000000000007": false, "000000000008": false, "000000000009.bad": true, "000000000010.bad": true, "other": true, "file": true,
	} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if q := s.Begin("i", "r2-i"); q.number <= 10 {
		t.Errorf("a number was given twice: %d", q.number)
	}
}

func TestDamageOnTheDiskCostsOnlyWhatIsDamaged(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	q := s.Begin("i", "r1-i")
	for n := range 25 {
		e := sized(100_000)
		e.Type = fmt.Sprint("n", n+1)
		q.Append(e)
	}
	q.End(theEnd)
	s.Close()
	first := q.segments[0]
	data, err := os.ReadFile(q.segmentPath(1))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	copy(lines[2][200:], "damage")              // entry 3
	copy(lines[4], make([]byte, len(lines[4]))) // entry 5, and with the line break between them entry 6
	lines = lines[:len(lines)-2]                // and the last one is gone
	if err := os.WriteFile(q.segmentPath(1), bytes.Join(lines, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	defer s.Close()
	got := all(t, s.all()[0])
	if len(got) != 26 || got[25].Type != feed.TypeTurnEnded {
		t.Fatalf("%d entries: %v", len(got), types(got))
	}
	for i, e := range got {
		damaged := i == 2 || i == 4 || i == 5 || int64(i+1) == first.count
		if want := fmt.Sprint("n", i+1); i < 25 && (e.Type == want) == damaged {
			t.Errorf("entry %d is %s", i+1, e.Type)
		}
	}
	var note Dropped
	if err := json.Unmarshal(got[4].Payload, &note); err != nil || got[4].Type != TypeDropped || note.Count != 2 {
		t.Errorf("the note about two: %s, %v", got[4].Payload, err)
	}
	if got[5].Format != feed.FormatState {
		t.Errorf("the second of them is %+v", got[5])
	}
}

func TestEntriesOfManyGoroutinesAllArrive(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	q := s.Begin("i", "r1-i")
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			for n := range 200 {
				e := text(n)
				e.Type = fmt.Sprint("g", g)
				q.Append(e)
			}
		})
	}
	group.Wait()
	next := map[string]int{}
	for _, e := range all(t, q) {
		if want := fmt.Sprintf(`{"lines":["line %d"]}`, next[e.Type]); string(e.Payload) != want {
			t.Fatalf("%s: %s, want %s", e.Type, e.Payload, want)
		}
		next[e.Type]++
	}
	for kind, n := range next {
		if n != 200 {
			t.Errorf("%d of %s", n, kind)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	s, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	q := s.Begin("i", "r1-i")
	e := sized(500)
	for b.Loop() {
		q.Append(e)
		q.acknowledge(q.next - 1)
	}
}
