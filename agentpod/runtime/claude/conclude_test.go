package claude

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/agentpod/runtime/process"
	"github.com/bullpen-dev/bullpen/agentpod/runtime/result"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

func TestHowARoundEnds(t *testing.T) {
	failed := process.Exit{Code: 1}
	made := func(kind, text string) string {
		return `{"type":"assistant","error":"` + kind + `","message":{"id":"x","model":"<synthetic>","content":[{"type":"text","text":"` + text + `"}]}}`
	}
	const words = `{"type":"assistant","message":{"id":"a","model":"m","content":[{"type":"text","text":"Half way."}]}}`
	for name, test := range map[string]struct {
		lines   []string
		said    result.Result
		bad     error
		exit    process.Exit
		stopped bool
		stderr  string
		want    ending
	}{
		"the last words are the summary": {lines: []string{words, `{"type":"result","is_error":false,"result":" All done. "}`},
			want: ending{result: runtime.Result{Status: "done", Summary: "All done."}}},
		"a result without words has those before": {lines: []string{words, `{"type":"result","is_error":false,"result":""}`},
			want: ending{result: runtime.Result{Status: "done", Summary: "Half way."}}},
		"no words at all": {lines: []string{`{"type":"result","is_error":false}`},
			want: ending{result: runtime.Result{Status: "done", Summary: "Claude Code finished without a word."}}},
		"what the model left counts": {lines: []string{`{"type":"result","is_error":false,"result":"r"}`},
			said: result.Result{Status: "waiting", Summary: "S", ToReview: []string{"x"}, Links: []protocol.Link{{URL: "https://example.com"}}},
			want: ending{result: runtime.Result{Status: "waiting", Summary: "S", ToReview: []string{"x"}, Links: []protocol.Link{{URL: "https://example.com"}}}}},
		"what cannot be used fails": {lines: []string{`{"type":"result","is_error":false,"result":"r"}`}, bad: errors.New("no good"),
			want: ending{result: runtime.Result{Failed: "Claude Code finished, but the result that the model left cannot be used: no good"}}},
		"how the process ended after its answer does not matter": {lines: []string{`{"type":"result","is_error":false,"result":"r"}`}, exit: failed,
			want: ending{result: runtime.Result{Status: "done", Summary: "r"}}},
		"finished in time though it was to stop": {lines: []string{`{"type":"result","is_error":false,"result":"r"}`}, stopped: true,
			want: ending{result: runtime.Result{Status: "done", Summary: "r"}}},
		"stopped": {lines: []string{words, `{"type":"result","subtype":"error_during_execution","is_error":true}`}, stopped: true,
			want: ending{result: runtime.Result{Status: "interrupted", Summary: "The round was cut short. The last words were: Half way."}}},
		"stopped before a word": {stopped: true, exit: process.Exit{Code: 143},
			want: ending{result: runtime.Result{Status: "interrupted", Summary: "The round was cut short before Claude Code said anything."}}},
		"a session that is not there": {lines: []string{`{"type":"result","is_error":true,"errors":["No conversation found with session ID: x"]}`}, exit: failed,
			want: ending{lost: true}},
		"a session that is not there, told on standard error": {stderr: "No conversation found with session ID: x", exit: failed, want: ending{lost: true}},
		"a limit by its status": {lines: []string{made("rate_limit", "Too many."), `{"type":"result","is_error":true,"api_error_status":429,"result":"Too many."}`},
			want: ending{limited: true, result: runtime.Result{Status: "interrupted", Summary: "A usage limit was reached: Too many. The item goes on when it is over."}}},
		"a limit by its event": {lines: []string{`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected"}}`, `{"type":"result","is_error":true,"result":"Over."}`},
			want: ending{limited: true, result: runtime.Result{Status: "interrupted", Summary: "A usage limit was reached: Over. The item goes on when it is over."}}},
		"an error after a limit that was over is no limit": {lines: []string{`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected"}}`, words,
			`{"type":"result","is_error":true,"result":"Oops.","api_error_status":400}`},
			want: ending{result: runtime.Result{Failed: "The model's API refused the request with status 400: Oops."}}},
		"too many turns": {lines: []string{`{"type":"result","subtype":"error_max_turns","is_error":true,"num_turns":31}`},
			want: ending{result: runtime.Result{Failed: "The round used up its 30 model calls (maxTurns) before it was done. Its session is kept and goes on in the next try."}}},
		"a problem with a name": {lines: []string{made("billing_error", "No credit."), `{"type":"result","is_error":true,"result":"No credit."}`},
			want: ending{result: runtime.Result{Failed: "The account cannot pay for the model. Add credit, or give the person another credential: No credit."}}},
		"a problem with a name of tomorrow": {lines: []string{made("bad_mood", "Not today."), `{"type":"result","is_error":true,"result":"Not today."}`},
			want: ending{result: runtime.Result{Failed: "Claude Code ended with an error: Not today."}}},
		"errors in a list": {lines: []string{`{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["one","two"]}`},
			want: ending{result: runtime.Result{Failed: "Claude Code ended with an error: one; two"}}},
		"no answer": {exit: failed, stderr: "cannot open the config",
			want: ending{result: runtime.Result{Failed: "Claude Code ended before it had answered: exit status 1: cannot open the config"}}},
		"no answer after words, and a signal": {lines: []string{words}, exit: process.Exit{Code: -1, Signal: 9},
			want: ending{result: runtime.Result{Failed: "Claude Code ended before it had answered: killed by signal SIGKILL"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newSession(t)
			s.hears(test.lines...)
			s.said, s.bad = test.said, test.bad
			got := s.conclude(test.exit, test.stopped, test.stderr)
			got.result.Usage = nil
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(ending{}), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestALongSummaryIsCut(t *testing.T) {
	got := clip(strings.Repeat("é", maxSummary))
	if len(got) > maxSummary+len("…") || !strings.HasSuffix(got, "é…") {
		t.Errorf("%d bytes", len(got))
	}
}
