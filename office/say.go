package office

// This file has what people do to a session: they say something, which becomes feedback and the next turn, or they stop its turn.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/bullpen-dev/bullpen/office/dispatch"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// maxSaid is the most characters of one message to a session.
const maxSaid = 100_000

// say puts a message into a session, for its agent to answer in its next turn. It gives *refusedError where the session takes none.
func (o *Office) say(ctx context.Context, sessionID string, user User, body string, closes bool) (model.Message, error) {
	if strings.TrimSpace(body) == "" || utf8.RuneCountInString(body) > maxSaid {
		return model.Message{}, &refusedError{reason: "invalid", detail: "a message has 1 to 100000 characters"}
	}
	var said model.Message
	err := o.change(ctx, func(w *work) error {
		s, err := w.tx.Session(sessionID)
		if err != nil {
			return err
		}
		it, err := w.tx.Item(s.ItemID)
		if err != nil {
			return err
		}
		team, err := found(w.tx.Team(it.TeamKey()))
		if err != nil {
			return err
		}
		if team == nil {
			team = &model.Team{}
		}
		if no := refusal(s, it, team.Usage.Budgets); no != nil {
			return no
		}
		taken, err := w.hear(it.ID, model.Feedback{Key: "said/" + uuid.NewString(), ClosesSession: closes, Feedback: protocol.Feedback{
			Actor: user.Name, Kind: protocol.FeedbackChat, At: protocol.FormatTime(w.now), Body: body,
		}}, true)
		if err != nil || !taken {
			return errors.Join(err, fmt.Errorf("the work item is %s and took no message", it.State))
		}
		heard := w.tx.happened[it.ID].heard
		id := model.FeedbackMessageID(sessionID, heard[len(heard)-1].N)
		if err := w.converse(); err != nil {
			return err
		}
		list, err := w.tx.Messages(sessionID, []string{id})
		if err == nil && len(list) == 1 {
			said = list[0]
		}
		return err
	})
	return said, err
}

// stopSession ends the turn that a session runs; its item waits for what is said next.
func (o *Office) stopSession(ctx context.Context, sessionID string, user User) error {
	return o.change(ctx, func(w *work) error {
		s, err := w.tx.Session(sessionID)
		if err != nil {
			return err
		}
		it, err := w.tx.Item(s.ItemID)
		if err != nil {
			return err
		}
		out := dispatch.Stop(it, user.Name, w.now)
		if !out.Changed || !s.ClosedAt.IsZero() { // what runs then is a later session's
			return nil
		}
		w.endRun(it, "its session was stopped")
		return w.apply(it.State, out)
	})
}
