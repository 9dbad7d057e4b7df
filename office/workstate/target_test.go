package workstate

import (
	"errors"
	"strings"
	"testing"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// lookupOf knows some tickets, pull requests and documents.
func lookupOf(pulls ...model.Pull) Lookup {
	tickets := map[string]bool{"ACME-12": true, "acme/shop#5": true, "plain": true}
	return Lookup{
		Prefixes: []string{"ACME", "acme/shop"},
		Ticket: func(key string) (*model.Ticket, error) {
			if tickets[key] {
				return &model.Ticket{Key: key}, nil
			}
			return nil, nil
		},
		Pull: func(ref string) (*model.Pull, error) {
			for _, p := range pulls {
				if p.Ref == ref {
					return &p, nil
				}
			}
			return nil, nil
		},
		Numbered: func(n int) (list []model.Pull, err error) {
			for _, p := range pulls {
				if p.Number == n {
					list = append(list, p)
				}
			}
			return list, nil
		},
		Linked: func(link string) (model.Place, error) {
			if link == "https://docs.example.com/d/abc" {
				return model.Place{Type: model.RefDoc, Ref: "abc"}, nil
			}
			return model.Place{}, nil
		},
		Doc: func(id string) (*model.Doc, error) {
			if id == "abc" || id == "doc-7" {
				return &model.Doc{ID: id}, nil
			}
			return nil, nil
		},
	}
}

func pullAt(repo string, number int, state protocol.PullState) model.Pull {
	return model.Pull{Ref: PullRef(repo, number), Repo: repo, Number: number, State: state}
}

func TestWhatANameMeans(t *testing.T) {
	l := lookupOf(
		pullAt("acme/shop", 7, protocol.PullOpen), pullAt("acme/shop", 8, protocol.PullOpen), pullAt("acme/web", 8, protocol.PullOpen),
		pullAt("acme/shop", 9, protocol.PullMerged), pullAt("acme/web", 9, protocol.PullOpen), pullAt("big/group/sub", 4, protocol.PullOpen),
		pullAt("acme/shop", 5, protocol.PullOpen),
	)
	ticket := func(ref string) model.Place { return model.Place{Type: model.RefTicket, Ref: ref} }
	pull := func(ref string) model.Place { return model.Place{Type: model.RefPull, Ref: ref} }
	doc := func(ref string) model.Place { return model.Place{Type: model.RefDoc, Ref: ref} }
	for name, want := range map[string]model.Place{
		"ACME-12":   ticket("ACME-12"),
		" acme-12 ": ticket("ACME-12"),
		"ACME-99":   ticket("ACME-99"), // nothing was heard of it, but its like is known
		"plain":     ticket("plain"),
		"https://tracker.example.com/browse/ACME-12": ticket("ACME-12"),
		"https://tracker.example.com/i/ACME-12/name": ticket("ACME-12"),
		"7":                                   pull("acme/shop#7"),
		"#7":                                  pull("acme/shop#7"),
		"9":                                   pull("acme/web#9"), // of two, the open one
		"acme/web#8":                          pull("acme/web#8"),
		"acme/shop#5":                         pull("acme/shop#5"),
		"https://github.com/acme/shop/pull/7": pull("acme/shop#7"),
		"https://github.com/acme/shop/pull/7/files?w=1#r2":         pull("acme/shop#7"),
		"https://git.example.com/acme/shop/pulls/7":                pull("acme/shop#7"),
		"https://git.example.com/big/group/sub/-/merge_requests/4": pull("big/group/sub#4"),
		"https://git.example.com/acme/shop/issues/5":               ticket("acme/shop#5"),
		"https://docs.example.com/d/abc":                           doc("abc"),
		"abc":                                                      doc("abc"),
		"doc-7":                                                    doc("doc-7"),
	} {
		t.Run(name, func(t *testing.T) {
			target, err := ParseTarget(name)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := target.Resolve(l); err != nil || got != want {
				t.Errorf("it is %+v (%v), want %+v", got, err, want)
			}
		})
	}
}

func TestANameThatMeansNothingOrTooMuch(t *testing.T) {
	l := lookupOf(pullAt("acme/shop", 8, protocol.PullOpen), pullAt("acme/web", 8, protocol.PullOpen))
	for name, want := range map[string]error{
		"OPS-1": ErrUnknown, "nothing": ErrUnknown, "77": ErrUnknown, "#77": ErrUnknown, "acme/shop#77": ErrUnknown, "#8": ErrAmbiguous, "8": ErrAmbiguous,
		"https://example.com/": ErrUnknown, "https://github.com/acme/shop/pull/77": ErrUnknown, "https://github.com/acme/shop/issues/8": ErrUnknown,
		"https://github.com/acme/shop/pull/new": ErrUnknown, "https://tracker.example.com/browse/OPS-1": ErrUnknown,
	} {
		target, err := ParseTarget(name)
		if err != nil {
			t.Fatal(err)
		}
		if place, err := target.Resolve(l); !errors.Is(err, want) {
			t.Errorf("%s: %+v, %v, want %v", name, place, err, want)
		}
	}
	target, err := ParseTarget("#8")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := target.Resolve(l); err == nil || !strings.Contains(err.Error(), "acme/shop#8, acme/web#8") {
		t.Errorf("the error does not list what could be meant: %v", err)
	}
	for _, name := range []string{"", "  ", "https://", "ht\x7ftp://x", strings.Repeat("x", 2001)} {
		if target, err := ParseTarget(name); err == nil {
			t.Errorf("%.20q was read as %+v", name, target)
		}
	}
}

func TestCutCountsCharacters(t *testing.T) {
	for _, tc := range []struct {
		text  string
		limit int
		want  string
	}{{"über", 4, "über"}, {"übers", 4, "übe…"}, {"", 1, ""}, {"ab", 1, "…"}} {
		if got := Cut(tc.text, tc.limit); got != tc.want {
			t.Errorf("%q cut to %d is %q, want %q", tc.text, tc.limit, got, tc.want)
		}
	}
}
