package workstate

// This file finds what is around a work item: the places that it has to do with by itself, and from there on what is linked to them.

import (
	"cmp"
	"slices"
	"time"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// Node is a place around a work item, with why it is.
type Node struct {
	Place   model.Place
	Role    protocol.WhyRole
	Source  string
	AddedAt time.Time
}

// nearness orders the roles of what an item has to do with by itself: of two reasons, the first counts.
var nearness = []protocol.WhyRole{
	protocol.WhyTrigger, protocol.WhySubject, protocol.WhyCreated, protocol.WhyAttached, protocol.WhyMentioned, protocol.WhyInferred,
}

// Around is what an item has to do with by itself.
type Around struct {
	Item    model.Item
	Refs    []model.Ref
	Threads []model.Thread
	// Feedback is what this round has to answer, Mentioned the places that it names.
	Feedback  []model.Feedback
	Mentioned []Node
}

// Roots lists the places that an item has to do with by itself, each once, nearest first: what woke it, its subject, what its agent made,
// what requests added, what feedback named, and what the office worked out.
func Roots(a Around) []Node {
	var nodes []Node
	for _, f := range a.Feedback {
		if f.Place.Ref != "" {
			nodes = append(nodes, Node{f.Place, protocol.WhyTrigger, cmp.Or(f.Source, f.Feedback.CommentID, string(f.Feedback.Kind)), f.At})
		}
	}
	if s := a.Item.Spec.Subject; s != nil && slices.Contains([]model.RefType{model.RefTicket, model.RefPull, model.RefDoc}, model.RefType(s.Type)) {
		nodes = append(nodes, Node{model.Place{Type: model.RefType(s.Type), Ref: s.Ref}, protocol.WhySubject, "work item", a.Item.CreatedAt})
	}
	for _, r := range a.Refs {
		if r.Role == protocol.WhyTrigger && a.Item.Rounds > 0 {
			r.Role = protocol.WhySubject // it woke the agent once
		}
		nodes = append(nodes, Node{r.Place, r.Role, r.Source, r.AddedAt})
	}
	for _, t := range a.Threads {
		role := protocol.WhyAttached
		if o := a.Item.Origin; o != nil && o.Channel == t.Channel && o.Thread == t.Thread && a.Item.Rounds == 0 {
			role = protocol.WhyTrigger
		}
		nodes = append(nodes, Node{model.Place{Type: model.RefThread, Ref: model.ThreadRef(t.Channel, t.Thread)}, role, "chat_message", t.At})
	}
	nodes = append(nodes, a.Mentioned...)
	slices.SortStableFunc(nodes, func(a, b Node) int { return slices.Index(nearness, a.Role) - slices.Index(nearness, b.Role) })
	return once(nodes)
}

// once drops nodes at places that came before.
func once(nodes []Node) []Node {
	seen := map[model.Place]bool{}
	return slices.DeleteFunc(nodes, func(n Node) bool {
		again := seen[n.Place]
		seen[n.Place] = true
		return again
	})
}

// Bounds of a walk: how many links away from the item it goes, and how many places it looks at.
const (
	walkDepth = 2
	walkMost  = 100
)

// World is what a walk looks at.
type World interface {
	// Known says whether there is such a place.
	Known(model.Place) (bool, error)
	// Linked lists what is linked to a place that is known, closest first.
	Linked(model.Place) ([]model.Place, error)
}

// Walk lists the places that are known, breadth first: roots, then what is linked to them, and so on for a few links. Once it has more than
// enough of them, it looks at no further links.
func Walk(roots []Node, world World, enough int) ([]Node, error) {
	var nodes []Node
	seen := map[model.Place]bool{}
	for _, n := range roots {
		seen[n.Place] = true
	}
	for level, depth := roots, 0; len(level) > 0; depth++ {
		var next []Node
		for i, n := range level {
			if len(nodes) == walkMost {
				return nodes, nil
			}
			known, err := world.Known(n.Place)
			if err != nil {
				return nil, err
			}
			if !known {
				continue
			}
			nodes = append(nodes, n)
			if waiting := len(level) - 1 - i; depth == walkDepth || len(nodes)+waiting+len(next) > enough {
				continue
			}
			linked, err := world.Linked(n.Place)
			if err != nil {
				return nil, err
			}
			for _, place := range linked {
				if !seen[place] {
					seen[place] = true
					next = append(next, Node{Place: place, Role: protocol.WhyLinked, Source: n.Place.Ref})
				}
			}
		}
		level = next
	}
	return nodes, nil
}

// Focus is the key of the ticket that is worked on: the subject of the item, else that of the pull request which is its subject, else the
// nearest one. pull gives a pull request; nil where it is not known.
func Focus(it model.Item, nodes []Node, pull func(ref string) *model.Pull) string {
	if s := it.Spec.Subject; s != nil {
		switch model.RefType(s.Type) {
		case model.RefTicket:
			return s.Ref
		case model.RefPull:
			if p := pull(s.Ref); p != nil && p.Ticket != "" {
				return p.Ticket
			}
		case model.RefDoc, model.RefThread:
		}
	}
	for _, n := range nodes {
		if n.Place.Type == model.RefTicket && n.Role != protocol.WhyMentioned {
			return n.Place.Ref
		}
	}
	return ""
}

// Carries says whether an item to which something belongs in that way is the work on it: what is merely named or linked is not.
func Carries(role protocol.WhyRole) bool {
	switch role {
	case protocol.WhyTrigger, protocol.WhySubject, protocol.WhyCreated, protocol.WhyAttached, protocol.WhyInferred:
		return true
	case protocol.WhyMentioned, protocol.WhyLinked:
	}
	return false
}
