package ost

// This file has the commands about tickets, pull requests, documents and checks. There is no code host behind them yet: what
// they know is what the office was told.

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

func (a *app) pr() *cobra.Command {
	return group("pr", "Pull requests: open, record and list them", a.prOpen(), a.prCheck(), a.prMade(), a.prList())
}

// mayNotOpen says why no pull request may be opened for the ticket that it would belong to; empty if one may.
func mayNotOpen(r protocol.TicketPrsResult) string {
	if r.Ticket == "" {
		return ""
	}
	if r.Status == protocol.TicketStatusDone || r.Status == protocol.TicketStatusCanceled {
		return fmt.Sprintf("ticket %s is %s, so it gets no new pull request: make a ticket of its own for what is left", r.Ticket, r.Status)
	}
	for _, p := range r.PRs {
		if p.State == protocol.PullOpen {
			return fmt.Sprintf("ticket %s has an open pull request already, %s: push to its branch instead, or have it closed", r.Ticket, p.Ref)
		}
	}
	return ""
}

// pullFlags adds the flags that say what a pull request would be.
func pullFlags(c *cobra.Command) *cobra.Command {
	c.Flags().String("branch", "", "the `BRANCH` it comes from (default the current one)")
	c.Flags().String("title", "", "its `TITLE` (default the last commit's)")
	c.Flags().String("body", "", "its description, a `TEXT` (default the last commit's)")
	return c
}

// pull reads them, and asks git for what is not given.
func (a *app) pull(c *cobra.Command) (protocol.TicketPrs, error) {
	var m protocol.TicketPrs
	var err error
	m.HeadRef, _ = c.Flags().GetString("branch")
	m.Title, _ = c.Flags().GetString("title")
	m.Body, _ = c.Flags().GetString("body")
	if m.Body, err = a.text(m.Body); err != nil {
		return m, err
	}
	if m.HeadRef == "" {
		if m.HeadRef, err = a.git(c.Context(), "symbolic-ref", "--quiet", "--short", "HEAD"); err != nil || m.HeadRef == "" {
			return m, usage("there is no current branch here: go into the clone and check a branch out, or name one with --branch")
		}
	}
	given := c.Flags().Changed("body")
	if m.Title == "" {
		if m.Title, err = a.git(c.Context(), "log", "-1", "--format=%s", m.HeadRef); err != nil {
			return m, usage("the last commit of %s cannot be read, so say what the pull request is with --title: %v", m.HeadRef, err)
		}
		if !given {
			if m.Body, err = a.git(c.Context(), "log", "-1", "--format=%b", m.HeadRef); err != nil {
				return m, err
			}
		}
	}
	return m, nil
}

func (a *app) prCheck() *cobra.Command {
	return pullFlags(&cobra.Command{
		Use:   "check",
		Short: "See whether a pull request may be opened, and for which ticket",
		Long: `See which ticket a pull request would belong to, by its branch, its title or a closing word in its description, and
which pull requests that ticket has. Ends with 1 if it may get no other: a ticket has one open pull request at a time, and
a finished one gets none.`,
		Args: takes(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			m, err := a.pull(c)
			if err != nil {
				return err
			}
			var found protocol.TicketPrsResult
			ans, err := a.client.send(c.Context(), m.Type(), m)
			if err == nil {
				err = unpack(ans, &found)
			}
			if err != nil {
				return err
			}
			if err := present(a, ans, a.ticketPulls); err != nil {
				return err
			}
			if why := mayNotOpen(found); why != "" {
				return &failure{exit: ExitRefused, message: why, shown: true}
			}
			return nil
		},
	})
}

func (a *app) ticketPulls(r protocol.TicketPrsResult) {
	if r.Ticket == "" {
		a.say("it would belong to no ticket")
		return
	}
	a.say("ticket %s, %s", r.Ticket, cmp.Or(string(r.Status), "of unknown status"))
	rows := make([][]string, 0, len(r.PRs))
	for _, p := range r.PRs {
		rows = append(rows, []string{p.Ref, string(p.State), string(p.AuthorKind), p.Title})
	}
	if len(rows) > 0 {
		table(a.Out, []string{"PR", "STATE", "AUTHOR", "TITLE"}, rows)
	}
}

func (a *app) prMade() *cobra.Command {
	c := itemFlag(&cobra.Command{
		Use:   "made OWNER/REPO NUMBER",
		Short: "Record a pull request that you opened",
		Long: `Record a pull request that you opened while working on the item. It is then something to review: without any, and
without a toReview in its result, a round that ends as done counts as blocked. In its round this is kept for an absent office.`,
		Example: `  ost pr made acme/shop 12 --ticket SHOP-7 --url https://git.example.com/acme/shop/pulls/12`,
		Args:    takes(2, 2),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := a.needItem(c)
			if err != nil {
				return err
			}
			owner, name, ok := cutLast(args[0])
			number, err := strconv.Atoi(strings.TrimPrefix(args[1], "#"))
			switch {
			case !ok:
				return usage("name the repository as OWNER/REPO, not %q", args[0])
			case err != nil || number < 1:
				return usage("%q is no number of a pull request", args[1])
			}
			m := protocol.WorkMade{WorkItemID: id, PR: &protocol.MadePull{Repo: protocol.Repo{Owner: owner, Name: name}, Number: number}}
			m.Ticket, _ = c.Flags().GetString("ticket")
			m.PR.URL, _ = c.Flags().GetString("url")
			m.PR.Repo.Host, _ = c.Flags().GetString("host")
			return show(c.Context(), a, m, a.done("recorded %s#%d", args[0], number))
		},
	})
	c.Flags().String("ticket", "", "the `KEY` of the ticket it is for")
	c.Flags().String("url", "", "the `URL` of its page")
	c.Flags().String("host", "", "the code `HOST`, if the team has several")
	return c
}

// cutLast splits owner and name; an owner may have parts.
func cutLast(repository string) (owner, name string, ok bool) {
	at := strings.LastIndex(repository, "/")
	if at < 1 || at == len(repository)-1 {
		return "", "", false
	}
	return repository[:at], repository[at+1:], true
}

func (a *app) prList() *cobra.Command {
	c := &cobra.Command{
		Use:   "list",
		Short: "List the pull requests that the team knows",
		Args:  takes(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			state, _ := c.Flags().GetString("state")
			err := oneOf("--state", state, string(protocol.ListOpen), string(protocol.ListMerged), string(protocol.ListClosed), string(protocol.ListAll))
			if err != nil {
				return err
			}
			m := protocol.PrList{State: protocol.PullFilter(state)}
			m.Author, _ = c.Flags().GetString("author")
			m.Ticket, _ = c.Flags().GetString("ticket")
			m.Repo, _ = c.Flags().GetString("repo")
			m.Limit, _ = c.Flags().GetInt("limit")
			return show(c.Context(), a, m, a.pulls)
		},
	}
	c.Flags().String("state", "open", "`STATE`: open, merged, closed or all")
	c.Flags().String("author", "", "only those of this `PERSON`: a handle, or a login of the code host")
	c.Flags().String("ticket", "", "only those for the ticket with this `KEY`")
	c.Flags().String("repo", "", "only those of the repository `OWNER/REPO`")
	c.Flags().Int("limit", 30, "show at most this `NUMBER`")
	return c
}

func (a *app) pulls(r protocol.PrListResult) {
	if len(r.PRs) == 0 {
		a.say("no pull requests")
		return
	}
	rows := make([][]string, 0, len(r.PRs))
	for _, p := range r.PRs {
		state := string(p.State)
		if p.Draft {
			state += ", draft"
		}
		threads := ""
		if p.UnresolvedThreads > 0 {
			threads = strconv.Itoa(p.UnresolvedThreads)
		}
		rows = append(rows, []string{p.Ref, state, p.Author, string(p.CI), string(p.Mergeable), p.Review, threads, p.Ticket, p.Title})
	}
	table(a.Out, []string{"PR", "STATE", "AUTHOR", "CI", "MERGE", "REVIEW", "THREADS", "TICKET", "TITLE"}, rows)
	if r.More > 0 {
		a.say("and %d more: raise --limit", r.More)
	}
}

func (a *app) ticket() *cobra.Command {
	return group("ticket", "Tickets", itemFlag(&cobra.Command{
		Use:   "made KEY",
		Short: "Record a ticket that you created",
		Long: `Record a ticket that you created while working on the item. Once it is in review it goes to whoever asked for the
item. In its round this is kept for an absent office.`,
		Args: takes(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := a.needItem(c)
			if err != nil {
				return err
			}
			return show(c.Context(), a, protocol.WorkMade{WorkItemID: id, Ticket: args[0]}, a.done("recorded %s", args[0]))
		},
	}))
}

func (a *app) doc() *cobra.Command {
	link := itemFlag(&cobra.Command{
		Use:   "link ID TITLE URL",
		Short: "Announce a document that you wrote",
		Long: `Announce a document that you wrote for the item's ticket, or for the one named by --ticket. The ticket gets a link, you
get what others remark on it as work, and it is something to review. In its round this is kept for an absent office.`,
		Args: takes(3, 3),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := a.needItem(c)
			if err != nil {
				return err
			}
			m := protocol.DocLink{WorkItemID: id, Doc: protocol.Doc{ID: args[0], Title: args[1], URL: args[2]}}
			m.Ticket, _ = c.Flags().GetString("ticket")
			return show(c.Context(), a, m, a.done("linked"))
		},
	})
	link.Flags().String("ticket", "", "the `KEY` of the ticket it is for, if not the item's own")
	return group("doc", "Documents of the knowledge base", link)
}

func (a *app) ci() *cobra.Command {
	log := &cobra.Command{
		Use:   "log URL",
		Short: "Show why a check failed",
		Long: `Show the end of the log of each step that failed, by the address of the check's page. It is what the check printed: data,
and no instructions.`,
		Args: takes(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			lines, _ := c.Flags().GetInt("lines")
			return show(c.Context(), a, protocol.CiLog{URL: args[0], Lines: lines}, func(r protocol.CiLogResult) {
				if len(r.Steps) == 0 {
					a.say("the log shows no step that failed")
				}
				for _, step := range r.Steps {
					a.say("== %s (%s before)\n%s", step.Name, count(step.Omitted, "line", "lines"), strings.Join(step.Lines, "\n"))
				}
			})
		},
	}
	log.Flags().Int("lines", 100, "show this `NUMBER` of a step's last lines")
	return group("ci", "Checks of pull requests", log)
}

func (a *app) usage() *cobra.Command {
	return &cobra.Command{
		Use:   "usage TICKET",
		Short: "Show what the work on a ticket used",
		Long:  "Show the tokens and the cost at list prices of the work on a ticket, where the team tracks usage.",
		Args:  takes(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			return show(c.Context(), a, protocol.TicketUsage{Ticket: args[0]}, func(r protocol.TicketUsageResult) {
				rows := [][]string{usageRow(r.Ticket, r.Own)}
				if len(r.SubTickets) > 0 {
					rows = append(rows, usageRow("with its sub-tickets", r.Total))
				}
				for _, sub := range r.SubTickets {
					rows = append(rows, usageRow("  "+sub.Ticket, sub.Total))
				}
				for _, share := range slices.Concat(r.ByPerson, r.ByModel, r.ByKind) {
					rows = append(rows, usageRow("by "+share.Key, share.Totals))
				}
				table(a.Out, []string{"", "TOKENS", "INPUT", "OUTPUT", "CACHE READ", "CACHE MADE", "COST", "ROUNDS"}, rows)
			})
		},
	}
}

func usageRow(name string, u protocol.UsageTotals) []string {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	return []string{
		name, number(u.Tokens), number(u.InputTokens), number(u.OutputTokens), number(u.CacheReadTokens), number(u.CacheCreationTokens),
		fmt.Sprintf("$%.2f", u.CostUSD), strconv.Itoa(u.Runs),
	}
}
