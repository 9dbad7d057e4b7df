package binaries

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// A step is one line of progress: on a terminal its seconds tick, elsewhere it
// is printed when it starts and when it ends.
type step struct {
	out   io.Writer
	title string
	live  bool
}

func newStep(out io.Writer, title string) step {
	file, ok := out.(*os.File)
	return step{out: out, title: title, live: ok && term.IsTerminal(int(file.Fd()))}
}

// run does the work and shows how long it takes.
func (s step) run(work func() error) error {
	start := time.Now()
	done := make(chan error, 1)
	go func() { done <- work() }()

	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	s.show("", start)
	for {
		select {
		case err := <-done:
			if err != nil {
				s.finish("failed", start)
			} else {
				s.finish("ready", start)
			}
			return err
		case <-ticks.C:
			if s.live {
				s.show("", start)
			}
		}
	}
}

func (s step) show(state string, start time.Time) {
	if s.live {
		_, _ = fmt.Fprintf(s.out, "\r\033[K%s %.0f s %s", s.title, time.Since(start).Seconds(), state)
		return
	}
	_, _ = fmt.Fprintf(s.out, "%s ...\n", s.title)
}

func (s step) finish(state string, start time.Time) {
	if s.live {
		s.show(state, start)
		_, _ = fmt.Fprintln(s.out)
		return
	}
	_, _ = fmt.Fprintf(s.out, "%s %s after %.0f s\n", s.title, state, time.Since(start).Seconds())
}
