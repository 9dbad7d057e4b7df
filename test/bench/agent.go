package main

// This file is the agent's side of connections: plain WebSocket clients that speak the agent protocol.

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

// agent is one connection that was welcomed.
type agent struct {
	ws   *websocket.Conn
	sent int
}

// connect dials, says hello and waits for the welcome.
func connect(ctx context.Context, url string, config *tls.Config, handle, token string) (*agent, error) {
	dialer := websocket.Dialer{TLSClientConfig: config, HandshakeTimeout: 10 * time.Second, ReadBufferSize: 1024, WriteBufferSize: 1024}
	ws, response, err := dialer.DialContext(ctx, url, nil)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", url, err)
	}
	_ = response.Body.Close() // it has none
	a := &agent{ws: ws}
	_, err = a.send(protocol.Hello{Person: handle, Token: token, ProtocolVersion: protocol.Version, AgentVersion: "bench"})
	if err != nil {
		return nil, a.failed(err)
	}
	frame, err := a.read()
	if err != nil {
		return nil, a.failed(err)
	}
	if _, ok := frame.Message.(protocol.Welcome); !ok {
		return nil, a.failed(fmt.Errorf("%s was answered with %+v instead of a welcome", handle, frame.Message))
	}
	return a, nil
}

func (a *agent) failed(err error) error {
	_ = a.ws.Close()
	return err
}

// send sends a message and gives its id.
func (a *agent) send(m protocol.Message) (string, error) {
	a.sent++
	id := fmt.Sprintf("m%d", a.sent)
	data, err := protocol.Encode(protocol.Frame{ID: id, Message: m})
	if err != nil {
		return "", err
	}
	return id, a.ws.WriteMessage(websocket.TextMessage, data)
}

func (a *agent) read() (protocol.Frame, error) {
	_, data, err := a.ws.ReadMessage()
	if err != nil {
		return protocol.Frame{}, err
	}
	frame, werr := protocol.Decode(data)
	if werr != nil {
		return frame, fmt.Errorf("the office sent what it must not: %w", werr)
	}
	return frame, nil
}

// work takes every offer and hands it back at once as done, each step after the ack of the one before, until the connection ends,
// and says how it did. offered hears of each offer's arrival.
func (a *agent) work(offered func(item string, at time.Time)) error {
	item, accept := "", ""
	for {
		frame, err := a.read()
		if err != nil {
			return err
		}
		switch m := frame.Message.(type) {
		case protocol.Offer:
			offered(m.WorkItem.ID, time.Now())
			item = m.WorkItem.ID
			accept, err = a.send(protocol.Accept{WorkItemID: item, Runtime: "command"})
		case protocol.Ack:
			if frame.ReplyTo == accept {
				_, err = a.send(protocol.Handback{
					WorkItemID: item, Status: protocol.HandbackDone, Summary: "done", Links: []protocol.Link{}, ToReview: []string{"nothing to look at"},
				})
			}
		case protocol.Error:
			err = fmt.Errorf("the office answered with an error: %s", m.Message)
		}
		if err != nil {
			return err
		}
	}
}

// agentURL is the office's endpoint for agents of a team.
func agentURL(office, namespace, team string) string {
	return "ws" + strings.TrimPrefix(office, "http") + "/v1/teams/" + namespace + "/" + team + "/agent"
}
