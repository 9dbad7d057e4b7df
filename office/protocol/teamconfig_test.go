package protocol

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTeamConfigFillsInWhatIsMissing(t *testing.T) {
	got, err := ParseTeamConfig(Raw(`{
		"name": "shop",
		"later": {"field": [1]},
		"roles": [{"name": "dev", "work": [{"kind": "ticket"}, {"kind": "chat", "review": "none"}]}],
		"people": [{"handle": "ada", "role": "dev", "runtime": "claude", "tools": ["git"],
			"services": [{"name": "db", "address": "db:5432"}]}],
		"humans": [{"name": "Grace", "identities": {"github": "ghopper"}}],
		"repositories": [{"name": "shop", "url": "https://git.example.com/acme/shop.git"}],
		"usage": {"track_cost": true, "pause_at": 0},
		"policies": {"attempts": 5, "merge_checks": {"timeout_minutes": 30}},
		"pipeline": {"context": {"comments": 0}}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	want := DefaultTeamConfig()
	want.Name, want.DisplayName = "shop", "shop"
	want.Roles = []TeamRole{{Name: "dev", Work: []TeamWork{
		{Kind: "ticket", Review: ReviewRequired}, {Kind: "chat", Review: ReviewNone},
	}}}
	want.People = []TeamPerson{{
		Handle: "ada", Name: "ada", Role: "dev", Runtime: "claude", Tools: []string{"git"},
		Services: []TeamService{{Name: "db", Address: "db:5432"}},
	}}
	want.Humans = []TeamHuman{{Name: "Grace", Identities: map[string]string{"github": "ghopper"}}}
	want.Repositories = []TeamRepository{{Name: "shop", URL: "https://git.example.com/acme/shop.git"}}
	want.Usage.TrackCost, want.Usage.PauseAt = true, 0
	want.Policies.Attempts, want.Policies.MergeChecks.TimeoutMinutes = 5, 30
	want.Pipeline.Context.Comments = 0
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}

	raw, err := got.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseTeamConfig(raw)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, again); diff != "" {
		t.Errorf("before (-) and after Encode (+):\n%s", diff)
	}
	if twice, err := again.Encode(); err != nil || string(twice) != string(raw) {
		t.Errorf("the same config has other bytes (%v):\n%s\n%s", err, raw, twice)
	}
}

func TestTeamConfigNamesEverythingThatIsWrong(t *testing.T) {
	long := strings.Repeat("a", 64)
	tests := map[string]struct {
		config string
		want   []string
	}{
		"no config":     {`null`, []string{"team must be an object, not null"}},
		"not JSON":      {`{"name":`, []string{"the frame is not JSON: it ends too early"}},
		"a name twice":  {`{"name":"a","name":"b"}`, []string{"team.name is there twice"}},
		"no name":       {`{}`, []string{"team.name is required"}},
		"an empty name": {`{"name":""}`, []string{"team.name must not be empty"}},
		"a wrong type": {
			`{"name":"a","policies":{"attempts":"3"}}`, []string{"team.policies.attempts must be an integer, not a string"},
		},
		"a wrong review": {
			`{"name":"a","roles":[{"name":"dev","work":[{"kind":"k","review":"maybe"}]}]}`,
			[]string{`team.roles[0].work[0].review must be required or none, not "maybe"`},
		},
		"a role nobody declared": {
			`{"name":"a","people":[{"handle":"ada","role":"dev","runtime":"claude"}]}`,
			[]string{`team.people[0].role is "dev", which is none of team.roles`},
		},
		"two people with one handle": {
			`{"name":"a","people":[{"handle":"ada","runtime":"x"},{"handle":"bob","runtime":"x"},{"handle":"ada","runtime":"x"}]}`,
			[]string{`team.people[2].handle is "ada", as that of team.people[0]; each needs its own`},
		},
		"handles that are no names": {
			`{"name":"a","people":[{"handle":"../x","runtime":"x"},{"handle":"` + long + `","runtime":"x"}]}`,
			[]string{
				`team.people[0].handle must begin with a letter or a digit and have at most 63 letters, digits, dots, dashes and underscores, not "../x"`,
				`team.people[1].handle must begin with a letter or a digit and have at most 63 letters, digits, dots, dashes and underscores, not "` + long[:40] + `…"`,
			},
		},
		"several things at once": {
			`{"name":"a","roles":[{"name":"","work":[{"kind":""}]}],"humans":[{"name":""}],
				"repositories":[{"name":"r","url":""},{"name":"r","url":"u"}],
				"people":[{"handle":"ada","runtime":"","tools":[""],"services":[{"name":"","address":""}]}],
				"usage":{"pause_at":1.5},"policies":{"heartbeat_ms":1},"pipeline":{"context":{"body_chars":0,"items":-1}}}`,
			[]string{
				"team.roles[0].name must not be empty",
				"team.roles[0].work[0].kind must not be empty",
				"team.humans[0].name must not be empty",
				"team.repositories[0].url must not be empty",
				`team.repositories[1].name is "r", as that of team.repositories[0]; each needs its own`,
				"team.people[0].runtime must not be empty",
				"team.people[0].tools[0] must not be empty",
				"team.people[0].services[0].name must not be empty",
				"team.people[0].services[0].address must not be empty",
				"team.usage.pause_at must be between 0 and 1, not 1.5",
				"team.policies.heartbeat_ms must be at least 100, not 1",
				"team.pipeline.context.body_chars must be at least 1, not 0",
				"team.pipeline.context.items must be at least 0, not -1",
			},
		},
		"deeper than a frame": {
			strings.Repeat(`{"a":`, 65) + `1` + strings.Repeat(`}`, 65), []string{"team may nest 64 levels; this one is deeper"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := ParseTeamConfig(Raw(tt.config))
			if err == nil {
				t.Fatalf("taken as %+v", c)
			}
			if diff := cmp.Diff(tt.want, strings.Split(err.Error(), "\n")); diff != "" {
				t.Errorf("want (-), got (+):\n%s", diff)
			}
		})
	}
}

func TestDefaultTeamConfigIsValidOnceItHasAName(t *testing.T) {
	c := DefaultTeamConfig()
	c.Name = "shop"
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}
