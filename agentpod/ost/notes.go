package ost

// This file has the commands about what a person remembers: notes, and the past.

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

func (a *app) note() *cobra.Command {
	c := group("note", "Keep notes for all your later rounds",
		a.noteList(), a.noteAdd(), a.noteUpdate(), a.noteRemove(), a.noteMigrated(), a.noteIgnored())
	c.Long = `Keep notes: what is worth knowing in every later round, whatever its work item. They are in the home, and the page
named by $` + contract.EnvNotesFile + ` has them all. The office hears of each change; it is told later if it is away.

What belongs to one work item goes into its journal instead (ost journal).`
	return c
}

// notes is what the agent keeps.
type notes struct {
	Notes []noteEntry `json:"notes"`
}

type noteEntry struct {
	ID   int    `json:"id"`
	Text string `json:"text"`
	At   string `json:"at"`
}

// noteResult is what the agent says of a change: the note, and what became of telling the office.
type noteResult struct {
	Note   noteEntry `json:"note"`
	Office answer    `json:"office"`
}

func (a *app) noteList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List your notes",
		Args:  takes(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			ans, err := a.client.do(c.Context(), http.MethodGet, "/v1/notes", nil)
			if err != nil {
				return err
			}
			return present(a, ans, func(n notes) {
				if len(n.Notes) == 0 {
					a.say("no notes")
				}
				for _, entry := range n.Notes {
					a.say("%d. %s", entry.ID, strings.TrimPrefix(indent(entry.Text), "  "))
				}
			})
		},
	}
}

// changeNotes makes a change of the notes, which stands whatever the office says.
func (a *app) changeNotes(c *cobra.Command, method, path, text, done string) error {
	ans, err := a.client.do(c.Context(), method, path, map[string]string{"text": text, "workItemId": a.item(c)})
	if err != nil {
		return err
	}
	return present(a, ans, func(r noteResult) {
		a.say("%s note %d", done, r.Note.ID)
		if r.Office.Queued {
			a.say("queued: the office hears of it when it can be reached")
		}
		var e protocol.Error
		if r.Office.Type == protocol.TypeError && json.Unmarshal(r.Office.Payload, &e) == nil {
			a.hint("the office was not told: %s", e.Message)
		}
	})
}

func (a *app) noteAdd() *cobra.Command {
	return itemFlag(&cobra.Command{
		Use:     "add TEXT",
		Short:   "Add a note",
		Example: `  ost note add "The staging database is reset every Monday."`,
		Args:    takes(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			text, err := a.text(args[0])
			if err != nil {
				return err
			}
			return a.changeNotes(c, http.MethodPost, "/v1/notes", text, "added")
		},
	})
}

func (a *app) noteUpdate() *cobra.Command {
	return itemFlag(&cobra.Command{
		Use:   "update NUMBER TEXT",
		Short: "Write a note anew",
		Args:  takes(2, 2),
		RunE: func(c *cobra.Command, args []string) error {
			text, err := a.text(args[1])
			if err != nil {
				return err
			}
			return a.changeNotes(c, http.MethodPut, "/v1/notes/"+url.PathEscape(args[0]), text, "updated")
		},
	})
}

func (a *app) noteRemove() *cobra.Command {
	return itemFlag(&cobra.Command{
		Use:   "remove NUMBER",
		Short: "Remove a note that is no longer true",
		Args:  takes(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.changeNotes(c, http.MethodDelete, "/v1/notes/"+url.PathEscape(args[0]), "", "removed")
		},
	})
}

// docFlags adds the flags that name a page of the knowledge base.
func docFlags(c *cobra.Command) *cobra.Command {
	c.Flags().String("doc-id", "", "the page's `ID` in the knowledge base")
	c.Flags().String("doc-title", "", "the page's `TITLE`")
	c.Flags().String("doc-url", "", "the page's absolute `URL`")
	c.MarkFlagsRequiredTogether("doc-id", "doc-title", "doc-url")
	return c
}

// docOf reads them; nil where none is given.
func docOf(c *cobra.Command) *protocol.Doc {
	id, _ := c.Flags().GetString("doc-id")
	if id == "" {
		return nil
	}
	title, _ := c.Flags().GetString("doc-title")
	address, _ := c.Flags().GetString("doc-url")
	return &protocol.Doc{ID: id, Title: title, URL: address}
}

func (a *app) noteMigrated() *cobra.Command {
	c := docFlags(itemFlag(&cobra.Command{
		Use:   "migrated",
		Short: "Tell that a program moved your notes into the knowledge base",
		Long:  "Tell the office that a program moved your notes into the knowledge base, so that remarks on the page reach you.",
		Args:  takes(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			n, _ := c.Flags().GetInt("count")
			m := protocol.NotesChanged{Change: protocol.NoteMigrated, Count: &n, Doc: docOf(c), WorkItemID: a.item(c)}
			return show(c.Context(), a, m, a.done("told"))
		},
	}))
	c.Flags().Int("count", 0, "the `NUMBER` of notes that were moved")
	return c
}

func (a *app) noteIgnored() *cobra.Command {
	c := docFlags(itemFlag(&cobra.Command{
		Use:   "edit-ignored AUTHOR AT VERSION",
		Short: "Tell that a version of your notes is not used, for its author is not trusted",
		Args:  takes(3, 3),
		RunE: func(c *cobra.Command, args []string) error {
			m := protocol.NotesChanged{
				Change: protocol.NoteEditIgnored, Edit: &protocol.NoteEdit{Author: args[0], At: args[1], Version: args[2]},
				Doc: docOf(c), WorkItemID: a.item(c),
			}
			return show(c.Context(), a, m, a.done("told"))
		},
	}))
	return c
}

func (a *app) recall() *cobra.Command {
	c := &cobra.Command{
		Use:   "recall QUERY",
		Short: "Search your own past",
		Long: `Search your own past: items, journals, outcomes, events and chat, newest first.

All words of the query must be there, in any form. "Words in quotes" are a phrase, or between two terms means either,
and -word is for what must not be there.`,
		Example: `  ost recall 'invoice rounding'
  ost recall '"money type" or decimal -test' --about SHOP-12 --since 2026-01-01`,
		Args: takes(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			m := protocol.Recall{Query: args[0]}
			m.With, _ = c.Flags().GetString("with")
			m.About, _ = c.Flags().GetString("about")
			m.Since, _ = c.Flags().GetString("since")
			m.Limit, _ = c.Flags().GetInt("limit")
			return show(c.Context(), a, m, func(r protocol.RecallResult) {
				if len(r.Moments) == 0 {
					a.say("nothing found")
				}
				for _, moment := range r.Moments {
					line := []string{moment.At, moment.Kind}
					if moment.Where != nil {
						line = append(line, moment.Where.Type+" "+moment.Where.Ref)
					}
					if moment.Who != "" {
						line = append(line, moment.Who)
					}
					a.say("%s\n%s", strings.Join(append(line, strings.Fields(moment.URL)...), "  "), indent(moment.Excerpt))
				}
				if r.More {
					a.say("there is more: raise --limit, or narrow the query")
				}
			})
		},
	}
	c.Flags().String("with", "", "only moments with this `PERSON`: a handle, or a human by name or identity")
	c.Flags().String("about", "", "only moments about this `THING`: a ticket, a pull request or a document")
	c.Flags().String("since", "", "only moments from this `TIME` or day on")
	c.Flags().Int("limit", 10, "show at most this `NUMBER`")
	return c
}
