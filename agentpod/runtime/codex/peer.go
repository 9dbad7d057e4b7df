package codex

// This file speaks JSON-RPC, one message a line, as the app-server does: without the member "jsonrpc".

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

const (
	// maxLine is the most bytes of a message that are read. It is well above what a record may have, so that what is cut there is told
	// with its method.
	maxLine = 32 << 20
	// writeWait is how long the app-server may take to read a message.
	writeWait = 30 * time.Second
)

// message is one that the app-server sent: a notification (Method without ID), a request (both) or a response (ID alone).
type message struct {
	// line is the message as it came, without the end of its line.
	line   []byte
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *rpcError       `json:"error"`
	// odd says why the line is no message; empty where it is one.
	odd string
}

// rpcError is a refusal.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string { return e.Message }

// unknownMethod is JSON-RPC's code for a method that the other side does not have.
const unknownMethod = -32601

func (m *message) hasID() bool { return len(m.ID) > 0 && string(m.ID) != "null" }

// parse reads a line. It takes the bytes.
func parse(line []byte) *message {
	m := &message{line: line}
	if err := json.Unmarshal(line, m); err != nil {
		return &message{line: line, odd: "it is no JSON object of JSON-RPC"}
	}
	if m.Method == "" && !m.hasID() {
		m.odd = "it has neither a method nor an id"
	}
	return m
}

// peer is one side of the connection to an app-server.
type peer struct {
	in *os.File
	// messages has what the app-server sent, in order; it is closed when it sends no more.
	messages chan *message
	quit     chan struct{}
	calls    int
}

// listen reads messages until out ends or quit is closed.
func (p *peer) listen(out io.Reader) {
	defer close(p.messages)
	eachLine(out, maxLine, func(line []byte, size int) bool {
		if len(bytes.TrimSpace(line)) == 0 {
			return true
		}
		m := &message{odd: fmt.Sprintf("it has %d bytes, which is more than is read", size)}
		if size <= maxLine {
			m = parse(bytes.Clone(line))
		}
		select {
		case p.messages <- m:
			return true
		case <-p.quit:
			return false
		}
	})
}

// send writes a message.
func (p *peer) send(m any) error {
	line, err := encode(m)
	if err != nil {
		return err
	}
	if err := p.in.SetWriteDeadline(time.Now().Add(writeWait)); err != nil {
		return err
	}
	_, err = p.in.Write(line)
	return err
}

// encode is JSON without escapes for HTML, with the end of the line.
func encode(v any) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}

// request sends a request and returns its id.
func (p *peer) request(method string, params any) (string, error) {
	p.calls++
	id := fmt.Sprint(p.calls)
	err := p.send(struct {
		ID     int    `json:"id"`
		Method string `json:"method"`
		Params any    `json:"params"`
	}{p.calls, method, params})
	return id, err
}

// notify sends a notification without parameters.
func (p *peer) notify(method string) error {
	return p.send(struct {
		Method string `json:"method"`
	}{method})
}

// answer answers a request of the app-server.
func (p *peer) answer(id json.RawMessage, result any, refused *rpcError) error {
	if refused != nil {
		return p.send(struct {
			ID    json.RawMessage `json:"id"`
			Error *rpcError       `json:"error"`
		}{id, refused})
	}
	return p.send(struct {
		ID     json.RawMessage `json:"id"`
		Result any             `json:"result"`
	}{id, result})
}

// eachLine calls take with each line, without its end, and with how many bytes it has, until r ends or take returns false. Of a line of
// more than most bytes the rest is read over. The line is take's only during the call.
func eachLine(r io.Reader, most int, take func(line []byte, size int) bool) {
	lines := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	size := 0
	for {
		part, err := lines.ReadSlice('\n')
		text := bytes.TrimRight(part, "\r\n")
		if size += len(text); size <= most {
			line = append(line, text...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if size > 0 && !take(line, size) {
			return
		}
		line, size = line[:0], 0
		if cap(line) > 1<<20 {
			line = nil // one large message is no reason to keep its room
		}
		if err != nil {
			return
		}
	}
}
