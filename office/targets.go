package office

// This file finds the ticket, pull request or document that somebody names.

import (
	"errors"
	"strings"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
	"github.com/bullpen-dev/bullpen/office/workstate"
)

// unresolved says whether a name was read, but stands for nothing, or for too much.
func unresolved(err error) bool {
	return errors.Is(err, workstate.ErrUnknown) || errors.Is(err, workstate.ErrAmbiguous)
}

// resolve finds the place that a person names in a field of a message.
func resolve(r store.Reader, key model.PersonKey, field, name string) (model.Place, error) {
	target, err := workstate.ParseTarget(name)
	if err != nil {
		return model.Place{}, protocol.Errorf(protocol.CodeInvalid, "%s: %v", field, err)
	}
	l := lookup{r, key}
	prefixes, err := r.TicketPrefixes(key.Team)
	if err != nil {
		return model.Place{}, err
	}
	place, err := target.Resolve(workstate.Lookup{
		Ticket: l.ticket, Pull: l.pull, Doc: l.doc, Numbered: l.numbered, Linked: l.linked, Prefixes: prefixes,
	})
	switch {
	case errors.Is(err, workstate.ErrUnknown):
		return place, protocol.Errorf(protocol.CodeNotFound, "%s: %v", field, err)
	case errors.Is(err, workstate.ErrAmbiguous):
		return place, protocol.Errorf(protocol.CodeInvalid, "%s: %v", field, err)
	}
	return place, err
}

// lookup looks names up for a person.
type lookup struct {
	r   store.Reader
	key model.PersonKey
}

func (l lookup) ticket(key string) (*model.Ticket, error) { return found(l.r.Ticket(l.key.Team, key)) }
func (l lookup) pull(ref string) (*model.Pull, error)     { return found(l.r.Pull(l.key.Team, ref)) }
func (l lookup) doc(id string) (*model.Doc, error)        { return found(l.r.Doc(l.key.Team, id)) }

// numbered lists the pull requests with a number. It reads all that the team has, which is for names that people give only.
func (l lookup) numbered(number int) ([]model.Pull, error) {
	return l.pulls(func(p model.Pull) bool { return p.Number == number })
}

func (l lookup) pulls(fits func(model.Pull) bool) ([]model.Pull, error) {
	all, _, err := l.r.Pulls(l.key.Team, model.PullFilter{State: protocol.ListAll})
	var some []model.Pull
	for _, p := range all {
		if fits(p) {
			some = append(some, p)
		}
	}
	return some, err
}

// linked finds what has a link that does not tell by itself: a pull request of the team, or a ticket or document that the person has to do
// with.
func (l lookup) linked(link string) (model.Place, error) {
	pulls, err := l.pulls(func(p model.Pull) bool { return samePage(p.URL, link) })
	if err != nil || len(pulls) > 0 {
		return model.Place{Type: model.RefPull, Ref: first(pulls).Ref}, err
	}
	tickets, err := l.r.TicketsOf(l.key.Team, []string{l.key.Handle})
	if err != nil {
		return model.Place{}, err
	}
	for _, t := range tickets {
		if samePage(t.URL, link) {
			return model.Place{Type: model.RefTicket, Ref: t.Key}, nil
		}
	}
	items, err := l.r.ItemsOf(l.key, true, maxWorkList)
	if err != nil {
		return model.Place{}, err
	}
	for _, it := range items {
		places, err := placesOf(l.r, it)
		if err != nil {
			return model.Place{}, err
		}
		for _, place := range places {
			page, err := pageOf(l.r, it, place)
			if err != nil {
				return model.Place{}, err
			}
			if samePage(page.URL, link) {
				return place, nil
			}
		}
	}
	return model.Place{}, nil
}

func first[T any](list []T) (v T) {
	if len(list) > 0 {
		v = list[0]
	}
	return v
}

// samePage says whether two links lead to one page, wherever on it.
func samePage(a, b string) bool {
	trim := func(s string) string {
		s, _, _ = strings.Cut(s, "#")
		return strings.TrimRight(s, "/")
	}
	return a != "" && trim(a) == trim(b)
}
