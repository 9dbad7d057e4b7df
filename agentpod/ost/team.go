package ost

// This file has the commands about teammates: questions, answers and the roster.

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

func (a *app) ask() *cobra.Command {
	return itemFlag(&cobra.Command{
		Use:   "ask PERSON QUESTION",
		Short: "Ask a teammate, and fetch the answer",
		Long: `Ask a teammate, named by handle or role. The question becomes work for them.

The same question again, in the same words from the same work item, asks nobody anew: it tells where the question
stands, and has the answer once there is one. If you cannot go on without it, hand back as "waiting": the answer
comes into your journal, and your next round begins.`,
		Example: `  ost ask bob "Which port does the billing service use?"
  ost ask reviewer - < question.md`,
		Args: takes(2, 2),
		RunE: func(c *cobra.Command, args []string) error {
			question, err := a.text(args[1])
			if err != nil {
				return err
			}
			m := protocol.Ask{To: args[0], Question: question, WorkItemID: a.item(c)}
			return show(c.Context(), a, m, func(r protocol.AskResult) {
				if r.Status == protocol.AskAnswered {
					a.say("%s", r.Answer)
					return
				}
				a.say("pending: question %s is with %s", r.ID, r.To)
			})
		},
	})
}

func (a *app) answer() *cobra.Command {
	return itemFlag(&cobra.Command{
		Use:   "answer TEXT",
		Short: "Answer the question you are working on",
		Long: `Answer a question that came as a work item. Its id is the item's; --item names another one.
In its round the answer is kept for an absent office.`,
		Example: `  ost answer "Port 8443."
  ost answer - < answer.md`,
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
			return show(c.Context(), a, protocol.Answer{QuestionID: id, Answer: text}, a.done("answered %s", id))
		},
	})
}

func (a *app) roster() *cobra.Command {
	return &cobra.Command{
		Use:   "roster",
		Short: "Show who is on the team and what they do",
		Args:  takes(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			return show(c.Context(), a, protocol.Roster{}, func(r protocol.RosterResult) {
				rows := make([][]string, 0, len(r.Members))
				for _, m := range r.Members {
					used := ""
					if m.Usage != nil {
						used = fmt.Sprintf("%.0f%% of %s", 100*m.Usage.Utilization, m.Usage.Window)
					}
					rows = append(rows, []string{m.Handle, m.Name, m.Role, string(m.Status), used, m.Current})
				}
				table(a.Out, []string{"HANDLE", "NAME", "ROLE", "STATUS", "USAGE", "WORKS ON"}, rows)
				for _, h := range r.Humans {
					a.say("human: %s", h.Name)
				}
			})
		},
	}
}
