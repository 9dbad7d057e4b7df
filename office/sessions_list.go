package office

// This file lists sessions over HTTP.

import (
	"context"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

// listSessions gives a page of sessions.
func (o *Office) listSessions(w http.ResponseWriter, r *http.Request, user User) error {
	filter, limit, err := listing(r)
	if err != nil {
		return err
	}
	ok, why, err := o.allowed(r.Context(), user, Deed{Verb: "list", Subresource: deedSession, Namespace: filter.Namespace})
	if err != nil {
		return err
	}
	if !ok {
		return forbidden("list", deedSession, filter.Namespace, why)
	}
	free, err := o.live.reader(r.Context())
	if err != nil {
		return err
	}
	defer free()
	body, err := o.page(r.Context(), user, filter, limit)
	if err != nil {
		return err
	}
	writeBody(w, http.StatusOK, "application/json", body)
	return nil
}

// listing reads what a list is to have.
func listing(r *http.Request) (f model.SessionFilter, limit int, err error) {
	values, err := query(r, "namespace", "team", "person", "item", "state", "open", "since", "until", "limit", "cursor")
	if err != nil {
		return f, 0, err
	}
	f = model.SessionFilter{
		Namespace: values["namespace"], Team: values["team"], Person: values["person"], Item: values["item"], State: values["state"],
	}
	switch state := protocol.WorkItemState(f.State); state {
	case "", protocol.StateQueued, protocol.StateActive, protocol.StateWaiting:
	case protocol.StateBlocked, protocol.StateDone, protocol.StateCanceled:
	default:
		return f, 0, wrong(http.StatusBadRequest, "state is that of a work item: queued, active, waiting, blocked, done or canceled, not %q",
			shorten(f.State))
	}
	switch values["open"] {
	case "":
	case "true":
		f.Open = true
	case "false":
		f.Closed = true
	default:
		return f, 0, wrong(http.StatusBadRequest, "open is true or false, not %q", shorten(values["open"]))
	}
	for name, at := range map[string]*time.Time{"since": &f.Since, "until": &f.Until} {
		if values[name] == "" {
			continue
		}
		if *at, err = protocol.ParseTime(values[name]); err != nil {
			return f, 0, wrong(http.StatusBadRequest, "%s is a date such as 2026-01-31, or a time such as 2026-01-31T09:30:00Z, not %q",
				name, shorten(values[name]))
		}
	}
	if f.BeforeAt, f.BeforeID, err = readCursor(values["cursor"]); err != nil {
		return f, 0, err
	}
	n, err := whole(values, "limit", usualSessions, 1, mostSessions)
	return f, int(n), err
}

// cursorOf is where a list goes on after a session.
func cursorOf(s model.Session) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(s.CreatedAt.UnixNano(), 10) + " " + s.ID))
}

func readCursor(cursor string) (at time.Time, id string, err error) {
	if cursor == "" {
		return at, "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	when, id, found := strings.Cut(string(raw), " ")
	nanos, numberErr := strconv.ParseInt(when, 10, 64)
	if err != nil || numberErr != nil || !found || id == "" {
		return at, "", wrong(http.StatusBadRequest, "the cursor is none that this office gave: take next_cursor as it is, or leave it out")
	}
	return time.Unix(0, nanos).UTC(), id, nil
}

// scans is how many pages of the store a page of a list looks at, where it has to leave sessions out.
const scans = 20

// page encodes a page of sessions. Those of a namespace that was deleted and made again are another one's: they are left out unless the
// user may list them.
func (o *Office) page(ctx context.Context, user User, filter model.SessionFilter, limit int) ([]byte, error) {
	body, n := []byte(`{"sessions":[`), 0
	readable := map[Deed]bool{}
	for range scans {
		var objects []listed
		err := o.store.View(ctx, func(r store.Reader) (err error) {
			objects, err = o.listed(r, filter, limit-n+1)
			return err
		})
		if err != nil {
			return nil, err
		}
		more := len(objects) == limit-n+1
		for _, v := range objects {
			if n == limit || n > 0 && len(body)+len(v.object) > mostPage {
				return endPage(body, filter), nil
			}
			filter.BeforeAt, filter.BeforeID = v.session.CreatedAt, v.session.ID
			ok, err := o.mayList(ctx, user, v.session, readable)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			if n > 0 {
				body = append(body, ',')
			}
			body = append(body, v.object...)
			n++
		}
		if !more {
			return append(body, `],"next_cursor":null}`...), nil
		}
	}
	return endPage(body, filter), nil
}

// endPage ends a page after which the list goes on.
func endPage(body []byte, filter model.SessionFilter) []byte {
	next := cursorOf(model.Session{ID: filter.BeforeID, CreatedAt: filter.BeforeAt})
	return append(body, `],"next_cursor":"`+next+`"}`...)
}

// listed is a session with its object.
type listed struct {
	session model.Session
	object  []byte
}

// listed reads sessions of the store, at most limit, or as many as fit into a page.
func (o *Office) listed(r store.Reader, filter model.SessionFilter, limit int) ([]listed, error) {
	sessions, err := r.Sessions(filter, limit)
	if err != nil {
		return nil, err
	}
	list := make([]listed, 0, len(sessions))
	for _, s := range sessions {
		v, err := o.gather(r, s)
		if err != nil {
			return nil, err
		}
		object, err := v.encode(current(s))
		if err != nil {
			return nil, err
		}
		list = append(list, listed{s, object})
	}
	return list, nil
}

// mayList says whether the user may list the sessions of a session's very namespace.
func (o *Office) mayList(ctx context.Context, user User, s model.Session, known map[Deed]bool) (bool, error) {
	deed := Deed{Verb: "list", Subresource: deedSession, Namespace: s.Namespace, NamespaceUID: s.NamespaceUID}
	if ok, asked := known[deed]; asked || s.NamespaceUID == "" {
		return ok || s.NamespaceUID == "", nil
	}
	ok, _, err := o.allowed(ctx, user, deed)
	known[deed] = ok
	return ok, err
}
