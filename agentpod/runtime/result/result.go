// Package result reads what a program or a model leaves about how a round ended: the result file, whose path is in BULLPEN_RESULT_FILE,
// and running totals of usage. Both are held against the protocol's own messages, so that what is wrong is said to the one who can mend
// it, and not by the office after the round.
package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

// MaxFile is the most bytes of a result file; a hand-back has to fit a frame.
const MaxFile = protocol.MaxFrame

// fields are what a result file may have. All are optional.
var fields = []string{"summary", "status", "links", "toReview", "usage", "sessionId"}

// Result is what a result file says; all zero when there is none.
type Result struct {
	Summary string
	// Status is empty where the file names none.
	Status   protocol.HandbackStatus
	Links    []protocol.Link
	ToReview []string
	// Usage and Session are for programs that run a model themselves.
	Usage   []protocol.SessionUsage
	Session string
}

// Read reads a result file. That there is none is no error; one that cannot be used is, and the error names the field.
func Read(path string) (Result, error) {
	file, err := Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return Result{}, nil
	}
	if err != nil {
		return Result{}, err
	}
	defer file.Close() //nolint:errcheck // only read from
	data, err := io.ReadAll(io.LimitReader(file, MaxFile+1))
	if err != nil {
		return Result{}, err
	}
	if len(data) > MaxFile {
		return Result{}, fmt.Errorf("it has more than %d bytes", MaxFile)
	}
	return parse(data)
}

// Open opens a result file. What is no file is an error: to open a pipe would wait, for ever if need be, for somebody to write to it.
func Open(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no file")
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func parse(data []byte) (Result, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return Result{}, fmt.Errorf("it is no JSON object: %w", err)
	}
	for name, value := range members {
		if !slices.Contains(fields, name) {
			return Result{}, fmt.Errorf("unknown field %q; it may have %s", name, strings.Join(fields, ", "))
		}
		if string(value) == "null" {
			delete(members, name)
		}
	}
	var r Result
	if raw, ok := members["sessionId"]; ok {
		if err := json.Unmarshal(raw, &r.Session); err != nil {
			return Result{}, errors.New("sessionId must be a string")
		}
		delete(members, "sessionId")
	}
	_, explicit := members["status"]
	handback, err := asHandback(members)
	if err != nil {
		return Result{}, err
	}
	r.Summary, r.Links, r.ToReview, r.Usage = handback.Summary, handback.Links, handback.ToReview, handback.Usage
	if explicit {
		r.Status = handback.Status
	}
	return r, nil
}

// ParseUsage reads the running totals of one session from their JSON.
func ParseUsage(text string) (protocol.SessionUsage, error) {
	if !json.Valid([]byte(text)) {
		return protocol.SessionUsage{}, errors.New("it is not JSON")
	}
	handback, err := asHandback(map[string]json.RawMessage{"usage": json.RawMessage("[" + text + "]")})
	if err != nil {
		return protocol.SessionUsage{}, err
	}
	if len(handback.Usage) != 1 {
		return protocol.SessionUsage{}, errors.New("it must be one object")
	}
	return handback.Usage[0], nil
}

// asHandback reads members as those of a hand-back, with something for those that are required.
func asHandback(members map[string]json.RawMessage) (protocol.Handback, error) {
	payload := map[string]json.RawMessage{
		"workItemId": json.RawMessage(`"-"`),
		"summary":    json.RawMessage(`""`),
		"links":      json.RawMessage(`[]`),
		"status":     json.RawMessage(`"done"`),
	}
	for name, value := range members {
		payload[name] = value
	}
	frame, err := json.Marshal(map[string]any{"id": "-", "type": protocol.TypeHandback, "payload": payload})
	if err != nil {
		return protocol.Handback{}, err
	}
	decoded, werr := protocol.Decode(frame)
	if werr != nil {
		return protocol.Handback{}, errors.New(strings.TrimPrefix(werr.Message, "handback: payload."))
	}
	handback, ok := decoded.Message.(protocol.Handback)
	if !ok {
		return protocol.Handback{}, fmt.Errorf("it was read as %s", decoded.Message.Type())
	}
	return handback, nil
}
