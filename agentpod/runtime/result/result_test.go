package result

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

// write makes a result file.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "result.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWhatAResultFileSays(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want Result
	}{
		"nothing":             {`{}`, Result{}},
		"null is not a value": {`{"summary":null,"status":null,"links":null,"sessionId":null}`, Result{}},
		"all of it": {
			`{"summary":"S","status":"waiting","links":[{"url":"https://example.com/1","title":"T"}],"toReview":["a"],` +
				`"usage":[{"session":"s","models":{"m":{"inputTokens":3}}}],"sessionId":"s"}`,
			Result{
				Summary: "S", Status: "waiting", Links: []protocol.Link{{URL: "https://example.com/1", Title: "T"}},
				ToReview: []string{"a"}, Session: "s",
				Usage: []protocol.SessionUsage{{Session: "s", Models: map[string]protocol.ModelUsage{"m": {InputTokens: 3}}}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Read(write(t, test.text))
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Links) == 0 {
				got.Links = nil
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAFileThatCannotBeUsedSaysWhy(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                            "it is no JSON object",
		`{"sumary":"S"}`:                `unknown field "sumary"; it may have summary, status, links, toReview, usage, sessionId`,
		`{"status":"finished"}`:         `status must be done, waiting, blocked, silent or interrupted, not "finished"`,
		`{"links":[{"url":"shop#1"}]}`:  "links[0].url must be an absolute URL",
		`{"sessionId":7}`:               "sessionId must be a string",
		strings.Repeat(" ", MaxFile+10): "it has more than",
	} {
		if _, err := Read(write(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: got %v, want %s", text, err, want)
		}
	}
	if _, err := Read(t.TempDir()); err == nil {
		t.Error("a folder is no result")
	}
}

func TestThatThereIsNoFileIsNoError(t *testing.T) {
	got, err := Read(filepath.Join(t.TempDir(), "none"))
	if err != nil || !cmp.Equal(got, Result{}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestUsage(t *testing.T) {
	got, err := ParseUsage(`{"session":"s","models":{"m":{"outputTokens":2}}}`)
	want := protocol.SessionUsage{Session: "s", Models: map[string]protocol.ModelUsage{"m": {OutputTokens: 2}}}
	if err != nil || !cmp.Equal(want, got) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, text := range []string{"nonsense", `{"session":"s"},{"session":"t"}`, `{"session":7,"models":{}}`} {
		if _, err := ParseUsage(text); err == nil {
			t.Errorf("%s was taken", text)
		}
	}
}

func TestAPipeIsNoResultFileAndNobodyWaitsForIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "result.json")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := Read(path)
		read <- err
	}()
	select {
	case err := <-read:
		if err == nil || !strings.Contains(err.Error(), "no file") {
			t.Errorf("got %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for somebody to write to the pipe")
	}
}
