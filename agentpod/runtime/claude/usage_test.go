package claude

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

func TestUsageIsRightToTheToken(t *testing.T) {
	start := func(id string, in int) string {
		return `{"type":"stream_event","event":{"type":"message_start","message":{"id":"` + id + `","model":"m-20260301","usage":{"input_tokens":` + compact(t, in) + `,"cache_read_input_tokens":2,"cache_creation_input_tokens":1,"output_tokens":1}}}}`
	}
	part := func(id string, in, out int) string {
		return `{"type":"assistant","message":{"id":"` + id + `","model":"m-20260301","content":[],"usage":{"input_tokens":` + compact(t, in) + `,"output_tokens":` + compact(t, out) + `}}}`
	}
	end := func(out int) string {
		return `{"type":"stream_event","event":{"type":"message_delta","usage":{"output_tokens":` + compact(t, out) + `}}}`
	}
	result := func(in, out int, cost string) string {
		return `{"type":"result","is_error":false,"modelUsage":{"m":{"inputTokens":` + compact(t, in) + `,"outputTokens":` + compact(t, out) + `,"cacheReadInputTokens":4,"cacheCreationInputTokens":2` + cost + `}}}`
	}
	for name, test := range map[string]struct {
		base  map[string]total
		lines []string
		want  map[string]total
	}{
		"a message counts once, with its last figures": {nil,
			[]string{start("a", 100), part("a", 100, 1), part("a", 100, 1), end(40), part("a", 100, 1), start("b", 30), part("b", 30, 1), end(5)},
			map[string]total{"m-20260301": {Input: 130, Output: 45, CacheRead: 4, CacheCreation: 2, Uncosted: true}}},
		"a result knows better": {nil,
			[]string{start("a", 100), part("a", 100, 1), end(40), result(130, 45, `,"costUSD":0.25`)},
			map[string]total{"m": {Input: 130, Output: 45, CacheRead: 4, CacheCreation: 2, CostUSD: 0.25}}},
		"a result's totals are those of the process": {nil,
			[]string{start("a", 100), end(40), result(100, 40, `,"costUSD":0.25`), result(130, 45, `,"costUSD":0.5`), `{"type":"result","modelUsage":{}}`},
			map[string]total{"m": {Input: 130, Output: 45, CacheRead: 4, CacheCreation: 2, CostUSD: 0.5}}},
		"calls after a result are on top": {nil,
			[]string{start("a", 100), end(40), result(100, 40, `,"costUSD":0.25`), start("b", 7), end(3)},
			map[string]total{"m": {Input: 100, Output: 40, CacheRead: 4, CacheCreation: 2, CostUSD: 0.25},
				"m-20260301": {Input: 7, Output: 3, CacheRead: 2, CacheCreation: 1, Uncosted: true}}},
		"a call that was cut short is in no result, and nobody tells what it cost": {nil,
			[]string{start("a", 100), part("a", 100, 1), `{"type":"result","is_error":true,"modelUsage":{}}`},
			map[string]total{"m-20260301": {Input: 100, Output: 1, CacheRead: 2, CacheCreation: 1, Uncosted: true}}},
		"what a helper's messages tell counts until the result has it": {nil,
			[]string{part("h", 50, 1), part("h", 50, 2)},
			map[string]total{"m-20260301": {Input: 50, Output: 2, Uncosted: true}}},
		"and then no more": {nil,
			[]string{part("h", 50, 1), result(100, 40, `,"costUSD":0.25`)},
			map[string]total{"m": {Input: 100, Output: 40, CacheRead: 4, CacheCreation: 2, CostUSD: 0.25}}},
		"messages that Claude Code made up use nothing": {nil,
			[]string{`{"type":"assistant","message":{"id":"a","model":"<synthetic>","content":[],"usage":{"input_tokens":5}}}`}, map[string]total{}},
		"a model without a price": {nil, []string{part("a", 1, 1), result(100, 40, ``)},
			map[string]total{"m": {Input: 100, Output: 40, CacheRead: 4, CacheCreation: 2, Uncosted: true}}},
		"and once where Claude Code remembers it too": {map[string]total{"m": {Input: 1000, Output: 1, CacheRead: 4, CostUSD: 1}},
			[]string{result(900, 1, `,"costUSD":0.75`), part("a", 1, 1), result(930, 6, `,"costUSD":1`)},
			map[string]total{"m": {Input: 1030, Output: 6, CacheRead: 4, CostUSD: 1.25}}},
		"what the session used before is in it": {map[string]total{"m": {Input: 1000, Output: 1, CostUSD: 1}, "old": {Input: 5, Uncosted: true}},
			[]string{part("a", 1, 1), result(100, 40, `,"costUSD":0.25`)},
			map[string]total{"m": {Input: 1100, Output: 41, CacheRead: 4, CacheCreation: 2, CostUSD: 1.25}, "old": {Input: 5, Uncosted: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newSession(t)
			s.meter = newMeter(test.base != nil)
			s.meter.base = test.base
			s.hears(test.lines...)
			if diff := cmp.Diff(test.want, s.meter.totals()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAModelWhoseCostIsNotKnownHasNone(t *testing.T) {
	got := usage(one, map[string]total{"a": {Input: 1, CostUSD: 0.5}, "b": {Output: 2, CostUSD: 0.5, Uncosted: true}})
	cost := 0.5
	want := []protocol.SessionUsage{{Session: one, Models: map[string]protocol.ModelUsage{
		"a": {InputTokens: 1, CostUSD: &cost}, "b": {OutputTokens: 2},
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := usage(one, nil); got != nil {
		t.Errorf("a session that used nothing: %+v", got)
	}
}

func TestTheLedger(t *testing.T) {
	l := ledger{dir: filepath.Join(t.TempDir(), "deep", "ledger")}
	want := map[string]total{"m": {Input: 1, CostUSD: 0.25}}
	if err := l.save(one, want); err != nil {
		t.Fatal(err)
	}
	if got, err := l.load(one); err != nil || !cmp.Equal(want, got) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := l.load(two); err != nil || got != nil {
		t.Errorf("an unknown session: %+v, %v", got, err)
	}
	for _, id := range []string{"", "../../etc/passwd", "x"} {
		if err := l.save(id, want); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	entries, err := os.ReadDir(l.dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%d files, %v", len(entries), err)
	}
	if err := os.WriteFile(filepath.Join(l.dir, two+".json"), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := l.load(two); err == nil {
		t.Error("nonsense was read")
	}
	old := time.Now().Add(-keepTotals - time.Hour)
	if err := os.Chtimes(filepath.Join(l.dir, two+".json"), old, old); err != nil {
		t.Fatal(err)
	}
	l.prune(time.Now(), logTo(t))
	if entries, _ := os.ReadDir(l.dir); len(entries) != 1 || entries[0].Name() != one+".json" {
		t.Errorf("after pruning: %v", entries)
	}
}

func TestWindowsThatAreKnownAreToldTogetherUntilTheyReset(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) string { return protocol.FormatTime(now.Add(d)) }
	known := []protocol.UsageWindow{
		{Name: "five_hour", Utilization: 0.5, ResetsAt: at(time.Hour)}, {Name: "over", Utilization: 1, ResetsAt: at(-time.Second)},
		{Name: "seven_day", Utilization: 0.7, ResetsAt: at(48 * time.Hour)}, {Name: "requests", Utilization: 1},
	}
	got := heard(known, protocol.UsageWindow{Name: "five_hour", Utilization: 0.9, ResetsAt: at(time.Hour)}, now)
	want := []protocol.UsageWindow{
		{Name: "seven_day", Utilization: 0.7, ResetsAt: at(48 * time.Hour)}, {Name: "five_hour", Utilization: 0.9, ResetsAt: at(time.Hour)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestALimitWithOddFiguresIsStillOne(t *testing.T) {
	for line, want := range map[string]string{
		`{"status":"rejected","rateLimitType":"five_hour","resetsAt":-1}`:                      `{"name":"five_hour","utilization":1}`,
		`{"status":"rejected","rateLimitType":"five_hour","resetsAt":1e300}`:                   `{"name":"five_hour","utilization":1}`,
		`{"status":"allowed_warning","rateLimitType":"overage","utilization":-3}`:              `{"name":"overage","utilization":0}`,
		`{"status":"rejected","rateLimitType":"x","utilization":1.25,"resetsAt":1772366400.7}`: `{"name":"x","utilization":1.25,"resetsAt":"2026-03-01T12:00:00.000Z"}`,
	} {
		var l rateLimit
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		w, ok := window(l)
		if got := compact(t, w); !ok || got != want {
			t.Errorf("%s: %s", line, got)
		}
	}
}
