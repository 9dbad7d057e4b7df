package ost

// This file has the commands about work items: the queue, what a chat session adds to it, and the round in hand.

import (
	"github.com/spf13/cobra"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

func (a *app) work() *cobra.Command {
	return group("work", "See and arrange your work items",
		a.workList(), a.workCurrent(), a.workStatus(), a.workMove(), a.workPlace(),
		a.workCheck(), a.workLink(), a.workQueue(), a.workAttach(), a.workFileFor())
}

func (a *app) workList() *cobra.Command {
	return itemFlag(&cobra.Command{
		Use:   "list",
		Short: "List your work items, in the order they run",
		Args:  takes(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			return show(c.Context(), a, protocol.WorkList{WorkItemID: a.item(c)}, func(r protocol.WorkListResult) {
				if len(r.Items) == 0 {
					a.say("no work items")
					return
				}
				a.workTable(r.Items)
			})
		},
	})
}

func (a *app) workCurrent() *cobra.Command {
	return &cobra.Command{
		Use:   "current",
		Short: "Show your open tickets and pull requests, in words",
		Args:  takes(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			return show(c.Context(), a, protocol.CurrentWork{}, func(r protocol.CurrentWorkResult) { a.say("%s", r.Text) })
		},
	}
}

func (a *app) workStatus() *cobra.Command {
	return &cobra.Command{
		Use:   "status [ITEM...]",
		Short: "Show how work items stand",
		Long:  "Show how work items stand: those that are named, or else the one you are working on.",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				id, err := a.needItem(c)
				if err != nil {
					return err
				}
				args = []string{id}
			}
			return show(c.Context(), a, protocol.WorkStatus{WorkItemIDs: args}, func(r protocol.WorkStatusResult) {
				rows := make([][]string, 0, len(r.Items))
				for _, it := range r.Items {
					rows = append(rows, []string{it.WorkItemID, string(it.State)})
				}
				table(a.Out, []string{"ID", "STATE"}, rows)
			})
		},
	}
}

// moved prints an item after a move or a placement.
func (a *app) moved(r protocol.WorkMoveResult) { a.workTable([]protocol.WorkRef{r.Item}) }

func (a *app) workMove() *cobra.Command {
	return &cobra.Command{
		Use:   "move ITEM queued|blocked|canceled",
		Short: "Put one of your work items into another state",
		Args:  takes(2, 2),
		RunE: func(c *cobra.Command, args []string) error {
			err := oneOf("the state", args[1], string(protocol.MoveQueued), string(protocol.MoveBlocked), string(protocol.MoveCanceled))
			if err != nil {
				return err
			}
			return show(c.Context(), a, protocol.WorkMove{WorkItemID: args[0], Status: protocol.MoveStatus(args[1])}, a.moved)
		},
	}
}

func (a *app) workPlace() *cobra.Command {
	return &cobra.Command{
		Use:   "place ITEM next|last|before|after [OTHER]",
		Short: "Put one of your queued work items elsewhere in the queue",
		Example: `  ost work place 5e1d next
  ost work place 5e1d after 77aa`,
		Args: takes(2, 3),
		RunE: func(c *cobra.Command, args []string) error {
			m := protocol.WorkPlace{WorkItemID: args[0], Position: protocol.Position(args[1])}
			if len(args) == 3 {
				m.RelativeTo = args[2]
			}
			beside := m.Position == protocol.PositionBefore || m.Position == protocol.PositionAfter
			err := oneOf("the place", args[1], string(protocol.PositionNext), string(protocol.PositionLast),
				string(protocol.PositionBefore), string(protocol.PositionAfter))
			switch {
			case err != nil:
				return err
			case beside && m.RelativeTo == "":
				return usage("%s which item? Name a queued one after it", m.Position)
			case !beside && m.RelativeTo != "":
				return usage("%s needs no other item", m.Position)
			}
			return show(c.Context(), a, m, a.moved)
		},
	}
}

const chatOnly = " Only for a chat session."

func (a *app) workCheck() *cobra.Command {
	return itemFlag(&cobra.Command{
		Use:   "check REQUEST",
		Short: "Make sure that a request may be filed, before you make its ticket." + chatOnly,
		Args:  takes(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := a.needItem(c)
			if err != nil {
				return err
			}
			return show(c.Context(), a, protocol.WorkCheck{WorkItemID: id, Request: args[0]}, a.done("this may be filed"))
		},
	})
}

// filed prints the item that was made of a request, and the places it could have.
func (a *app) filed(item protocol.WorkRef, url string, waiting bool, others []protocol.WorkRef) {
	a.workTable([]protocol.WorkRef{item})
	if url != "" {
		a.say("%s", url)
	}
	if waiting && len(others) > 0 {
		a.say("\nIt waits behind other work. Ask the requester where it belongs, then: ost work place %s next|last|before|after [OTHER]\n", item.ID)
		a.workTable(others)
	}
}

func (a *app) workLink() *cobra.Command {
	return itemFlag(&cobra.Command{
		Use:   "link TICKET REQUEST",
		Short: "Make work of a ticket you created for a request." + chatOnly,
		Args:  takes(2, 2),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := a.needItem(c)
			if err != nil {
				return err
			}
			m := protocol.WorkLink{WorkItemID: id, Ticket: args[0], Request: args[1]}
			return show(c.Context(), a, m, func(r protocol.WorkLinkResult) { a.filed(r.Item, r.URL, r.Waiting, r.Work) })
		},
	})
}

func (a *app) workQueue() *cobra.Command {
	return itemFlag(&cobra.Command{
		Use:   "queue TITLE [BODY]",
		Short: "Make work of a request where there is no tracker." + chatOnly,
		Args:  takes(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := a.needItem(c)
			if err != nil {
				return err
			}
			m := protocol.WorkQueue{WorkItemID: id, Title: args[0]}
			if len(args) == 2 {
				if m.Body, err = a.text(args[1]); err != nil {
					return err
				}
			}
			return show(c.Context(), a, m, func(r protocol.WorkQueueResult) { a.filed(r.Item, r.URL, r.Waiting, r.Work) })
		},
	})
}

func (a *app) workAttach() *cobra.Command {
	c := itemFlag(&cobra.Command{
		Use:   "attach TARGET",
		Short: "Add a request to work you already have." + chatOnly,
		Long: `Add the chat session's request to a ticket or a pull request of yours, as a round on it.

TARGET is a ticket's key, or a pull request by number (12 or #12), by key (acme/shop#12) or by link. Something that
is being reviewed is refused unless the requester agreed (--confirmed).`,
		Args: takes(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := a.needItem(c)
			if err != nil {
				return err
			}
			m := protocol.WorkAttach{WorkItemID: id, Target: args[0]}
			if confirmed, _ := c.Flags().GetBool("confirmed"); confirmed {
				m.Confirmed = &confirmed
			}
			request, _ := c.Flags().GetString("request")
			if m.Request, err = a.text(request); err != nil {
				return err
			}
			return show(c.Context(), a, m, func(r protocol.WorkAttachResult) {
				a.filed(r.Item, r.URL, r.Waiting, r.Work)
				for _, s := range []*protocol.Subject{r.Attached.Ticket, r.Attached.PR} {
					if s != nil {
						a.say("attached to %s %s", s.Type, s.Ref)
					}
				}
			})
		},
	})
	c.Flags().Bool("confirmed", false, "the requester agreed, in the thread, to add to what is being reviewed")
	c.Flags().String("request", "", "what to add, a `TEXT`, if it is not the session's own message")
	return c
}

func (a *app) workFileFor() *cobra.Command {
	return itemFlag(&cobra.Command{
		Use:   "file-for ASSIGNEE TICKET REQUEST",
		Short: "Record a ticket that you created for someone else." + chatOnly,
		Long: `Record that you created a ticket for someone else, named as the tracker does. They hear of it from the tracker; no
work item is made. In its round this is kept for an absent office.`,
		Args: takes(3, 3),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := a.needItem(c)
			if err != nil {
				return err
			}
			m := protocol.WorkFileFor{WorkItemID: id, Assignee: args[0], Ticket: args[1], Request: args[2]}
			return show(c.Context(), a, m, a.done("recorded %s for %s", m.Ticket, m.Assignee))
		},
	})
}

func (a *app) journal() *cobra.Command {
	return itemFlag(&cobra.Command{
		Use:   "journal TEXT",
		Short: "Write into the journal that later rounds of the item begin with",
		Long: `Write into the item's journal: what you found, decided and tried. Later rounds are given it. In its round this is
kept for an absent office, and comes before the hand-back.`,
		Args: takes(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := a.needItem(c)
			if err != nil {
				return err
			}
			text, err := a.text(args[0])
			if err != nil {
				return err
			}
			return show(c.Context(), a, protocol.Journal{WorkItemID: id, Text: text}, a.done("written"))
		},
	})
}

func (a *app) progress() *cobra.Command {
	return itemFlag(&cobra.Command{
		Use:   "progress TEXT",
		Short: "Show people in a line where you are",
		Args:  takes(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := a.needItem(c)
			if err != nil {
				return err
			}
			return show(c.Context(), a, protocol.Progress{WorkItemID: id, Text: args[0]}, a.done("shown"))
		},
	})
}
