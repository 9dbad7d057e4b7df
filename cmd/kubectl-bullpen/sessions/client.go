// Package sessions is a client of the office's session endpoints: it reads sessions and their records, follows a session's stream across
// lost connections, speaks to a session and stops it. It shows who it is as the user's kubeconfig says, as kubectl does to the API server.
package sessions

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/bullpen-dev/bullpen/office/feed"
)

const (
	// answerTime bounds a request, and the handshake of a stream.
	answerTime = time.Minute
	// mostAnswer bounds an answer. A page of records is at most one record, or a few megabytes.
	mostAnswer = 32 << 20
	// pageSize is how many records are asked for at a time.
	pageSize = 1000
)

// Options say how the office is reached.
type Options struct {
	// URL is the office's, such as https://bullpen-office.bullpen.svc:8443.
	URL *url.URL
	// CA is the bundle by which its certificate is known, PEM; without it, the system's CAs count.
	CA []byte
	// ServerName is what the certificate is for, where that is not the host of the URL.
	ServerName string
	// Dial opens connections; nil dials the host of the URL, through the proxy of the environment if there is one.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Wait is the first pause before a lost stream is dialed again; 0 is half a second. Later ones are longer.
	Wait time.Duration
	// Quiet is how long a stream may send nothing before it counts as lost; 0 is three times the time between heartbeats.
	Quiet time.Duration
}

// Client speaks to one office.
type Client struct {
	base   *url.URL
	http   *http.Client
	dialer *websocket.Dialer
	// signs has what shows who the user is.
	signs *transport.Config
	wait  time.Duration
	quiet time.Duration
}

// New makes a client that shows the same credentials that the config shows to the API server: a token, a client certificate, or what a
// program gives. They go nowhere but to a server whose certificate is right.
func New(config *rest.Config, o Options) (*Client, error) {
	if o.URL.Scheme != "https" || o.URL.Host == "" {
		return nil, fmt.Errorf("the office is reached by https, not by %q", o.URL)
	}
	t, err := config.TransportConfig()
	if err != nil {
		return nil, fmt.Errorf("read the credentials: %w", err)
	}
	if t.Impersonate.UserName != "" || t.Impersonate.UID != "" || len(t.Impersonate.Groups) > 0 || len(t.Impersonate.Extra) > 0 {
		return nil, errors.New("sessions cannot be used as somebody else: leave out --as, --as-group and --as-uid")
	}
	t.TLS.CAData, t.TLS.CAFile, t.TLS.ReloadCAFiles = o.CA, "", false
	t.TLS.Insecure, t.TLS.ServerName, t.TLS.NextProtos = false, o.ServerName, nil
	t.DisableCompression = true
	t.DialHolder, t.Proxy = nil, http.ProxyFromEnvironment
	if o.Dial != nil {
		t.DialHolder = &transport.DialHolder{Dial: o.Dial}
		t.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	}
	rt, err := transport.New(t)
	if err != nil {
		return nil, fmt.Errorf("make a connection from the credentials: %w", err)
	}
	tlsConfig, err := transport.TLSConfigFor(t)
	if err != nil {
		return nil, fmt.Errorf("make a connection from the credentials: %w", err)
	}
	c := &Client{
		base: o.URL,
		http: &http.Client{Transport: rt, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		dialer: &websocket.Dialer{
			NetDialContext: o.Dial, TLSClientConfig: tlsConfig, Proxy: t.Proxy, HandshakeTimeout: answerTime, ReadBufferSize: 64 << 10,
		},
		signs: t,
		wait:  cmp.Or(o.Wait, 500*time.Millisecond),
		quiet: cmp.Or(o.Quiet, 3*feed.HeartbeatAfter),
	}
	return c, nil
}

// sign gives the headers with which a transport made from the config sends a request.
func sign(t *transport.Config, r *http.Request) (headers http.Header, err error) {
	rt, err := transport.HTTPWrappersForConfig(t, roundTrip(func(r *http.Request) (*http.Response, error) {
		headers = r.Header
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}))
	if err != nil {
		return nil, err
	}
	response, err := rt.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	return headers, response.Body.Close()
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Problem is an answer of the office that it does not do what it was asked for.
type Problem struct {
	// Type is what kind of problem it is; empty where the answer is not the office's own.
	Type   string `json:"type"`
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	// BlockedReason is why a session takes no message.
	BlockedReason string `json:"blocked_reason"`
}

// Error is what the office says.
func (p *Problem) Error() string {
	switch {
	case p.Detail != "":
		return p.Detail
	case p.Title != "":
		return "the office answers: " + p.Title
	}
	return "the office answers with status " + strconv.Itoa(p.Status)
}

// IsStatus says whether an error is a problem of that status.
func IsStatus(err error, status int) bool {
	var p *Problem
	return errors.As(err, &p) && p.Status == status
}

// Session gives the session of that id, or the latest one of the work item of that id.
func (c *Client) Session(ctx context.Context, id string) (*feed.Session, error) {
	var s feed.Session
	return &s, c.get(ctx, "/v1/sessions/"+url.PathEscape(id), nil, &s)
}

// OfItem gives the latest sessions of the items of that name in a namespace, which may be gone since. The latest made comes first.
func (c *Client) OfItem(ctx context.Context, namespace, item string) ([]feed.Session, error) {
	var page struct {
		Sessions []feed.Session `json:"sessions"`
	}
	err := c.get(ctx, "/v1/sessions", url.Values{"namespace": {namespace}, "item": {item}, "limit": {"10"}}, &page)
	return page.Sessions, err
}

// Page is some records of a session.
type Page struct {
	Records []feed.Record
	// Raw has each record as it came.
	Raw []json.RawMessage
	// Earliest is the first place that is kept, 0 where there is no record.
	Earliest int64
	// More says that there were more records when the page was made.
	More bool
}

// Records gives the records after a place.
func (c *Client) Records(ctx context.Context, id string, after int64) (Page, error) {
	var answer struct {
		Records  []json.RawMessage `json:"records"`
		Next     *int64            `json:"next_cursor"`
		Earliest *int64            `json:"earliest_feed_seq"`
	}
	q := url.Values{"cursor": {strconv.FormatInt(after, 10)}, "limit": {strconv.Itoa(pageSize)}}
	if err := c.get(ctx, "/v1/sessions/"+url.PathEscape(id)+"/records", q, &answer); err != nil {
		return Page{}, err
	}
	p := Page{Raw: answer.Records, More: answer.Next != nil}
	if answer.Earliest != nil {
		p.Earliest = *answer.Earliest
	}
	for _, raw := range answer.Records {
		r, err := feed.DecodeRecord(raw)
		if err != nil {
			return Page{}, fmt.Errorf("the office sent something that is no record: %w", err)
		}
		p.Records = append(p.Records, r)
	}
	return p, nil
}

// Say sends a message to a session. With closes, it is the last one.
func (c *Client) Say(ctx context.Context, id, body string, closes bool) (*feed.InboxMessage, error) {
	request := struct {
		Body   string `json:"body"`
		Closes bool   `json:"closes_session"`
	}{body, closes}
	var m feed.InboxMessage
	return &m, c.do(ctx, http.MethodPost, "/v1/sessions/"+url.PathEscape(id)+"/messages", nil, request, &m)
}

// Stop stops what runs of a session.
func (c *Client) Stop(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodPost, "/v1/sessions/"+url.PathEscape(id)+"/stop", nil, nil, nil)
}

func (c *Client) get(ctx context.Context, path string, query url.Values, answer any) error {
	return c.do(ctx, http.MethodGet, path, query, nil, answer)
}

// do sends a request and reads its answer, which is a *Problem where it is none.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, body, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	request, err := c.request(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("reach the office: %w", unwrapURL(err))
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer))
	if err != nil {
		return fmt.Errorf("read the office's answer: %w", err)
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return problemOf(response.StatusCode, text)
	}
	if answer == nil || len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("the office's answer cannot be read (is this plugin of the manager's release?): %w", err)
	}
	return nil
}

func (c *Client) request(ctx context.Context, method, path string, query url.Values, body any) (*http.Request, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.at(path, query), content)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return request, nil
}

// at is the address of an endpoint, whose path is escaped.
func (c *Client) at(path string, query url.Values) string {
	where := *c.base
	where.Path, where.RawPath, where.RawQuery = "", "", ""
	address := strings.TrimSuffix(where.String(), "/") + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	return address
}

// problemOf reads an answer that is a problem.
func problemOf(status int, text []byte) *Problem {
	var p Problem
	if json.Unmarshal(text, &p) != nil {
		p = Problem{}
	}
	p.Status = status
	if p.Title == "" {
		p.Title = http.StatusText(status)
		if status == http.StatusNotFound {
			p.Detail = "the office has no such endpoint: is the manager of an older release than this plugin?"
		}
	}
	return &p
}

// unwrapURL takes the address out of an error: a tunnel's is nobody's.
func unwrapURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}
