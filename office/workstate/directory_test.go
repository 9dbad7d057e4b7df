package workstate

import (
	"slices"
	"testing"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

func team() Directory {
	return Directory{
		Humans: []protocol.TeamHuman{{Name: "Grace", Identities: map[string]string{"github": "grace-h", "chat": "U1"}}},
		People: []model.Person{{Key: model.PersonKey{Handle: "ada"}, DisplayName: "Ada Agent"}, {Key: model.PersonKey{Handle: "bob"}}},
	}
}

func TestWhoSomebodyIs(t *testing.T) {
	for name, tc := range map[string]struct {
		actor Actor
		want  Who
	}{
		"a human by name":                                  {Actor{Login: "Grace"}, Who{Name: "Grace", Human: true}},
		"a human by an identity, in any case":              {Actor{Login: "Grace-H"}, Who{Name: "Grace-H", Human: true}},
		"a human by the identity in the system":            {Actor{Login: "grace-h", System: "github"}, Who{Name: "grace-h", Human: true}},
		"an account named like a human":                    {Actor{Login: "Grace", System: "github"}, Who{Name: "Grace"}},
		"an identity of another system":                    {Actor{Login: "U1", System: "github"}, Who{Name: "U1"}},
		"an identity in a system where the human has none": {Actor{Login: "grace-h", System: "jira"}, Who{Name: "grace-h"}},
		"a person by handle":                               {Actor{Login: "ada"}, Who{Name: "ada", Person: "ada"}},
		"a person by what the sender knows":                {Actor{Login: "acme-bot", System: "github", Person: "ada"}, Who{Name: "ada", Person: "ada"}},
		"an account named like a person":                   {Actor{Login: "ada", System: "github"}, Who{Name: "ada"}},
		"a person that the team does not have":             {Actor{Login: "x", Person: "eve"}, Who{Name: "x"}},
		"a stranger":                                       {Actor{Login: "mallory"}, Who{Name: "mallory"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := team().Who(tc.actor)
			if got != tc.want {
				t.Errorf("it is %+v, want %+v", got, tc.want)
			}
			if got.Trusted() != (tc.want.Human || tc.want.Person != "") {
				t.Errorf("trusted: %v", got.Trusted())
			}
		})
	}
	if (Directory{}).Who(Actor{Login: "Grace"}).Trusted() {
		t.Error("a team that declares nobody trusts somebody")
	}
}

func TestTheNamesOfSomebody(t *testing.T) {
	for name, want := range map[string][]string{
		"ada": {"ada", "Ada Agent"}, "ada agent": {"ada", "Ada Agent"}, "bob": {"bob"}, "grace": {"Grace", "U1", "grace-h"},
		"U1": {"Grace", "U1", "grace-h"}, "mallory": {"mallory"},
	} {
		got := team().Names(name)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s is known as %q, want %q", name, got, want)
		}
	}
}
