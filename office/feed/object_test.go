package feed_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/feed/feedtest"
)

// This file tests the session object, and holds it against the schema.

func encoded(t testing.TB, s feed.Session) []byte {
	t.Helper()
	data, err := feed.MarshalSession(&s)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// sessions are session objects that fit the schema, by what is special about them.
func sessions() map[string]feed.Session {
	all := map[string]feed.Session{"nothing is null": feedtest.Session(), "everything is null": feedtest.EmptySession()}
	add := func(name string, change func(*feed.Session)) {
		s := feedtest.Session()
		change(&s)
		all[name] = s
	}
	for _, of := range feedtest.Events() {
		add("an event "+of.EventType(), func(s *feed.Session) { s.Event.Of = of })
	}
	add("codex", func(s *feed.Session) {
		s.ClaudeCode, s.Codex = nil, &feed.CodexOptions{Model: "tide-5", Effort: new("none"), Prompt: new("Swap the lamp.")}
		s.Agent.Config.Session.ClaudeCode, s.Agent.Config.Session.Codex = nil, &feed.CodexOptions{Model: "tide-5"}
	})
	add("a schedule", func(s *feed.Session) {
		s.Agent.Config.Trigger = &feed.Trigger{Cron: &feed.CronTrigger{Schedule: "0 18 * * *"}}
	})
	add("a saved environment", func(s *feed.Session) {
		s.Agent.Config.Session.Environment = feed.Text[feed.EnvironmentConfig]("tower")
	})
	add("amounts as strings", func(s *feed.Session) {
		s.Environment.Compute.Memory, s.Environment.Compute.Timeout = new(feed.Text[feed.Memory]("8Gi")), new(feed.Text[feed.TimeLimit]("90m"))
		s.Environment.Hooks.BuildBase = new(feed.Text[feed.BuildBase]("make deps"))
	})
	add("a build without inputs", func(s *feed.Session) {
		s.Environment.Hooks.BuildBase = new(feed.Whole(feed.BuildBase{Run: "make", Inputs: &feed.List[string]{}}))
	})
	add("every permission", func(s *feed.Session) {
		s.Permissions = feed.Permissions{
			Platform: feed.PlatformAccess{All: true},
			GitHub:   feed.GitHubPermissions{Permissions: new(feed.Text[feed.Map[string]](feed.GitHubReadOnly))},
		}
	})
	add("every permission in a word", func(s *feed.Session) { s.Permissions.Platform = feed.PlatformAccess{All: true, AsWord: true} })
	return all
}

func TestASessionObjectFitsTheSchema(t *testing.T) {
	validate := validators(t)("/$defs/session")
	for name, s := range sessions() {
		t.Run(name, func(t *testing.T) {
			data := encoded(t, s)
			if err := validate(parsed(t, data)); err != nil {
				t.Errorf("%v in %s", err, data)
			}
		})
	}
}

func TestASessionObjectIsReadAsItWasWritten(t *testing.T) {
	for name, s := range sessions() {
		t.Run(name, func(t *testing.T) {
			data := encoded(t, s)
			var got feed.Session
			if err := json.Unmarshal(data, &got); err != nil {
				t.Fatal(err)
			}
			if again := encoded(t, got); !reflect.DeepEqual(parsed(t, again), parsed(t, data)) {
				t.Errorf("read %s\nwrote %s", again, data)
			}
			if name == "nothing is null" && !reflect.DeepEqual(got, s) {
				t.Errorf("read %+v\nwrote %+v", got, s)
			}
		})
	}
}

func TestInTheFullSessionObjectOnlyTheOtherRuntimeIsNull(t *testing.T) {
	var nulls []string
	var look func(path string, v any)
	look = func(path string, v any) {
		switch v := v.(type) {
		case nil:
			nulls = append(nulls, path)
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				look(path+"."+name, v[name])
			}
		case []any:
			for _, one := range v {
				look(path+"[]", one)
			}
		}
	}
	look("", parsed(t, encoded(t, feedtest.Session())))
	// A variable without a value is a secret.
	want := []string{
		".agent.config.session.codex", ".agent.config.session.environment.variables[].value", ".codex", ".environment.variables[].value",
	}
	if !slices.Equal(nulls, want) {
		t.Errorf("null are %q, want %q", nulls, want)
	}
}

func TestWhatIsEmptyIsWrittenAsEmpty(t *testing.T) {
	data := string(encoded(t, feedtest.EmptySession()))
	for _, want := range []string{
		`"metadata":{}`, `"skills":[]`, `"repositories":[]`, `"variables":[]`, `"mcp_servers":[]`, `"permissions":{"ellipsis":{},`, `"turn":null`,
		`"attribution":{"type":null,"id":null,"user":null}`, `"git":null`, `"event":null`, `"claude_code":null`, `"budget":0`,
	} {
		if !strings.Contains(data, want) {
			t.Errorf("%s lacks %s", data, want)
		}
	}
	s := feedtest.EmptySession()
	s.Git = &feed.Git{}
	s.Git.Repos = append(s.Git.Repos, feed.GitRepo{FullName: "harbour/lights"})
	data = string(encoded(t, s))
	if want := `"repos":[{"full_name":"harbour/lights","local_commit":null,"local_uncommitted_files":[],`; !strings.Contains(data, want) {
		t.Errorf("%s lacks %s", data, want)
	}
}

// open are the objects of the session object that users fill with names of their own.
var open = []string{".metadata", ".annotations", ".json_schema", ".env", ".headers", ".ellipsis", ".permissions.github.permissions"}

func isOpen(path string) bool {
	return slices.ContainsFunc(open, func(suffix string) bool {
		return strings.HasSuffix(path, suffix) && path != ".agent.config.ellipsis" && path != ".agent.config.ellipsis.metadata"
	})
}

func TestEveryFieldOfASessionObjectIsRequired(t *testing.T) {
	at := validators(t)
	full := parsed(t, encoded(t, feedtest.Session()))
	if n := allRequired(t, at("/$defs/session"), full); n < 300 {
		t.Errorf("only %d fields were looked at", n)
	}
	for _, of := range feedtest.Events() {
		data, err := feed.MarshalPayload(feed.Event{Of: of})
		if err != nil {
			t.Fatal(err)
		}
		if n := allRequired(t, at("/$defs/session/properties/event"), parsed(t, data)); n < 5 {
			t.Errorf("only %d fields of a %s were looked at", n, of.EventType())
		}
	}
}

// allRequired leaves out one field after another, and gives their number.
func allRequired(t *testing.T, validate func(any) error, root any) (removed int) {
	t.Helper()
	walk(root, "", func(path string, object map[string]any) {
		for _, field := range slices.Sorted(maps.Keys(object)) {
			if isOpen(path) {
				continue
			}
			was := object[field]
			delete(object, field)
			if validate(root) == nil {
				t.Errorf("without %s.%s it still fits", path, field)
			}
			object[field] = was
			removed++
		}
	})
	return removed
}

func TestClosedObjectsTakeNoFurtherField(t *testing.T) {
	validate := validators(t)("/$defs/session")
	root := parsed(t, encoded(t, feedtest.Session()))
	var takes []string
	walk(root, "", func(path string, object map[string]any) {
		object["of no schema"] = "x"
		if validate(root) == nil {
			takes = append(takes, path)
		}
		delete(object, "of no schema")
	})
	slices.Sort(takes)
	want := []string{
		".agent", ".agent.config.ellipsis.metadata.annotations", ".agent.config.input.json_schema",
		".agent.config.session.environment.mcp_servers[].env", ".agent.config.session.environment.mcp_servers[].headers",
		".agent.config.session.metadata", ".agent.config.session.output.json_schema", ".agent.config.session.permissions.github.permissions",
		".archived", ".archived.by", ".attribution", ".attribution.user", ".conversation", ".conversation.prompting", ".cost",
		".environment.mcp_servers[].env", ".environment.mcp_servers[].headers", ".event", ".event.actor",
		".git", ".git.repos[]", ".git.repos[].commits[]", ".git.repos[].local_uncommitted_files[]", ".git.repos[].prs[]",
		".handler", ".metadata", ".output.json_schema", ".parent", ".permissions.github.permissions", ".summary", ".tokens",
		".turn", ".turn.cost", ".turn.stopped", ".turn.stopped.by", ".turn.tokens",
	}
	if !slices.Equal(takes, want) {
		t.Errorf("these take more: %q\nwant %q", takes, want)
	}
}

// walk calls f with every object and its path.
func walk(v any, path string, f func(path string, object map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		f(path, v)
		for _, name := range slices.Sorted(maps.Keys(v)) {
			walk(v[name], path+"."+name, f)
		}
	case []any:
		for _, one := range v {
			walk(one, path+"[]", f)
		}
	}
}

func TestBrokenSessionObjectsDoNotFit(t *testing.T) {
	validate := validators(t)("/$defs/session")
	for _, c := range []struct{ name, path, value string }{
		{"a source that there is not", "source", `"fax"`},
		{"no source", "source", `null`},
		{"a state that there is not", "conversation.state", `"asleep"`},
		{"a reason for silence that there is not", "conversation.prompting.blocked_reason", `"tired"`},
		{"a turn's status in the spelling of items", "turn.status", `"canceled"`},
		{"a turn's reason that there is not", "turn.reason", `"tired"`},
		{"a turn without its time", "turn.created_at", `null`},
		{"a day for a time", "turn.started_at", `"2027-03-04"`},
		{"a cost in fractions of millicents", "cost.total", `1.5`},
		{"tokens without a model", "tokens.model", `null`},
		{"no attribution", "attribution", `null`},
		{"an attribution that there is not", "attribution.type", `"kubernetes_user"`},
		{"no budget", "budget", `null`},
		{"one processor", "environment.compute.cpu", `1`},
		{"more processors than there are", "environment.compute.cpu", `33`},
		{"less than no memory", "environment.compute.memory.gb", `-1`},
		{"a source of the environment that there is not", "environment.source", `"dream"`},
		{"a hook that is a list", "environment.hooks.after_checkout", `["make"]`},
		{"a variable that is a number", "environment.variables", `[{"name":"A","value":1}]`},
		{"an MCP server of two shapes", "environment.mcp_servers", `[{"name":"a","command":"b","args":[],"env":{},"url":"c","headers":{}}]`},
		{"no repositories", "environment.repositories", `null`},
		{"an event of no type", "event.type", `"fax.received"`},
		{"an event's action of another event", "event.action", `"merged"`},
		{"an event whose actor has no name", "event.actor.name", `null`},
		{"a trigger of no type", "agent.config.trigger.type", `"moon"`},
		{"a trigger on what does not happen", "agent.config.trigger.issue.on", `["painted"]`},
		{"an agent of another kind", "agent.config.ellipsis.kind", `"robot"`},
		{"a budget of nothing", "agent.config.session.budget.session", `0`},
		{"an effort that there is not", "claude_code.effort", `"heroic"`},
		{"no turns at all", "claude_code.max_turns", `0`},
		{"permissions that are false", "permissions.ellipsis", `false`},
		{"permissions for an area that there is not", "permissions.ellipsis", `{"moon":"read"}`},
		{"a level that there is not", "permissions.ellipsis", `{"user":"admire"}`},
		{"a word of GitHub permissions that there is not", "permissions.github.permissions", `"write_only"`},
		{"a handler of a service that there is not", "handler.service", `"fax"`},
		{"metadata that is no string", "metadata", `{"a":1}`},
		{"a commit that is neither pushed nor not", "git.repos", `[{"full_name":"a","local_commit":null,"local_uncommitted_files":[],` +
			`"remote_branch":null,` +
			`"remote_commit":null,"commits":[{"sha":"a","subject":"b","committed_at":"2027-03-04T05:06:07Z","pushed":null}],"commits_total":1,` +
			`"prs":[]}]`},
		{"a summary of nothing", "summary.description", `null`},
		{"no skills", "skills", `null`},
		{"an account of no type", "archived.by.type", `"Robot"`},
		{"an output without a schema", "output", `{"json_schema":null}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := parsed(t, encoded(t, feedtest.Session()))
			if err := validate(root); err != nil {
				t.Fatal(err)
			}
			object, last := root.(map[string]any), ""
			names := strings.Split(c.path, ".")
			for _, name := range names[:len(names)-1] {
				object = object[name].(map[string]any)
			}
			if last = names[len(names)-1]; object[last] == nil {
				t.Fatalf("there is no %s to break", c.path)
			}
			object[last] = parsed(t, []byte(c.value))
			if validate(root) == nil {
				t.Errorf("it fits with %s = %s", c.path, c.value)
			}
		})
	}
}

func TestPartsThatPeopleWriteInShort(t *testing.T) {
	read := feed.Text[feed.AccessRule](feed.LevelRead)
	several := feed.Access{Many: feed.List[feed.StringOr[feed.AccessRule]]{read}}
	for want, v := range map[string]any{
		`true`:                                 feed.PlatformAccess{All: true},
		`"all"`:                                feed.PlatformAccess{All: true, AsWord: true},
		`{}`:                                   feed.PlatformAccess{},
		`{"user":"read"}`:                      feed.PlatformAccess{Areas: feed.Map[feed.Access]{"user": {One: read}}},
		`{"user":["read"]}`:                    feed.PlatformAccess{Areas: feed.Map[feed.Access]{"user": several}},
		`"charts"`:                             feed.MCPServer{Ref: "charts"},
		`{"name":"charts"}`:                    feed.MCPServer{Name: "charts"},
		`["noor"]`:                             feed.Accounts{Include: feed.Included{Names: feed.List[string]{"noor"}}, Short: true},
		`false`:                                feed.Accounts{Include: feed.Included{All: new(false)}, Short: true},
		`{"include":[],"exclude":[]}`:          feed.WatchScope{},
		`["lights"]`:                           feed.WatchScope{Include: feed.List[string]{"lights"}, Short: true},
		`"make"`:                               feed.Text[feed.Hook]("make"),
		`{"run":"make"}`:                       feed.Whole(feed.Hook{Run: "make"}),
		`{"run":"make","inputs":null}`:         feed.Whole(feed.BuildBase{Run: "make"}),
		`{"run":"make","inputs":[]}`:           feed.Whole(feed.BuildBase{Run: "make", Inputs: &feed.List[string]{}}),
		`{"type":"cron","schedule":"@hourly"}`: feed.Trigger{Cron: &feed.CronTrigger{Schedule: "@hourly"}},
	} {
		data, err := json.Marshal(v)
		if err != nil || string(data) != want {
			t.Errorf("%+v is written as %s, want %s (%v)", v, data, want, err)
			continue
		}
		got := reflect.New(reflect.TypeOf(v))
		if err := json.Unmarshal(data, got.Interface()); err != nil {
			t.Errorf("%s: %v", data, err)
		}
		if again, err := json.Marshal(got.Elem().Interface()); err != nil || string(again) != want {
			t.Errorf("%s came back as %s (%v)", want, again, err)
		}
	}
}

func TestAnEventOfAnUnknownTypeIsKept(t *testing.T) {
	const raw = `{"type":"fax.received","pages":9007199254740993}`
	var e feed.Event
	if err := json.Unmarshal([]byte(raw), &e); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(e)
	if err != nil || string(data) != raw || e.Of.EventType() != "fax.received" {
		t.Errorf("%v, kept %s of type %s", err, data, e.Of.EventType())
	}
}

func TestHalfFilledPartsAreRefused(t *testing.T) {
	for name, s := range map[string]feed.Session{
		"an event without body": {Event: &feed.Event{}},
		"a trigger of nothing":  {Agent: &feed.Agent{Config: feed.AgentConfig{Trigger: &feed.Trigger{}}}},
		"a budget of infinity":  {Budget: inf()},
		"a time after our time": {CreatedAt: time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		if data, err := feed.MarshalSession(&s); err == nil {
			t.Errorf("%s was written: %s", name, data)
		}
	}
}

func inf() float64 {
	zero := 0.0
	return 1 / zero
}

func TestMessagesOfASnapshotFitTheSchema(t *testing.T) {
	validate := validators(t)("/$defs/inbox_message")
	for _, m := range feedtest.InboxMessages() {
		data, err := feed.MarshalPayload(m)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(parsed(t, data)); err != nil {
			t.Errorf("%v in %s", err, data)
		}
		root := parsed(t, data).(map[string]any)
		for _, field := range slices.Sorted(maps.Keys(root)) {
			was := root[field]
			delete(root, field)
			if validate(root) == nil {
				t.Errorf("without %s it still fits", field)
			}
			root[field] = was
		}
		var got feed.InboxMessage
		if err := json.Unmarshal(data, &got); err != nil || got.ID != m.ID || !got.CreatedAt.Equal(m.CreatedAt) ||
			len(got.Images) != len(m.Images) {
			t.Errorf("%v, read %+v", err, got)
		}
	}
}
