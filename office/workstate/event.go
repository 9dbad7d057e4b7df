package workstate

// This file has the events that reach the office from outside: their types, what each brings as data, and how it is read.

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

// The types of events that the office knows.
const (
	EventTicketChanged     = "ticket.changed"
	EventTicketCommented   = "ticket.commented"
	EventPullChanged       = "pr.changed"
	EventPullCommented     = "pr.commented"
	EventPullReviewed      = "pr.reviewed"
	EventPullReviewComment = "pr.review_comment"
	EventThreadResolved    = "pr.thread_resolved"
	EventThreadUnresolved  = "pr.thread_unresolved"
	EventPullChecks        = "pr.checks"
	EventDocChanged        = "doc.changed"
	EventDocCommented      = "doc.commented"
)

// The verdicts of a review.
const (
	ReviewApproved         = "approved"
	ReviewChangesRequested = "changes_requested"
	ReviewCommented        = "commented"
)

// Bounds of what an event brings: of lists, and of texts in bytes. Bodies are bounded by the event's own size.
const (
	mostReviewComments = 500
	mostFailingChecks  = 200
	mostKey            = 300
	mostText           = 1000
	mostLogin          = 200
	mostCommitID       = 100
)

// Data is what an event of a known type brings.
type Data interface{ check(at string) error }

// TicketChanged has a ticket as it is now.
type TicketChanged struct {
	// Key names the ticket in its tracker, such as ACME-12, or acme/shop#12 where a code host is the tracker.
	Key   string `json:"key"`
	Title string `json:"title"`
	URL   string `json:"url,omitzero" wire:"url"`
	// Status is the one that the tracker's own status is mapped to.
	Status      protocol.TicketStatus `json:"status"`
	Assignee    *Actor                `json:"assignee,omitzero"`
	Description string                `json:"description,omitzero"`
	// Parent is the key of the ticket that this one is a part of.
	Parent string `json:"parent,omitzero"`
	// By is who changed it.
	By *Actor `json:"by,omitzero"`
}

// Comment is something that somebody wrote.
type Comment struct {
	// ID is the system's, unique at the ticket, pull request or document.
	ID     string `json:"id"`
	Author Actor  `json:"author"`
	Body   string `json:"body"`
	URL    string `json:"url,omitzero" wire:"url"`
	// At is when it was written; without it, the time of the event.
	At string `json:"at,omitzero" wire:"time"`
}

// TicketCommented has a comment on a ticket.
type TicketCommented struct {
	// Ticket is the ticket's key.
	Ticket  string  `json:"ticket"`
	Comment Comment `json:"comment"`
}

// PullChanged has a pull request as it is now, without its checks and reviews, which have events of their own.
type PullChanged struct {
	// Repo is owner/name.
	Repo   string             `json:"repo"`
	Number int                `json:"number" wire:"min=1"`
	Title  string             `json:"title"`
	URL    string             `json:"url,omitzero" wire:"url"`
	State  protocol.PullState `json:"state"`
	Draft  bool               `json:"draft" wire:"optional"`
	Author Actor              `json:"author"`
	// Bot says that the author is a program which is no person of the team.
	Bot bool `json:"bot" wire:"optional"`
	// Head is the branch that it brings, Base the one that it goes into.
	Head string `json:"head"`
	Base string `json:"base"`
	// Body is the description, which may close a ticket.
	Body      string             `json:"body,omitzero"`
	Mergeable protocol.Mergeable `json:"mergeable,omitzero"`
	// Ticket is the key of the ticket that it is for, where the sender knows better than its branch, title and body.
	Ticket   string `json:"ticket,omitzero"`
	OpenedAt string `json:"openedAt,omitzero" wire:"time"`
}

// PullCommented has a comment in the conversation of a pull request.
type PullCommented struct {
	Repo    string  `json:"repo"`
	Number  int     `json:"number" wire:"min=1"`
	Comment Comment `json:"comment"`
}

// ReviewComment is a comment on a line of a diff.
type ReviewComment struct {
	ID   string `json:"id"`
	Path string `json:"path"`
	// Line is from 1; 0 and absent are none.
	Line int    `json:"line,omitzero" wire:"min=0"`
	Body string `json:"body"`
	URL  string `json:"url,omitzero" wire:"url"`
	// ThreadID is the thread that it belongs to, and that is resolved as a whole.
	ThreadID string `json:"threadId,omitzero"`
}

// Review is a review of a pull request with its inline comments.
type Review struct {
	ID     string `json:"id"`
	Author Actor  `json:"author"`
	// State is approved, changes_requested or commented.
	State    string          `json:"state"`
	Body     string          `json:"body" wire:"optional"`
	URL      string          `json:"url,omitzero" wire:"url"`
	At       string          `json:"at,omitzero" wire:"time"`
	Comments []ReviewComment `json:"comments,omitzero"`
}

// PullReviewed has a review.
type PullReviewed struct {
	Repo   string `json:"repo"`
	Number int    `json:"number" wire:"min=1"`
	Review Review `json:"review"`
}

// PullReviewComment has one comment on a line of a diff, in a thread or out of a review.
type PullReviewComment struct {
	Repo    string        `json:"repo"`
	Number  int           `json:"number" wire:"min=1"`
	Author  Actor         `json:"author"`
	At      string        `json:"at,omitzero" wire:"time"`
	Comment ReviewComment `json:"comment"`
	// ReviewID is the review that the comment is part of.
	ReviewID string `json:"reviewId,omitzero"`
}

// ThreadChanged says that a thread of a review was resolved, or opened again.
type ThreadChanged struct {
	Repo     string `json:"repo"`
	Number   int    `json:"number" wire:"min=1"`
	ThreadID string `json:"threadId"`
}

// FailingCheck is a check that failed.
type FailingCheck struct {
	Name    string `json:"name"`
	URL     string `json:"url,omitzero" wire:"url"`
	Summary string `json:"summary,omitzero"`
}

// PullChecks has how the checks of a pull request's latest commit stand, all together.
type PullChecks struct {
	Repo   string `json:"repo"`
	Number int    `json:"number" wire:"min=1"`
	// SHA is the commit that was checked.
	SHA     string              `json:"sha"`
	State   protocol.CheckState `json:"state"`
	Failing []FailingCheck      `json:"failing,omitzero"`
}

// DocChanged has a document as it is now.
type DocChanged struct {
	// ID is the knowledge base's.
	ID    string `json:"id"`
	Title string `json:"title"`
	URL   string `json:"url,omitzero" wire:"url"`
	// Ticket is the key of the ticket that it was written for.
	Ticket string `json:"ticket,omitzero"`
	Author *Actor `json:"author,omitzero"`
}

// DocCommented has a comment on a document, or a reply to one.
type DocCommented struct {
	// Doc is the document's id.
	Doc     string  `json:"doc"`
	Comment Comment `json:"comment"`
	// AnchorText are the words of the document that are marked.
	AnchorText string `json:"anchorText,omitzero"`
}

// newData has an empty Data for each type of event.
var newData = map[string]func() Data{
	EventTicketChanged:     func() Data { return new(TicketChanged) },
	EventTicketCommented:   func() Data { return new(TicketCommented) },
	EventPullChanged:       func() Data { return new(PullChanged) },
	EventPullCommented:     func() Data { return new(PullCommented) },
	EventPullReviewed:      func() Data { return new(PullReviewed) },
	EventPullReviewComment: func() Data { return new(PullReviewComment) },
	EventThreadResolved:    func() Data { return new(ThreadChanged) },
	EventThreadUnresolved:  func() Data { return new(ThreadChanged) },
	EventPullChecks:        func() Data { return new(PullChecks) },
	EventDocChanged:        func() Data { return new(DocChanged) },
	EventDocCommented:      func() Data { return new(DocCommented) },
}

// Types lists the types of events that the office knows.
func Types() []string {
	return slices.Sorted(maps.Keys(newData))
}

// ParseData reads the data of an event. It gives nil for a type that the office does not know, and an error that names the field by a path
// which begins with base.
func ParseData(eventType string, data []byte, base string) (Data, error) {
	empty, known := newData[eventType]
	if !known {
		return nil, nil
	}
	if len(data) == 0 {
		return nil, fmt.Errorf("%s is missing: an event of type %s has data", base, eventType)
	}
	d := empty()
	if werr := protocol.DecodeObject(data, base, d); werr != nil {
		return nil, errors.New(werr.Message)
	}
	return d, d.check(base + ".")
}

var repoName = regexp.MustCompile(`^[\w.-]+(/[\w.-]+)+$`)

// checks are the things that a type of Go cannot say, checked in order; the first that is wrong is told.
type checks []error

func (c checks) first() error {
	for _, err := range c {
		if err != nil {
			return err
		}
	}
	return nil
}

// named wants a text that can be a key: not empty, bounded, and without spaces at its ends or characters that cannot be seen.
func named(path, value string, most int) error {
	switch {
	case value == "":
		return fmt.Errorf("%s must not be empty", path)
	case len(value) > most:
		return fmt.Errorf("%s has at most %d bytes, not %d", path, most, len(value))
	case strings.TrimSpace(value) != value || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("%s must not have space at its ends, nor control characters", path)
	}
	return nil
}

func optional(path, value string, most int) error {
	if value == "" {
		return nil
	}
	return named(path, value, most)
}

func short(path, value string) error {
	if len(value) > mostText {
		return fmt.Errorf("%s has at most %d bytes, not %d", path, mostText, len(value))
	}
	return nil
}

func repo(path, value string) error {
	if len(value) > mostKey || !repoName.MatchString(value) {
		return fmt.Errorf("%s must be owner/name, such as acme/shop", path)
	}
	return nil
}

func (a Actor) check(path string) error {
	return checks{
		named(path+".login", a.Login, mostLogin), optional(path+".system", a.System, mostLogin), optional(path+".person", a.Person, mostLogin),
	}.first()
}

func (a *Actor) checkOptional(path string) error {
	if a == nil {
		return nil
	}
	return a.check(path)
}

func (c Comment) check(path string) error {
	return checks{named(path+".id", c.ID, mostKey), c.Author.check(path + ".author")}.first()
}

func (c ReviewComment) check(path string) error {
	return checks{
		named(path+".id", c.ID, mostKey), named(path+".path", c.Path, mostText), optional(path+".threadId", c.ThreadID, mostKey),
	}.first()
}

func (d *TicketChanged) check(at string) error {
	return checks{
		named(at+"key", d.Key, mostKey), short(at+"title", d.Title), d.Assignee.checkOptional(at + "assignee"),
		optional(at+"parent", d.Parent, mostKey), d.By.checkOptional(at + "by"),
	}.first()
}

func (d *TicketCommented) check(at string) error {
	return checks{named(at+"ticket", d.Ticket, mostKey), d.Comment.check(at + "comment")}.first()
}

func (d *PullChanged) check(at string) error {
	return checks{
		repo(at+"repo", d.Repo), short(at+"title", d.Title), d.Author.check(at + "author"), named(at+"head", d.Head, mostKey),
		named(at+"base", d.Base, mostKey), optional(at+"ticket", d.Ticket, mostKey),
	}.first()
}

func (d *PullCommented) check(at string) error {
	return checks{repo(at+"repo", d.Repo), d.Comment.check(at + "comment")}.first()
}

func (d *PullReviewed) check(at string) error {
	r := d.Review
	list := checks{repo(at+"repo", d.Repo), named(at+"review.id", r.ID, mostKey), r.Author.check(at + "review.author")}
	switch r.State {
	case ReviewApproved, ReviewChangesRequested, ReviewCommented:
	default:
		list = append(list, fmt.Errorf("%sreview.state must be %s, %s or %s", at, ReviewApproved, ReviewChangesRequested, ReviewCommented))
	}
	if len(r.Comments) > mostReviewComments {
		list = append(list, fmt.Errorf("%sreview.comments has at most %d, not %d", at, mostReviewComments, len(r.Comments)))
	}
	for i, c := range r.Comments {
		list = append(list, c.check(fmt.Sprintf("%sreview.comments[%d]", at, i)))
	}
	return list.first()
}

func (d *PullReviewComment) check(at string) error {
	return checks{
		repo(at+"repo", d.Repo), d.Author.check(at + "author"), d.Comment.check(at + "comment"), optional(at+"reviewId", d.ReviewID, mostKey),
	}.first()
}

func (d *ThreadChanged) check(at string) error {
	return checks{repo(at+"repo", d.Repo), named(at+"threadId", d.ThreadID, mostKey)}.first()
}

func (d *PullChecks) check(at string) error {
	list := checks{repo(at+"repo", d.Repo), named(at+"sha", d.SHA, mostCommitID)}
	if len(d.Failing) > mostFailingChecks {
		list = append(list, fmt.Errorf("%sfailing has at most %d, not %d", at, mostFailingChecks, len(d.Failing)))
	}
	for i, c := range d.Failing {
		list = append(list, named(fmt.Sprintf("%sfailing[%d].name", at, i), c.Name, mostKey))
	}
	return list.first()
}

func (d *DocChanged) check(at string) error {
	return checks{
		named(at+"id", d.ID, mostKey), short(at+"title", d.Title), optional(at+"ticket", d.Ticket, mostKey), d.Author.checkOptional(at + "author"),
	}.first()
}

func (d *DocCommented) check(at string) error {
	return checks{named(at+"doc", d.Doc, mostKey), d.Comment.check(at + "comment")}.first()
}
