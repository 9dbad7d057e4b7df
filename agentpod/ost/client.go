package ost

// This file speaks to the agent: HTTP over its unix socket. What may come back is an answer of the office, the word that the
// message is queued, or an error; each becomes a Go value that the exit code follows from.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// Exit codes. Those from 64 on are the usual ones of sysexits.h.
const (
	// ExitOK: done, or kept by the agent until the office can be reached.
	ExitOK = 0
	// ExitRefused: the office, the agent or git said no.
	ExitRefused = 1
	// ExitUsage: the command was not understood, or its message could not be.
	ExitUsage = 2
	// ExitNoAgent: there is no agent to speak to.
	ExitNoAgent = 69
	// ExitAway: there was no answer, and nothing was kept. Trying again may help.
	ExitAway = 75
)

// failure is why a command did not do what it was told.
type failure struct {
	exit    int
	code    protocol.Code
	message string
	// shown says that standard output has the answer already that this follows from.
	shown bool
}

func (f *failure) Error() string { return f.message }

func fail(exit int, code protocol.Code, format string, args ...any) error {
	return &failure{exit: exit, code: code, message: fmt.Sprintf(format, args...)}
}

func usage(format string, args ...any) error {
	return fail(ExitUsage, protocol.CodeInvalidMessage, format, args...)
}

// patience is how long the agent may take. It has limits of its own, which are shorter.
const patience = 2 * time.Minute

// client speaks to one agent.
type client struct {
	socket string
	http   *http.Client
}

func newClient(socket string) *client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	return &client{socket, &http.Client{Transport: &http.Transport{DialContext: dial}, Timeout: patience}}
}

// answer is what came back.
type answer struct {
	Type    protocol.Type  `json:"type"`
	Payload jsontext.Value `json:"payload"`
	Queued  bool           `json:"queued"`
}

// send sends a message of the protocol, and returns the office's answer to it, or that it is queued.
func (c *client) send(ctx context.Context, t protocol.Type, payload any) (answer, error) {
	return c.do(ctx, http.MethodPost, "/v1/messages/"+string(t), payload)
}

// do makes a request of the agent. A refusal is an error.
func (c *client) do(ctx context.Context, method, path string, body any) (answer, error) {
	if c.socket == "" {
		return answer{}, fail(ExitNoAgent, "", "%s is not set, so there is no agent to speak to; ost is for programs that an agent runs",
			contract.EnvSocket)
	}
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			return answer{}, usage("the message has no JSON form: %v", err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://agent"+path, bytes.NewReader(data))
	if err != nil {
		return answer{}, usage("%v", err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{}, c.unreachable(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	var a answer
	text, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	if err != nil {
		return answer{}, fail(ExitAway, protocol.CodeFailed, "the agent's answer cannot be read (%s): %v", resp.Status, err)
	}
	if a.Type == protocol.TypeError {
		return answer{}, refusal(resp.StatusCode, a.Payload)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return answer{}, fail(ExitAway, protocol.CodeFailed, "the agent answered %s", resp.Status)
	}
	return a, nil
}

// unreachable tells a missing agent from one that ended before it answered.
func (c *client) unreachable(err error) error {
	var dialed *net.OpError
	if errors.As(err, &dialed) && dialed.Op == "dial" {
		return fail(ExitNoAgent, "", "no agent answers at %s: %v", c.socket, dialed.Err)
	}
	return fail(ExitAway, protocol.CodeFailed, "the agent ended before it answered: %v", err)
}

// refusal makes an error of the protocol's error. The HTTP status says who it is from.
func refusal(status int, payload jsontext.Value) error {
	var e protocol.Error
	if err := json.Unmarshal(payload, &e); err != nil {
		return fail(ExitAway, protocol.CodeFailed, "an error came that cannot be read: %v", err)
	}
	exit := ExitAway
	switch status {
	case http.StatusOK, http.StatusUnprocessableEntity:
		exit = ExitRefused
	case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusRequestEntityTooLarge:
		exit = ExitUsage
	}
	return fail(exit, e.Code, "%s", e.Message)
}
