package ost

// This file has the commands for programs that stand between the team and a chat, and the one that sends any message.

import (
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

func (a *app) chat() *cobra.Command {
	return group("chat", "Chat, for programs that bring messages and post reports", a.chatReceive(), a.chatReport())
}

func (a *app) chatReceive() *cobra.Command {
	c := &cobra.Command{
		Use:   "receive MESSAGE-ID CHANNEL AUTHOR-ID TEXT",
		Short: "Bring a message that a trusted human wrote in chat",
		Long: `Bring a message that a trusted human wrote in chat. The office knows a message that comes twice by its channel and id.
It is kept for an absent office.`,
		Example: `  ost chat receive 171.4 C042 U7 "Can you look at the invoices?" --thread 171.1 --name Grace
  ost chat receive 171.5 C042 U7 "" --file '{"id":"F1","name":"log.txt","mimetype":"text/plain","size":120,"url":"https://chat.example.com/F1"}'`,
		Args: takes(4, 4),
		RunE: func(c *cobra.Command, args []string) error {
			text, err := a.text(args[3])
			if err != nil {
				return err
			}
			m := protocol.ChatMessage{MessageID: args[0], Channel: args[1], Author: protocol.Requester{ID: args[2]}, Text: text}
			m.Author.Name, _ = c.Flags().GetString("name")
			m.Thread, _ = c.Flags().GetString("thread")
			m.Direct, _ = c.Flags().GetBool("direct")
			m.Participant, _ = c.Flags().GetBool("participant")
			files, _ := c.Flags().GetStringArray("file")
			for _, text := range files {
				var f protocol.File
				if err := json.Unmarshal([]byte(text), &f); err != nil {
					return usage("--file must be a JSON object with id, name, mimetype, size and url: %v", err)
				}
				m.Files = append(m.Files, f)
			}
			return show(c.Context(), a, m, func(r protocol.ChatMessageResult) {
				if r.Repeated {
					a.say("taken before")
					return
				}
				a.say("taken")
			})
		},
	}
	c.Flags().String("thread", "", "the `ID` of the thread it is in")
	c.Flags().String("name", "", "the author's `NAME`")
	c.Flags().Bool("direct", false, "it is a direct message")
	c.Flags().Bool("participant", false, "the author wrote in the thread before")
	c.Flags().StringArray("file", nil, "a file that came with it, as `JSON`; may be given again")
	return c
}

func (a *app) chatReport() *cobra.Command {
	return itemFlag(&cobra.Command{
		Use:   "report ack|result|blocked|failed",
		Short: "Ask leave to tell the requester how the item ended, and where",
		Long: `Ask leave to tell the requester how the item ended. The office says yes once for each ending, so that nothing is posted
twice: post it when it says so, and do not ask again.`,
		Args: takes(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := a.needItem(c)
			if err != nil {
				return err
			}
			err = oneOf("the kind", args[0], string(protocol.TellAck), string(protocol.TellResult), string(protocol.TellBlocked), string(protocol.TellFailed))
			if err != nil {
				return err
			}
			m := protocol.ChatReport{WorkItemID: id, Kind: protocol.ChatReportKind(args[0])}
			return show(c.Context(), a, m, func(r protocol.ChatReportResult) {
				if !r.Post {
					a.say("post nothing")
					return
				}
				a.audience(r.Requester, r.Threads, r.Direct, r.Links)
			})
		},
	})
}

// audience prints where to post something.
func (a *app) audience(requester string, threads []protocol.Thread, direct string, links []protocol.Link) {
	if requester != "" {
		a.say("for %s", requester)
	}
	for _, t := range threads {
		a.say("post in %s, thread %s", t.Channel, t.Thread)
	}
	if direct != "" {
		a.say("post to %s directly", direct)
	}
	a.linkLines(links)
}

func (a *app) reports() *cobra.Command {
	return &cobra.Command{
		Use:   "reports",
		Short: "List the reports that the office wants posted",
		Long: `List the reports that the office wants posted, and that neither the team's hook on_report nor a program has posted. Post
each once, then say so: ost report posted ID.`,
		Args: takes(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			ans, err := a.client.do(c.Context(), http.MethodGet, "/v1/reports", nil)
			if err != nil {
				return err
			}
			return present(a, ans, func(r protocol.Reports) {
				if len(r.Reports) == 0 {
					a.say("no reports")
				}
				for _, report := range r.Reports {
					a.say("%s  %s of item %s", report.ID, report.Kind, report.WorkItemID)
					a.audience(report.Requester, report.Threads, report.Direct, report.Links)
					a.say("%s\n", indent(report.Text))
				}
			})
		},
	}
}

func (a *app) report() *cobra.Command {
	return group("report", "Reports that the office wants posted", itemFlag(&cobra.Command{
		Use:   "posted ID",
		Short: "Confirm that you posted a report",
		Long: `Confirm that you posted a report (see ost reports). It is kept for an absent office. A report that the agent does not know,
because it is older than the agent's last start, needs its work item too (--item).`,
		Args: takes(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			id := ""
			if c.Flags().Changed("item") {
				id = a.item(c)
			} else {
				var open protocol.Reports
				ans, err := a.client.do(c.Context(), http.MethodGet, "/v1/reports", nil)
				if err == nil {
					err = unpack(ans, &open)
				}
				if err != nil {
					return err
				}
				at := slices.IndexFunc(open.Reports, func(r protocol.Report) bool { return r.ID == args[0] })
				if at < 0 {
					return fail(ExitRefused, protocol.CodeNotFound, "there is no open report %s; ost reports lists them", args[0])
				}
				id = open.Reports[at].WorkItemID
			}
			return show(c.Context(), a, protocol.ReportPosted{WorkItemID: id, ID: args[0]}, a.done("confirmed"))
		},
	}))
}

func (a *app) raw() *cobra.Command {
	return &cobra.Command{
		Use:   "send TYPE [PAYLOAD]",
		Short: "Send any message of the protocol that a program may send",
		Long: `Send a message of the agent protocol by its type, its payload as JSON, and print the answer's payload. The commands above
send the same messages; this one has every field. What would end a round behind the agent's back is refused.`,
		Example: `  ost send work_status '{"workItemIds":["5e1d"]}'
  ost send chat_message - < message.json`,
		Args: takes(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			payload := "{}"
			if len(args) == 2 {
				var err error
				if payload, err = a.text(args[1]); err != nil {
					return err
				}
			}
			if !jsontext.Value(payload).IsValid() {
				return usage("the payload is not JSON")
			}
			if _, known := protocol.SpecOf(protocol.Type(args[0])); !known {
				return usage("the protocol has no message %q", args[0])
			}
			ans, err := a.client.send(c.Context(), protocol.Type(args[0]), jsontext.Value(payload))
			if err != nil {
				return err
			}
			a.json = true
			return present(a, ans, func(jsontext.Value) {})
		},
	}
}
