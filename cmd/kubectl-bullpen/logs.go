package main

// This file has kubectl bullpen logs: the transcript of an item's session, as it is or as it goes on.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/bullpen-dev/bullpen/cmd/kubectl-bullpen/sessions"
	"github.com/bullpen-dev/bullpen/cmd/kubectl-bullpen/transcript"
	"github.com/bullpen-dev/bullpen/office/feed"
)

// logsFlags are what logs can be asked for.
type logsFlags struct {
	officeFlags
	follow, json, full bool
	since              int64
}

func (c *cli) logs() *cobra.Command {
	var f logsFlags
	cmd := &cobra.Command{
		Use:   "logs ITEM",
		Short: "Show what an agent does for an item, and what it thinks",
		Long: "Show what an agent does for an item, and what it thinks: the records of the item's session, turn by turn.\n\n" +
			"With -f it goes on until the session is closed, across lost connections, and shows text while it is written. With --json it prints\n" +
			"the records as the office has them, one a line, for programs. Each has a feed_seq; --since-seq goes on after one.",
		Example: "  kubectl bullpen logs -f fix-login\n" +
			"  kubectl bullpen logs fix-login --json | jq -r 'select(.tools) | .tools[]'",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.since < 0 {
				return fmt.Errorf("--since-seq is the feed_seq of a record, or 0, not %d", f.since)
			}
			return c.withSession(cmd.Context(), f.officeFlags, args[0], func(s *onSession) error { return c.showLogs(cmd.Context(), s, f) })
		},
	}
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "go on until the session is closed")
	cmd.Flags().BoolVar(&f.json, "json", false, "print the records, one a line")
	cmd.Flags().BoolVar(&f.full, "full", false, "show results, outputs and messages whole, and events that say little")
	cmd.Flags().Int64Var(&f.since, "since-seq", 0, "begin after the record with this feed_seq")
	f.add(cmd)
	return cmd
}

// errInterrupted says that the user ended the command.
var errInterrupted = errors.New("interrupted")

// showLogs shows the records of a session in one of two forms.
func (c *cli) showLogs(ctx context.Context, s *onSession, f logsFlags) (err error) {
	var to logSink
	if f.json {
		to = &jsonLog{out: c.out, errOut: c.errOut}
	} else {
		to = c.newTextLog(f.full)
	}
	if f.follow {
		err = s.office.Follow(ctx, s.session.ID, f.since, to)
	} else {
		err = s.read(ctx, f.since, to)
	}
	if ctx.Err() != nil {
		err = errInterrupted
	}
	var pipe *brokenPipe
	if errors.As(err, &pipe) {
		return pipe.err // nobody reads any more
	}
	return errors.Join(to.end(), err)
}

// logSink takes records in one of the forms.
type logSink interface {
	sessions.Watcher
	// end says that nothing comes any more.
	end() error
}

// read shows what there is, page by page.
func (s *onSession) read(ctx context.Context, after int64, to logSink) error {
	began := false
	for {
		page, err := s.office.Records(ctx, s.session.ID, after)
		if err != nil {
			return err
		}
		if !began {
			began = true
			if err := to.Snapshot(&feed.Snapshot{Session: *s.session, EarliestFeedSeq: &page.Earliest}, after, false); err != nil {
				return err
			}
		}
		for i := range page.Records {
			after = page.Records[i].FeedSeq
			if err := to.Record(&page.Records[i], page.Raw[i]); err != nil {
				return err
			}
		}
		if !page.More || len(page.Records) == 0 {
			break
		}
	}
	// What the session has come to, since its records were read.
	now, err := s.office.Session(ctx, s.session.ID)
	if err != nil {
		return err
	}
	return to.Session(now)
}

// brokenPipe says that nothing can be written any more.
type brokenPipe struct{ err error }

func (e *brokenPipe) Error() string { return e.err.Error() }
func (e *brokenPipe) Unwrap() error { return e.err }

// writeTo writes what is not empty.
func writeTo(out io.Writer, text string) error {
	if text == "" {
		return nil
	}
	if _, err := io.WriteString(out, text); err != nil {
		return &brokenPipe{err}
	}
	return nil
}

// textLog shows a transcript to people.
type textLog struct {
	out     io.Writer
	errOut  io.Writer
	printer *transcript.Printer
	// size gives the terminal's, where there is one.
	size          func() (width, height int)
	width, height int
}

func (c *cli) newTextLog(full bool) *textLog {
	t := &textLog{out: c.out, errOut: c.errOut, size: c.terminal}
	t.width, t.height = t.size()
	onTerminal := t.width > 0
	t.printer = transcript.New(transcript.Options{
		Width: t.width, Height: t.height, Live: onTerminal, Color: onTerminal && os.Getenv("NO_COLOR") == "", Full: full, Zone: c.zone,
	})
	return t
}

// terminalOf gives the size of the terminal that a file is, 0 and 0 where it is none, or one that can do nothing.
func terminalOf(out io.Writer) (width, height int) {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return 0, 0
	}
	fd := int(file.Fd()) //nolint:gosec // a file descriptor is small
	if !term.IsTerminal(fd) {
		return 0, 0
	}
	width, height, err := term.GetSize(fd)
	if err != nil || width < 1 {
		return 80, 24
	}
	return width, height
}

// write writes what the printer gives, in the terminal's size.
func (t *textLog) write(text func() string) error {
	if t.width > 0 {
		if width, height := t.size(); width > 0 && (width != t.width || height != t.height) {
			t.width, t.height = width, height
			t.printer.Resize(width, height)
		}
	}
	return writeTo(t.out, text())
}

// Snapshot begins the transcript, or goes on with it after a cut.
func (t *textLog) Snapshot(s *feed.Snapshot, after int64, again bool) error {
	earliest := earliestOf(s)
	return t.write(func() string {
		if again {
			return t.printer.Resumed(&s.Session, earliest, after)
		}
		return t.printer.Begin(&s.Session, earliest, after)
	})
}

// Record shows a record.
func (t *textLog) Record(r *feed.Record, _ []byte) error {
	return t.write(func() string { return t.printer.Record(r) })
}

// Session takes a session object.
func (t *textLog) Session(s *feed.Session) error {
	return t.write(func() string { return t.printer.Session(s) })
}

// Delta shows what is being written.
func (t *textLog) Delta(turn string, d feed.Delta) error {
	return t.write(func() string { return t.printer.Delta(turn, d) })
}

// Cut says that the connection was lost, if that lasts.
func (t *textLog) Cut(why error, pause time.Duration) error {
	if pause < worthTelling {
		return nil
	}
	return t.write(func() string { return t.printer.Note(cutText(why, pause)) })
}

func (t *textLog) end() error { return t.write(t.printer.End) }

// worthTelling is how long a cut has to last for people to hear of it.
const worthTelling = 2 * time.Second

func cutText(why error, pause time.Duration) string {
	return fmt.Sprintf("The connection to the office is lost (%v); the next try is in %s.", why, pause.Round(time.Second))
}

func earliestOf(s *feed.Snapshot) int64 {
	if s.EarliestFeedSeq == nil {
		return 0
	}
	return *s.EarliestFeedSeq
}

// jsonLog prints records for programs.
type jsonLog struct{ out, errOut io.Writer }

// Snapshot says what is missing.
func (j *jsonLog) Snapshot(s *feed.Snapshot, after int64, _ bool) error {
	if earliest := earliestOf(s); earliest > after+1 {
		return writeTo(j.errOut, fmt.Sprintf("The records from %d to %d are not kept any more.\n", after+1, earliest-1))
	}
	return nil
}

// Record prints a record as it came, in one line.
func (j *jsonLog) Record(_ *feed.Record, raw []byte) error {
	if bytes.ContainsAny(raw, "\n\r") {
		// A line break can only stand between the tokens of JSON, where it says nothing.
		var line bytes.Buffer
		if err := json.Compact(&line, raw); err != nil {
			return err
		}
		raw = line.Bytes()
	}
	if _, err := j.out.Write(append(bytes.Clone(raw), '\n')); err != nil {
		return &brokenPipe{err}
	}
	return nil
}

// Session is no record.
func (j *jsonLog) Session(*feed.Session) error { return nil }

// Delta is no record.
func (j *jsonLog) Delta(string, feed.Delta) error { return nil }

// Cut says that the connection was lost, if that lasts.
func (j *jsonLog) Cut(why error, pause time.Duration) error {
	if pause < worthTelling {
		return nil
	}
	return writeTo(j.errOut, cutText(why, pause)+"\n")
}

func (j *jsonLog) end() error { return nil }

// mostText bounds a message that is read from a file, far beyond what the office takes.
const mostText = 4 << 20

// textOf is what the words of a command line say, or what the standard input has.
func (c *cli) textOf(words []string) (string, error) {
	text := ""
	if len(words) == 1 && words[0] == "-" {
		read, err := io.ReadAll(io.LimitReader(c.in, mostText))
		if err != nil {
			return "", fmt.Errorf("read the standard input: %w", err)
		}
		text = string(read)
	} else {
		for i, w := range words {
			if i > 0 {
				text += " "
			}
			text += w
		}
	}
	if len(bytes.TrimSpace([]byte(text))) == 0 {
		return "", errors.New("there is nothing to say: the text is empty")
	}
	return text, nil
}
