package workplace

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/office/feed"
)

func TestLinesAreCutAsATerminalShowsThem(t *testing.T) {
	type line struct {
		Text  string
		Final bool
	}
	for name, test := range map[string]struct {
		writes []string
		want   []line
	}{
		"lines":                           {[]string{"one\ntwo\n"}, []line{{"one", true}, {"two", true}}},
		"a line in pieces":                {[]string{"o", "ne", "\n"}, []line{{"one", true}}},
		"a last line without an end":      {[]string{"one\ntwo"}, []line{{"one", true}, {"two", true}}},
		"progress":                        {[]string{"1%\r2%\r100%, done.\n"}, []line{{"1%", false}, {"2%", false}, {"100%, done.", true}}},
		"ends of another system":          {[]string{"one\r\ntwo\r\n"}, []line{{"one", true}, {"two", true}}},
		"such ends in pieces":             {[]string{"one\r", "\ntwo\r", "\n"}, []line{{"one", true}, {"two", true}}},
		"a return at the very end":        {[]string{"50%\r"}, []line{{"50%", true}}},
		"empty lines":                     {[]string{"\n\none\n"}, []line{{"", true}, {"", true}, {"one", true}}},
		"what is no text":                 {[]string{"a\xffb\n"}, []line{{"a�b", true}}},
		"a character in pieces":           {[]string{"\xe2\x82", "\xac\n"}, []line{{"€", true}}},
		"blanks at the end, as git pads":  {[]string{"remote: 5% \t \rremote: done   \n"}, []line{{"remote: 5%", false}, {"remote: done", true}}},
		"a line that is longer than told": {[]string{strings.Repeat("x", maxLine), "yyy\nz\n"}, []line{{strings.Repeat("x", maxLine) + "…", true}, {"z", true}}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []line
			take := func(text string, final bool) { got = append(got, line{text, final}) }
			var f folder
			for _, w := range test.writes {
				f.write([]byte(w), take)
			}
			f.close(take)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAStepTellsAtMostSoMuchAndItsEndAlways(t *testing.T) {
	for name, test := range map[string]struct {
		lines, length int
		told, left    int
	}{
		"few lines":                 {10, 10, 10, 0},
		"as many as are told":       {headLines + tailLines, 10, headLines + tailLines, 0},
		"more than are told":        {headLines + tailLines + 7, 10, headLines + tailLines, 7},
		"long lines":                {1000, 4000, headBytes/4000 + tailLines, 1000 - headBytes/4000 - tailLines},
		"no more than a few in all": {1, 10, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			told := &recorder{}
			o := newOutput(told, feed.PhaseSetup, feed.StepBuildBase)
			for n := range test.lines {
				_, _ = fmt.Fprintf(o.on(feed.Stdout), "%0*d\n", test.length, n)
			}
			o.close()
			lines := told.lines(feed.StepBuildBase)
			left := 0
			for n, l := range lines {
				if strings.HasPrefix(l, "… ") {
					_, _ = fmt.Sscanf(l, "… %d lines left out", &left)
					lines = append(lines[:n:n], lines[n+1:]...)
					break
				}
			}
			if len(lines) != test.told || left != test.left {
				t.Errorf("%d lines were told and %d left out, not %d and %d", len(lines), left, test.told, test.left)
			}
			if want := fmt.Sprintf("%0*d", test.length, test.lines-1); lines[len(lines)-1] != want {
				t.Error("the last line was not told")
			}
		})
	}
}

func TestOutputIsToldWhileTheProgramRuns(t *testing.T) {
	told := &recorder{}
	o := newOutput(told, feed.PhaseSetup, feed.StepBuildBase)
	defer o.close()
	_, _ = fmt.Fprint(o.on(feed.Stdout), "1\n2\n3\n4\n5\n")
	eventually(t, "the lines are told", func() bool { return len(told.lines(feed.StepBuildBase)) == 5 })
	told.mu.Lock()
	defer told.mu.Unlock()
	if len(told.chunks) != 1 {
		t.Errorf("they came in %d pieces", len(told.chunks))
	}
}

func TestTheTwoStreamsAreToldInOrder(t *testing.T) {
	told := &recorder{}
	o := newOutput(told, feed.PhaseHooks, feed.StepBeforeStart)
	_, _ = fmt.Fprint(o.on(feed.Stdout), "a\nb\n")
	_, _ = fmt.Fprint(o.on(feed.Stderr), "c\n")
	_, _ = fmt.Fprint(o.on(feed.Stdout), "d\n")
	o.close()
	var got []string
	for _, c := range told.chunks {
		got = append(got, c.stream+" "+strings.Join(c.lines, ","))
	}
	if diff := cmp.Diff([]string{"stdout a,b", "stderr c", "stdout d"}, got); diff != "" {
		t.Error(diff)
	}
	if got := o.last(); got != "a\nb\nc\nd" {
		t.Errorf("the last words are %q", got)
	}
}

func TestProgressIsFoldedToAStateNowAndThen(t *testing.T) {
	told := &recorder{}
	o := newOutput(told, feed.PhaseClone, "shop")
	began := time.Now()
	for n := range 50 {
		_, _ = fmt.Fprintf(o.on(feed.Stderr), "Receiving: %d%%\r", n)
	}
	eventually(t, "a state is told", func() bool { return len(told.lines("shop")) == 1 })
	_, _ = fmt.Fprintf(o.on(feed.Stderr), "Receiving: 99%%\rReceiving: 100%%, done.\n")
	o.close()
	lines := told.lines("shop")
	if took := time.Since(began); took < progressPause && len(lines) != 2 || !strings.HasPrefix(lines[0], "Receiving: 4") || lines[len(lines)-1] != "Receiving: 100%, done." {
		t.Errorf("told %q in %s", lines, took)
	}
}

func TestNothingIsToldAfterTheEnd(t *testing.T) {
	told := &recorder{}
	o := newOutput(told, feed.PhaseClone, "shop")
	o.close()
	_, _ = fmt.Fprint(o.on(feed.Stdout), "late\n")
	o.say("later")
	o.close()
	if len(told.chunks) != 0 {
		t.Errorf("told %+v", told.chunks)
	}
}

func TestTheLastWordsAreBounded(t *testing.T) {
	o := newOutput(silent{}, "", "")
	for n := range 10_000 {
		o.say("line %d", n)
	}
	if got := o.last(); len(got) > lastWords || !strings.HasSuffix(got, "line 9999") || !strings.HasPrefix(got, "line ") {
		t.Errorf("got %d bytes: %q", len(got), got)
	}
	o = newOutput(silent{}, "", "")
	o.say("%s", strings.Repeat("€", maxLine))
	if got := o.last(); len(got) > lastWords || strings.Trim(got, "€") != "…" || !strings.HasPrefix(got, "€") {
		t.Errorf("got %d bytes", len(got))
	}
}
