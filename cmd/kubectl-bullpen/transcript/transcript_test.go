package transcript

// These tests compare what is shown with files in testdata. With -update they write these files instead; read the difference before you
// commit it.

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/feed/feedtest"
)

var update = flag.Bool("update", false, "write what is shown into testdata")

func TestWhatIsShown(t *testing.T) {
	for name, s := range stories() {
		for form, o := range map[string]Options{"": {Width: 80}, "-pipe": {}, "-narrow": {Width: 34}, "-full": {Width: 80, Full: true}, "-color": {Width: 80, Color: true}} {
			t.Run(name+form, func(t *testing.T) {
				got := tell(New(o), s)
				if o.Width > 0 && !o.Color {
					for l := range strings.SplitSeq(got, "\n") {
						if n := columns(l); n >= o.Width {
							t.Errorf("a line takes %d of %d columns: %s", n, o.Width, l)
						}
					}
				}
				golden(t, name+form, strings.ReplaceAll(got, "\x1b", "␛"))
			})
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("want -, got + (go test ./cmd/kubectl-bullpen/transcript -update writes it):\n%s", diff)
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	s := codexStory()
	for name, test := range map[string]struct {
		earliest, after int64
		says            string
	}{
		"all is there":                                      {1, 0, ""},
		"there is no record yet":                            {0, 0, ""},
		"what came before was seen":                         {40, 39, ""},
		"what came before was seen, and some of it is gone": {40, 60, ""},
		"the beginning is gone":                             {1_041, 0, "The records from 1 to 1,040 are not kept any more"},
		"the beginning was seen, but a part is gone":        {50, 10, "The records from 11 to 49 are not kept any more"},
	} {
		t.Run(name, func(t *testing.T) {
			got := New(Options{}).Begin(&s.session, test.earliest, test.after)
			if strings.Contains(got, "not kept") != (test.says != "") || !strings.Contains(got, test.says) {
				t.Errorf("it says\n%s", got)
			}
			p := New(Options{})
			p.Begin(&s.session, 1, 0)
			again := p.Resumed(&s.session, test.earliest, test.after)
			if strings.Contains(again, "were removed") != (test.says != "") {
				t.Errorf("after a cut, it says\n%s", again)
			}
		})
	}
}

// Duration is shown only where all turns were seen.
func TestTheSumIsOfTheWholeSession(t *testing.T) {
	s := claudeStory()
	if got := tell(New(Options{}), s); !strings.Contains(got, "0.42 USD · 116,445 tokens (12,345 in, 2,100 out, 98,000 cache read, 4,000 cache written) · 2 turns · 1 min 25 s\n") {
		t.Errorf("the sum is not there:\n%s", got)
	}
	p := New(Options{})
	p.Begin(&s.session, 1, 20)
	for i := range s.records[20:] {
		p.Record(&s.records[20+i])
	}
	if got := p.End(); !strings.Contains(got, "116,445 tokens") || strings.Contains(got, "turns") {
		t.Errorf("after a part, the sum is\n%s", got)
	}
}

// Every record that the schema knows can be shown, whatever its payload is like; none breaks the transcript or acts on the terminal.
func TestEveryRecordCanBeShown(t *testing.T) {
	p := New(Options{Width: 60})
	for _, r := range feedtest.Records() {
		if out := p.Record(&r); strings.Contains(out, "\x1b") {
			t.Errorf("%s %s acts on the terminal: %q", r.Source, r.Type, out)
		}
	}
}

func FuzzRecord(f *testing.F) {
	for _, s := range stories() {
		for _, r := range s.records {
			f.Add(r.Format, r.Type, []byte(r.Payload))
		}
	}
	f.Fuzz(func(t *testing.T, format, typ string, payload []byte) {
		if !json.Valid(payload) {
			return
		}
		for _, o := range []Options{{}, {Width: 20, Height: 5, Live: true}, {Width: 50, Full: true}} {
			p := New(o)
			out := p.Record(&feed.Record{Source: feed.SourceCodex, Format: format, Type: typ, Payload: payload})
			for _, r := range out {
				if (r < ' ' && r != '\n' && (!o.Live || r != '\x1b' && r != '\r')) || r == 0x9b || r == 0x7f || turns(r) {
					t.Fatalf("%q is in %q", r, out)
				}
			}
		}
	})
}
