package agent

// These tests are about the small decisions: times, URLs, names, texts and the environment.

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

func TestRetry(t *testing.T) {
	type ending struct {
		end     end
		welcome time.Duration
	}
	lost := ending{end: endLost}
	for name, test := range map[string]struct {
		before []ending
		last   ending
		want   time.Duration // with a random number just below 1
	}{
		"the first retry is quick":                                 {nil, lost, 250 * time.Millisecond},
		"the bound doubles":                                        {[]ending{lost, lost}, lost, time.Second},
		"the bound ends at half a minute":                          {make([]ending, 70), lost, 30 * time.Second},
		"a connection that lasted starts over":                     {[]ending{lost, lost, lost}, ending{endLost, time.Minute}, 250 * time.Millisecond},
		"a short connection does not start over":                   {[]ending{lost, lost}, ending{endLost, time.Second}, time.Second},
		"a restart asks to come at once":                           {[]ending{lost, lost}, ending{endRestart, time.Second}, 0},
		"a restart before the welcome does not":                    {nil, ending{endRestart, 0}, 250 * time.Millisecond},
		"many restarts in a row are slowed down":                   {[]ending{{endRestart, 1}, {endRestart, 1}, {endRestart, 1}}, ending{endRestart, 1}, 250 * time.Millisecond},
		"many restarts of connections that lasted are not":         {[]ending{{endRestart, 1}, {endRestart, 1}, {endRestart, 1}}, ending{endRestart, time.Minute}, 0},
		"a refused token waits half a minute":                      {nil, ending{end: endAuth}, 30 * time.Second},
		"another version waits half a minute, however often it is": {[]ending{{end: endVersion}, {end: endVersion}}, ending{end: endVersion}, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			r := retry{timing: defaultTiming}
			for _, e := range test.before {
				r.after(e.end, e.welcome, 0.5)
			}
			if got := r.after(test.last.end, test.last.welcome, 0.9999999999).Round(time.Millisecond); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestRetriesSpreadOverTheirWholeBound(t *testing.T) {
	r := retry{timing: defaultTiming}
	if got := r.after(endLost, 0, 0); got != 0 {
		t.Errorf("the least pause is %s", got)
	}
}

func TestEndOf(t *testing.T) {
	closed := func(code int) error { return fmt.Errorf("read: %w", &websocket.CloseError{Code: code}) }
	for name, test := range map[string]struct {
		err     error
		refused protocol.Code
		want    end
	}{
		"4401":                             {closed(4401), "", endAuth},
		"4426":                             {closed(4426), "", endVersion},
		"4409":                             {closed(4409), "", endReplaced},
		"1012":                             {closed(1012), "", endRestart},
		"1001":                             {closed(1001), "", endLost},
		"a broken connection":              {errors.New("EOF"), "", endLost},
		"auth_failed without its close":    {errors.New("EOF"), protocol.CodeAuthFailed, endAuth},
		"replaced without its close":       {errors.New("EOF"), protocol.CodeReplaced, endReplaced},
		"an error that is about no hello":  {errors.New("EOF"), protocol.CodeFailed, endLost},
		"version_mismatch without a close": {errors.New("EOF"), protocol.CodeVersionMismatch, endVersion},
	} {
		if got := endOf(test.err, test.refused); got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
	}
}

func TestEndpoint(t *testing.T) {
	for base, want := range map[string]string{
		"https://office:8443":      "wss://office:8443/v1/teams/demo/web/agent",
		"http://127.0.0.1:80/":     "ws://127.0.0.1:80/v1/teams/demo/web/agent",
		"https://office/some/path": "wss://office/some/path/v1/teams/demo/web/agent",
	} {
		if got, err := endpoint(base, "demo", "web"); err != nil || got != want {
			t.Errorf("%s: got %s, %v", base, got, err)
		}
	}
	for _, base := range []string{"office:8443", "ftp://office", "https://", "https://%zz"} {
		if got, err := endpoint(base, "demo", "web"); err == nil {
			t.Errorf("%s became %s", base, got)
		}
	}
}

func TestFromEnv(t *testing.T) {
	good := map[string]string{
		"HOME": "/home/agent", "BULLPEN_OFFICE_URL": "https://office:8443", "BULLPEN_NAMESPACE": "demo", "BULLPEN_TEAM": "web",
		"BULLPEN_PERSON": "ada", "BULLPEN_TOKEN_FILE": "/run/token", "BULLPEN_RUNTIME": "command",
		"BULLPEN_COMMAND": `["sh","-c","true"]`, "PATH": "/bin",
	}
	environ := func(changed ...string) []string {
		env := map[string]string{}
		for k, v := range good {
			env[k] = v
		}
		for _, entry := range changed {
			k, v, _ := strings.Cut(entry, "=")
			env[k] = v
		}
		var list []string
		for k, v := range env {
			list = append(list, k+"="+v)
		}
		return list
	}
	cfg, err := FromEnv(environ(contract.EnvGrace+"=7", contract.EnvSpoolRoom+"=3"))
	if err != nil || cfg.Grace != 7*time.Second || cfg.SpoolRoom != 3<<20 || !cmp.Equal(cfg.Command, []string{"sh", "-c", "true"}) {
		t.Errorf("got %+v, %v", cfg, err)
	}
	for _, entry := range cfg.Env {
		for _, secret := range secretEnv {
			if strings.HasPrefix(entry, secret+"=") {
				t.Errorf("programs see %s", secret)
			}
		}
	}
	for name, test := range map[string]struct {
		change string
		want   string
	}{
		"no person":           {"BULLPEN_PERSON=", "BULLPEN_PERSON is not set"},
		"a relative home":     {"HOME=home", "HOME must be an absolute path"},
		"a URL without https": {"BULLPEN_OFFICE_URL=office:8443", "BULLPEN_OFFICE_URL: "},
		"a grace in minutes":  {"BULLPEN_GRACE_SECONDS=1m", "BULLPEN_GRACE_SECONDS must be a whole number of seconds"},
		"a spool in GiB":      {"BULLPEN_SPOOL_MIB=2G", "BULLPEN_SPOOL_MIB must be a whole number of MiB above 0"},
		"a command in words":  {"BULLPEN_COMMAND=sh -c true", "BULLPEN_COMMAND must be a JSON list"},
		"an empty command":    {"BULLPEN_COMMAND=[]", "BULLPEN_COMMAND must be a JSON list"},
	} {
		if _, err := FromEnv(environ(test.change)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := FromEnv(nil); err == nil || strings.Count(err.Error(), "is not set") != 7 {
		t.Errorf("an empty environment: %v", err)
	}
}

func TestFileName(t *testing.T) {
	names := map[string]bool{}
	for _, id := range []string{"0b7e2d1c-1111-4222-8333-444455556666", "a/b", "../../etc", ".", "..", ".hidden", "", "ä", strings.Repeat("x", 300), "a\x00b"} {
		name := fileName(id)
		if name == "" || len(name) > 100 || strings.HasPrefix(name, ".") || strings.ContainsAny(name, "/\x00") || names[name] {
			t.Errorf("%q becomes %q", id, name)
		}
		names[name] = true
	}
}

func TestEncodeCutsTheLargestPartFirst(t *testing.T) {
	var links []protocol.Link
	for i := range 20_000 {
		links = append(links, protocol.Link{URL: fmt.Sprintf("https://example.com/%040d", i)})
	}
	for name, message := range map[string]protocol.Message{
		"a summary": protocol.Handback{WorkItemID: "i", Status: "done", Summary: strings.Repeat("ä", 1<<20)},
		"links":     protocol.Handback{WorkItemID: "i", Status: "done", Summary: "short", Links: links},
		"a reason":  protocol.Fail{WorkItemID: "i", Reason: strings.Repeat("\x00", 1<<20)},
		"progress":  protocol.Progress{WorkItemID: "i", Text: strings.Repeat("x", 2<<20)},
	} {
		frame, err := encode("id", message)
		if err != nil || len(frame) > protocol.MaxFrame || len(frame) < protocol.MaxFrame/8 {
			t.Errorf("%s: %d bytes, %v", name, len(frame), err)
			continue
		}
		if _, werr := protocol.Decode(frame); werr != nil {
			t.Errorf("%s: %v", name, werr)
		}
	}
	if _, err := encode("id", protocol.Journal{WorkItemID: strings.Repeat("x", 2<<20)}); !errors.Is(err, protocol.ErrTooLarge) {
		t.Errorf("what cannot be cut: %v", err)
	}
}

func TestCheckRoom(t *testing.T) {
	const giga = 1 << 30
	for name, test := range map[string]struct {
		free, total uint64
		want        protocol.CheckStatus
	}{
		"plenty":                    {5 * giga, 10 * giga, protocol.CheckOK},
		"less than a tenth":         {giga / 2, 10 * giga, protocol.CheckWarn},
		"less than a hundredth":     {giga, 200 * giga, protocol.CheckFail},
		"less than a hundred MiB":   {50 << 20, 100 << 20, protocol.CheckFail},
		"a tenth to the byte is ok": {giga, 10 * giga, protocol.CheckOK},
	} {
		if got := checkRoom(test.free, test.total); got.Status != test.want || (got.Status != protocol.CheckOK) != (got.Fix != "") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestTeamPage(t *testing.T) {
	config, err := protocol.ParseTeamConfig(protocol.Raw(`{"name":"web","display_name":"The\n# Web","roles":[
		{"name":"dev","title":"Developer","summary":"Writes code.","instructions":"Test\nfirst.",
		 "work":[{"kind":"task"},{"kind":"chore","review":"none"}]}],
		"people":[{"handle":"ada","name":"Ada","role":"dev","runtime":"command"},{"handle":"bob","runtime":"claude"}],
		"humans":[{"name":"Grace","identities":{"github":"grace"}}],
		"repositories":[{"name":"shop","url":"https://example.com/shop.git","default_branch":"main"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := `# The # Web

You are Ada (ada), Developer. Writes code.

## Instructions

Test
first.

## Kinds of work

- task: ends with something to review
- chore: finishes without a review

## People

- ada, Ada (dev)
- bob

## Humans

- Grace, github: grace

## Repositories

- shop: https://example.com/shop.git, from branch main
`
	if diff := cmp.Diff(want, string(teamPage(config, "ada"))); diff != "" {
		t.Error(diff)
	}
	if page := teamPage(protocol.TeamConfig{DisplayName: "x"}, "eve"); !strings.Contains(string(page), "You are eve (eve).") {
		t.Errorf("for someone who is not in the team: %q", page)
	}
}
