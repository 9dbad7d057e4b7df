package office

// This file takes events in from outside, over HTTP as CloudEvents, and answers for them. What they mean is in events.go.

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/bullpen-dev/bullpen/office/cloudevents"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/store"
	"github.com/bullpen-dev/bullpen/office/workstate"
)

// intakeTimeout is how long a request may take to arrive.
const intakeTimeout = 30 * time.Second

// problem is an answer that says what is wrong, as RFC 9457 has it.
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

// Error is the detail.
func (p *problem) Error() string { return p.Detail }

func problemOf(status int, detail string) *problem {
	return &problem{Title: http.StatusText(status), Status: status, Detail: detail}
}

// taken is the answer to events that are stored.
type taken struct {
	Events []takenEvent `json:"events"`
}

// takenEvent tells what the office made of one event.
type takenEvent struct {
	ID     string `json:"id"`
	Source string `json:"source"`
	// Repeated says that the event was taken in before, and that nothing was done now.
	Repeated bool     `json:"repeated"`
	Trace    []string `json:"trace"`
}

// serveEvents takes the events of one request in, all of them or none: a sender whose request failed sends all of it again.
func (o *Office) serveEvents(w http.ResponseWriter, r *http.Request) {
	team := model.TeamKey{Namespace: r.PathValue("namespace"), Name: r.PathValue("team")}
	events, err := o.readEvents(w, r, team)
	var answer taken
	if err == nil {
		answer, err = o.takeEvents(r.Context(), team, events)
	}
	if err == nil {
		o.reply(w, http.StatusAccepted, "application/json", answer)
		return
	}
	var p *problem
	if !errors.As(err, &p) {
		o.log.Error("Events could not be stored", "team", team.String(), "error", err)
		p = problemOf(http.StatusServiceUnavailable, "the office cannot store this now, nothing of it was kept: send it again later")
		w.Header().Set("Retry-After", "5")
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	o.log.Info("Events were refused", "team", team.String(), "status", p.Status)
	o.reply(w, p.Status, "application/problem+json", p)
}

func (o *Office) reply(w http.ResponseWriter, status int, contentType string, body any) {
	data, err := json.Marshal(body, json.Deterministic(true))
	if err != nil {
		o.log.Error("An answer could not be encoded", "error", err)
		status, data = http.StatusInternalServerError, nil
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(data) // the sender is gone, and asks again
}

// readEvents lets in who has the team's token, and reads what they sent.
func (o *Office) readEvents(w http.ResponseWriter, r *http.Request, key model.TeamKey) ([]incoming, error) {
	team, err := view(r.Context(), o.store, func(tx store.Reader) (model.Team, error) { return tx.Team(key) })
	switch {
	case err != nil:
		return nil, err
	case team == nil:
		return nil, problemOf(http.StatusNotFound, "there is no team "+key.String())
	case team.EventsTokenHash == [32]byte{}:
		return nil, problemOf(http.StatusForbidden, "team "+key.String()+" takes no events: name a Secret with a token in "+
			"spec.events.tokenSecret of the Team")
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sum := sha256.Sum256([]byte(strings.TrimSpace(token)))
	if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(sum[:], team.EventsTokenHash[:]) != 1 {
		return nil, problemOf(http.StatusUnauthorized, "send the token of the Secret that spec.events.tokenSecret names, as Authorization: Bearer")
	}
	if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(intakeTimeout)); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, cloudevents.MaxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, problemOf(http.StatusRequestEntityTooLarge, "a request has at most 4 MiB")
	case err != nil:
		return nil, problemOf(http.StatusBadRequest, "the request could not be read to its end")
	}
	return parseEvents(r.Header, body)
}

// incoming is an event with its data read; Data is nil where the office does not know the type.
type incoming struct {
	cloudevents.Event
	data workstate.Data
}

func parseEvents(header http.Header, body []byte) ([]incoming, error) {
	events, err := cloudevents.Parse(header, body)
	switch {
	case errors.Is(err, cloudevents.ErrMediaType):
		return nil, problemOf(http.StatusUnsupportedMediaType, err.Error())
	case errors.Is(err, cloudevents.ErrTooLarge):
		return nil, problemOf(http.StatusRequestEntityTooLarge, err.Error())
	case err != nil:
		return nil, problemOf(http.StatusBadRequest, err.Error())
	}
	list := make([]incoming, 0, len(events))
	for _, e := range events {
		data, err := workstate.ParseData(e.Type, e.Data, e.At)
		if err != nil {
			return nil, problemOf(http.StatusBadRequest, err.Error())
		}
		list = append(list, incoming{e, data})
	}
	return list, nil
}

// takeEvents stores events and does what they mean, as one transaction.
func (o *Office) takeEvents(ctx context.Context, team model.TeamKey, events []incoming) (taken, error) {
	answer := taken{Events: []takenEvent{}}
	if len(events) == 0 {
		return answer, nil
	}
	err := o.change(ctx, func(w *work) error {
		answer.Events = answer.Events[:0]
		directory, err := directoryOf(w.tx, team)
		if err != nil {
			return err
		}
		for _, e := range events {
			one, err := w.takeEvent(team, directory, e)
			if err != nil {
				return err
			}
			answer.Events = append(answer.Events, one)
		}
		return nil
	})
	return answer, err
}

// takeEvent does what an event means, once.
func (w *work) takeEvent(team model.TeamKey, directory workstate.Directory, e incoming) (takenEvent, error) {
	one := takenEvent{ID: e.ID, Source: e.Source, Trace: []string{}}
	event := model.Event{Team: team, Source: e.Source, ID: e.ID, Type: e.Type, At: w.now, Data: e.Data}
	first, err := w.tx.FirstEvent(event)
	if err != nil || !first {
		one.Repeated = true
		return one, err
	}
	at := e.Time
	if at.IsZero() || at.After(w.now) {
		at = w.now // what is yet to come would shut out all that comes before
	}
	t := telling{work: w, team: team, directory: directory, event: &event, at: at}
	if err := t.happened(e.data); err != nil {
		return one, err
	}
	one.Trace = append(one.Trace, event.Trace...)
	return one, w.tx.PutEvent(event)
}
