package prompt

// This file writes the messages of a round: what the item asks, what was said about it, and how the round begins.

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// Bounds of the parts of a message, in bytes. A frame of the office has at most 1 MiB, and a model reads less than that.
const (
	maxAsked    = 200_000
	maxFeedback = 100_000
	maxSection  = 40_000
	// maxJournal is how many of the latest entries of the journal are told.
	maxJournal = 50
)

// beginning is what the round's first message begins with, where there is something to say.
func beginning(round runtime.Round, o Options) string {
	switch {
	case cutShort(round) && o.Resumes:
		return "Your last round was cut short before it ended. Go on where you stopped; look first at what is already done. " +
			"You may have read the following already."
	case cutShort(round):
		return "An earlier round of this work was cut short, and its conversation is lost. Look first at what is already done."
	case !o.Resumes && len(round.Offer.Context.Journal) > 1:
		return "You worked on this before, but that conversation is lost. What was written down about it is below; look first at what is " +
			"already done."
	}
	return ""
}

// goOn is the message of a round that has nothing new to answer.
func goOn(round runtime.Round) string {
	title := oneLine(round.Offer.WorkItem.Title)
	if cutShort(round) {
		return fmt.Sprintf("Your last round was cut short before it ended. Go on with the work item %q where you stopped; look first at what "+
			"is already done.", title)
	}
	return fmt.Sprintf("A new round of the work item %q begins. Go on with it: do what is open, or what has become possible.", title)
}

// cutShort says whether an earlier run of the round did not come to its end.
func cutShort(round runtime.Round) bool {
	return round.Resumed || round.Offer.Interrupted != nil && *round.Offer.Interrupted
}

// asked is what the item asks.
func asked(round runtime.Round, o Options) string {
	item, journal := round.Offer.WorkItem, round.Offer.Context.Journal
	var p page
	p.line("# %s\n", oneLine(item.Title))
	by := ""
	if len(journal) > 0 {
		by = "asked by " + oneLine(journal[0].Author) + ", " + oneLine(journal[0].At)
	}
	about := ""
	if item.Subject != nil {
		about = "about " + oneLine(item.Subject.Type+" "+item.Subject.Ref)
	}
	p.line("A work item of the kind %s%s.", oneLine(item.Kind), when(by+about != "", ", "+join(", ", by, about)))
	if len(journal) > 0 && strings.TrimSpace(journal[0].Text) != "" {
		p.line("\n%s", cut(strings.TrimSpace(journal[0].Text), maxAsked, o.OfferFile))
	}
	return p.String()
}

// feedbackWords are what people call the kinds of feedback.
var feedbackWords = map[protocol.FeedbackKind]string{
	protocol.FeedbackReview: "A review", protocol.FeedbackComment: "A comment on the pull request",
	protocol.FeedbackInlineComment: "A comment on a line of the pull request", protocol.FeedbackChat: "A message in chat",
	protocol.FeedbackTicketComment: "A comment on the ticket", protocol.FeedbackDocComment: "A comment on the document",
	protocol.FeedbackBlocked: "Work that is blocked", protocol.FeedbackCIFailure: "Checks that fail",
}

// feedback is one thing that was said about the work.
func feedback(f protocol.Feedback) string {
	var p page
	p.line("%s by %s%s%s%s", cmp.Or(feedbackWords[f.Kind], "Feedback ("+oneLine(string(f.Kind))+")"), oneLine(f.Actor),
		when(f.State != "", ", "+strings.ReplaceAll(oneLine(f.State), "_", " ")), when(f.At != "", ", "+oneLine(f.At)),
		when(f.URL != "", ", "+oneLine(f.URL)))
	if f.DocID != "" || f.AnchorText != "" {
		p.line("%s", join(", ", when(f.DocID != "", "document "+oneLine(f.DocID)),
			when(f.AnchorText != "", "about the words: "+oneLine(f.AnchorText))))
	}
	if f.CommentID != "" {
		p.line("comment id: %s", oneLine(f.CommentID))
	}
	if body := strings.TrimSpace(f.Body); body != "" {
		if f.Kind == protocol.FeedbackCIFailure {
			body = quote(body) // what programs printed
		}
		p.line("\n%s", cut(body, maxFeedback, f.URL))
	}
	for _, c := range f.Comments {
		p.line("\n%s%s%s:\n\n%s", oneLine(c.Path), lineOf(c.Line), when(c.ThreadID != "", " (thread "+oneLine(c.ThreadID)+")"),
			cut(strings.TrimSpace(c.Body), maxFeedback, c.URL))
	}
	return p.String()
}

// lineOf is the number of a line behind a path.
func lineOf(n *int) string {
	if n == nil {
		return ""
	}
	return fmt.Sprintf(":%d", *n)
}
