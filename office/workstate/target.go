package workstate

// This file reads how people and agents name a ticket, a pull request or a document: by key, by number or by link.

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// Target is what a name was read as. Only the fields that the name tells are set.
type Target struct {
	// Text is the name as it was given, without space around it.
	Text string
	// Ticket is the key of a ticket of a tracker, its letters as they were written.
	Ticket string
	// Repo and Number are those of a pull request, or of a ticket of a code host; without a Repo, the number is of any repository. Issue
	// says that a link leads to a ticket, Pull that it leads to a pull request.
	Repo   string
	Number int
	Issue  bool
	Pull   bool
	// URL is set where the name is a link.
	URL string
}

var (
	wholeTrackerKey = regexp.MustCompile(`^(?i)[a-z][a-z0-9_]*-[1-9][0-9]{0,8}$`)
	wholeHostKey    = regexp.MustCompile(`^((?:[\w.-]+/)+[\w.-]+)?#([1-9][0-9]{0,8})$`)
	wholeNumber     = regexp.MustCompile(`^[1-9][0-9]{0,8}$`)
)

// ParseTarget reads a name. A name of no known form gives a Target with its Text alone: it may be a document's id.
func ParseTarget(name string) (Target, error) {
	t := Target{Text: strings.TrimSpace(name)}
	switch {
	case t.Text == "":
		return t, errors.New("name a ticket by its key, or a pull request by its number, as owner/repo#number or by its link")
	case len(t.Text) > 2000:
		return t, errors.New("the name is longer than any key or link")
	case strings.Contains(t.Text, "://"):
		return t.link()
	}
	if m := wholeHostKey.FindStringSubmatch(t.Text); m != nil {
		t.Repo, t.Number = m[1], number(m[2])
	} else if wholeNumber.MatchString(t.Text) {
		t.Number = number(t.Text)
	} else if wholeTrackerKey.MatchString(t.Text) {
		t.Ticket = t.Text
	}
	return t, nil
}

// number reads digits that a pattern has bounded.
func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

// pullParts are what code hosts have between a repository and the number of a pull request, issueParts of a ticket.
var (
	pullParts  = []string{"pull", "pulls", "merge_requests", "pull-requests"}
	issueParts = []string{"issues", "issue", "work_items"}
)

// link reads a link: acme/shop/pull/12 and its like at a code host, or anything with a tracker's key for a part of its path.
func (t Target) link() (Target, error) {
	u, err := url.Parse(t.Text)
	if err != nil || u.Host == "" {
		return t, fmt.Errorf("%q is no link that can be read", shorten(t.Text))
	}
	t.URL = t.Text
	parts := strings.FieldsFunc(u.Path, func(r rune) bool { return r == '/' })
	for i, part := range parts {
		pull := slices.Contains(pullParts, part)
		if i < 2 || i+1 >= len(parts) || !wholeNumber.MatchString(parts[i+1]) || !pull && !slices.Contains(issueParts, part) {
			continue
		}
		repo := parts[:i]
		if repo[len(repo)-1] == "-" {
			repo = repo[:len(repo)-1]
		}
		if len(repo) < 2 {
			continue
		}
		t.Repo, t.Number, t.Pull, t.Issue = strings.Join(repo, "/"), number(parts[i+1]), pull, !pull
		return t, nil
	}
	for _, part := range parts {
		if wholeTrackerKey.MatchString(part) {
			t.Ticket = part
			break
		}
	}
	return t, nil
}

func shorten(s string) string { return Cut(s, 100) }

// Lookup is what a Target is resolved against.
type Lookup struct {
	Ticket func(key string) (*model.Ticket, error)
	Pull   func(ref string) (*model.Pull, error)
	// Numbered lists the pull requests with a number, Linked those things that have a link.
	Numbered func(number int) ([]model.Pull, error)
	Linked   func(link string) (model.Place, error)
	Doc      func(id string) (*model.Doc, error)
	// Prefixes are those of known tickets.
	Prefixes []string
}

// ErrUnknown says that nothing of that name is known, ErrAmbiguous that a number has several owners. The text around them tells more.
var (
	ErrUnknown   = errors.New("not known to the office")
	ErrAmbiguous = errors.New("more than one pull request has this number")
)

// Resolve finds the place that a target names. A key that has the form of a tracker's is a place also where the ticket is not known, if
// its prefix is.
func (t Target) Resolve(l Lookup) (model.Place, error) {
	switch {
	case t.Ticket != "":
		return t.ticket(l)
	case t.Number > 0 && t.Repo == "":
		return t.numbered(l)
	case t.Number > 0:
		return t.hosted(l)
	case t.URL != "":
		place, err := l.Linked(t.URL)
		if err == nil && place == (model.Place{}) {
			err = t.unknown()
		}
		return place, err
	}
	if ticket, err := l.Ticket(t.Text); err != nil || ticket != nil {
		return model.Place{Type: model.RefTicket, Ref: t.Text}, err
	}
	doc, err := l.Doc(t.Text)
	if err == nil && doc == nil {
		err = t.unknown()
	}
	return model.Place{Type: model.RefDoc, Ref: t.Text}, err
}

func (t Target) unknown() error { return fmt.Errorf("%q is %w", shorten(t.Text), ErrUnknown) }

func (t Target) ticket(l Lookup) (model.Place, error) {
	for _, key := range []string{t.Ticket, strings.ToUpper(t.Ticket)} {
		if ticket, err := l.Ticket(key); err != nil || ticket != nil {
			return model.Place{Type: model.RefTicket, Ref: key}, err
		}
	}
	if doc, err := l.Doc(t.Text); err != nil || doc != nil {
		return model.Place{Type: model.RefDoc, Ref: t.Text}, err
	}
	keys := Keys{Prefixes: l.Prefixes}
	if key := keys.tracker(t.Ticket); key != "" {
		return model.Place{Type: model.RefTicket, Ref: key}, nil
	}
	return model.Place{}, t.unknown()
}

func (t Target) hosted(l Lookup) (model.Place, error) {
	ref := PullRef(t.Repo, t.Number)
	if !t.Issue {
		if pull, err := l.Pull(ref); err != nil || pull != nil {
			return model.Place{Type: model.RefPull, Ref: ref}, err
		}
	}
	if !t.Pull {
		if ticket, err := l.Ticket(ref); err != nil || ticket != nil {
			return model.Place{Type: model.RefTicket, Ref: ref}, err
		}
	}
	return model.Place{}, t.unknown()
}

func (t Target) numbered(l Lookup) (model.Place, error) {
	pulls, err := l.Numbered(t.Number)
	if err != nil {
		return model.Place{}, err
	}
	if len(pulls) > 1 {
		// Of several, the only one that is open is meant.
		open := slices.DeleteFunc(slices.Clone(pulls), func(p model.Pull) bool { return p.State != protocol.PullOpen })
		if len(open) > 0 {
			pulls = open
		}
	}
	switch len(pulls) {
	case 0:
		return model.Place{}, fmt.Errorf("pull request %d is %w", t.Number, ErrUnknown)
	case 1:
		return model.Place{Type: model.RefPull, Ref: pulls[0].Ref}, nil
	}
	refs := make([]string, 0, len(pulls))
	for _, p := range pulls {
		refs = append(refs, p.Ref)
	}
	slices.Sort(refs)
	return model.Place{}, fmt.Errorf("%w: %s; name the one that you mean", ErrAmbiguous, strings.Join(refs, ", "))
}

// mostMentions bounds how many names are read from one text.
const mostMentions = 10

var mention = regexp.MustCompile(`https?://[^\s<>()\[\]"'` + "`" + `]+|(?:[\w.-]+/)+[\w.-]+#[1-9][0-9]{0,8}|\b[A-Z][A-Z0-9_]*-[1-9][0-9]{0,8}\b`)

// Mentions reads the names of tickets, pull requests and documents in a text, each once, in the order in which they stand there. Whether
// there are such things is for Resolve to find out.
func Mentions(text string) []Target {
	var found []Target
	seen := map[string]bool{}
	for _, name := range mention.FindAllString(text, -1) {
		name = strings.TrimRight(name, ".,;:!?")
		if seen[name] || len(found) == mostMentions {
			continue
		}
		seen[name] = true
		if t, err := ParseTarget(name); err == nil {
			found = append(found, t)
		}
	}
	return found
}

// Cut shortens a text to at most limit characters, the last of which then tells that it was.
func Cut(s string, limit int) string {
	n, last := 0, 0
	for i := range s {
		if n == limit {
			return s[:last] + "…"
		}
		last = i
		n++
	}
	return s
}
