package office

// This file has what the session endpoints answer when they do not do what was asked: problem details, as RFC 9457 has them.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/bullpen-dev/bullpen/office/store"
)

// The types of problems that are more than their status.
const (
	problemBlank   = "about:blank"
	problemRefused = "https://bullpen.dev/problems/message-refused"
)

// httpProblem is an answer that says what is wrong, and what to do.
type httpProblem struct {
	Type     string `json:"type"`
	Title    string `json:"title"`
	Status   int    `json:"status"`
	Detail   string `json:"detail"`
	Instance string `json:"instance,omitempty"`
	// BlockedReason and SurfaceName are those of the session's prompting, for problemRefused.
	BlockedReason string `json:"blocked_reason,omitempty"`
	SurfaceName   string `json:"surface_name,omitempty"`

	// after is how many seconds to wait until a next try, 0 for no hint.
	after int
}

// Error is the detail.
func (p *httpProblem) Error() string { return p.Detail }

func wrong(status int, format string, args ...any) *httpProblem {
	return &httpProblem{Type: problemBlank, Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...)}
}

// later is a problem that goes away by itself.
func later(status, seconds int, format string, args ...any) *httpProblem {
	p := wrong(status, format, args...)
	p.after = seconds
	return p
}

// notFound is one answer for a session that is not there and for one that the user may not read, so that nobody learns what there is.
func notFound() *httpProblem {
	return wrong(http.StatusNotFound, "there is no such session, or you may not read it: that takes the right to get workitems/session of "+
		"bullpen.dev in its namespace")
}

// problemFor makes an answer of any error. What is nobody's fault is logged, and not told.
func (o *Office) problemFor(err error) *httpProblem {
	var p *httpProblem
	var refused *refusedError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &refused):
		p = wrong(http.StatusConflict, "%s", refused.detail)
		p.Type, p.Title, p.BlockedReason, p.SurfaceName = problemRefused, "The session takes no message", refused.reason, refused.surface
		return p
	case errors.Is(err, errNoSession), errors.Is(err, store.ErrNotFound):
		return notFound()
	case errors.Is(err, context.DeadlineExceeded):
		return later(http.StatusServiceUnavailable, 5, "the office is too busy to answer in time: try again later")
	}
	o.log.Error("A request about sessions failed", "error", err)
	return later(http.StatusServiceUnavailable, 5, "the office cannot read or write its store now: try again later")
}

// tell answers with a problem.
func (o *Office) tell(w http.ResponseWriter, r *http.Request, err error) {
	answer := *o.problemFor(err)
	answer.Instance = r.URL.Path
	if answer.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="bullpen"`)
	}
	if answer.after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(answer.after))
	}
	body, _ := json.Marshal(answer) // strings and numbers
	writeBody(w, answer.Status, "application/problem+json", body)
}

// writeBody writes an answer that nobody else than who asked may keep.
func writeBody(w http.ResponseWriter, status int, contentType string, body []byte) {
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body) // who is gone asks again
}

// query reads the parameters of a request, of which each comes at most once, and only those that are known.
func query(r *http.Request, known ...string) (map[string]string, error) {
	values := map[string]string{}
	for name, list := range r.URL.Query() {
		if !slices.Contains(known, name) {
			return nil, wrong(http.StatusBadRequest, "the query parameter %q is not known here; known are: %s",
				shorten(name), strings.Join(known, ", "))
		}
		if len(list) > 1 {
			return nil, wrong(http.StatusBadRequest, "the query parameter %s comes %d times, it can come once", name, len(list))
		}
		values[name] = list[0]
	}
	return values, nil
}

// whole reads a parameter that is a whole number within bounds, or gives the usual one.
func whole(values map[string]string, name string, usual, least, most int64) (int64, error) {
	value, given := values[name]
	if !given {
		return usual, nil
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < least || n > most {
		return 0, wrong(http.StatusBadRequest, "%s must be a whole number from %d to %d, not %q", name, least, most, shorten(value))
	}
	return n, nil
}

// shorten keeps what somebody sent from filling an answer or a log.
func shorten(s string) string { return cut(s, 100) }
