package office

// This file takes what people do to a session over HTTP: they say something, or stop its turn. What that means is in say.go.

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/model"
)

// spoken is a message as a user sends it.
type spoken struct {
	Body          string `json:"body"`
	ClosesSession bool   `json:"closes_session"`
}

// postMessage lets a human speak into a session.
func (o *Office) postMessage(w http.ResponseWriter, r *http.Request, user User) error {
	if _, err := query(r); err != nil {
		return err
	}
	s, err := o.sessionOf(r)
	if err != nil {
		return err
	}
	if err := o.may(r.Context(), user, s, deedMessage); err != nil {
		return err
	}
	message, err := readMessage(w, r)
	if err != nil {
		return err
	}
	m, err := o.say(r.Context(), s.ID, user, message.Body, message.ClosesSession)
	if err != nil {
		return err
	}
	body, err := feed.MarshalPayload(inbox(m, nil))
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/v1/sessions/"+url.PathEscape(m.SessionID))
	writeBody(w, http.StatusCreated, "application/json", body)
	return nil
}

// readMessage reads the body of a request that brings a message.
func readMessage(w http.ResponseWriter, r *http.Request) (m spoken, err error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return m, wrong(http.StatusUnsupportedMediaType, `send Content-Type: application/json and a body such as {"body": "Please add a test."}`)
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostMessage))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return m, wrong(http.StatusRequestEntityTooLarge, "a message has at most %d bytes", mostMessage)
	case err != nil:
		return m, wrong(http.StatusBadRequest, "the request could not be read to its end")
	}
	var syntax *jsontext.SyntacticError
	err = json.Unmarshal(raw, &m, json.RejectUnknownMembers(true))
	switch n := utf8.RuneCountInString(m.Body); {
	case errors.As(err, &syntax):
		return m, wrong(http.StatusBadRequest, "the body is no JSON that can be read: %v", err)
	case err != nil:
		return m, wrong(http.StatusUnprocessableEntity, "the body is an object with body, a text, and if you like closes_session, true or "+
			"false: %v", err)
	case strings.TrimSpace(m.Body) == "" || n > maxSaid:
		return m, wrong(http.StatusUnprocessableEntity, "body has 1 to %d characters, not only space", maxSaid)
	}
	return m, nil
}

// postStop lets a human stop what a session runs.
func (o *Office) postStop(w http.ResponseWriter, r *http.Request, user User) error {
	if _, err := query(r); err != nil {
		return err
	}
	s, err := o.sessionOf(r)
	if err != nil {
		return err
	}
	if err := o.may(r.Context(), user, s, deedStop); err != nil {
		return err
	}
	n, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, mostMessage))
	if err != nil || n > 0 {
		return wrong(http.StatusUnprocessableEntity, "a stop has no body")
	}
	if err := o.stopSession(r.Context(), s.ID, user); err != nil {
		return err
	}
	v, err := o.viewSession(r.Context(), s.ID)
	if err != nil {
		return err
	}
	body, err := v.encode(current(v.session))
	if err != nil {
		return err
	}
	writeBody(w, http.StatusAccepted, "application/json", body)
	return nil
}

// inbox shows a message that waits for its turn, with its place in the feed where it has one. Once it is delivered, no inbox has it.
func inbox(m model.Message, place *int64) feed.InboxMessage {
	return feed.InboxMessage{
		ID: m.ID, SessionID: m.SessionID, TurnID: orNil(m.TurnID), Body: m.Body, Author: orNil(m.Author),
		SenderAttributionType: orNil(m.AttributionType), SenderAttributionID: orNil(m.AttributionID), Status: feed.InboxPending,
		CreatedAt: m.CreatedAt.UTC(), FeedSeq: place,
	}
}
