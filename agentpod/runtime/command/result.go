package command

// This file reads the result file and the usage that a program prints. Both are held against the protocol's own message,
// so that what is wrong is said to the one who can mend it, and not by the office after the round.

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

// maxResult is the most bytes of a result file; a hand-back has to fit a frame.
const maxResult = protocol.MaxFrame

// resultFields are what a result file may have. All are optional.
var resultFields = []string{"summary", "status", "links", "toReview", "usage", "sessionId"}

// found is what a result file says; all zero when there is none.
type found struct {
	summary  string
	status   protocol.HandbackStatus
	links    []protocol.Link
	toReview []string
	usage    []protocol.SessionUsage
	session  string
}

// readResult reads a result file. That there is none is no error.
func readResult(path string) (found, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return found{}, nil
	}
	if err != nil {
		return found{}, err
	}
	defer file.Close() //nolint:errcheck // only read from
	data, err := io.ReadAll(io.LimitReader(file, maxResult+1))
	if err != nil {
		return found{}, err
	}
	if len(data) > maxResult {
		return found{}, fmt.Errorf("it has more than %d bytes", maxResult)
	}
	return parseResult(data)
}

func parseResult(data []byte) (found, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return found{}, fmt.Errorf("it is no JSON object: %w", err)
	}
	for name, value := range members {
		if !slices.Contains(resultFields, name) {
			return found{}, fmt.Errorf("unknown field %q; it may have %s", name, strings.Join(resultFields, ", "))
		}
		if string(value) == "null" {
			delete(members, name)
		}
	}
	var f found
	if raw, ok := members["sessionId"]; ok {
		if err := json.Unmarshal(raw, &f.session); err != nil {
			return found{}, errors.New("sessionId must be a string")
		}
		delete(members, "sessionId")
	}
	_, explicit := members["status"]
	handback, err := asHandback(members)
	if err != nil {
		return found{}, err
	}
	f.summary, f.links, f.toReview, f.usage = handback.Summary, handback.Links, handback.ToReview, handback.Usage
	if explicit {
		f.status = handback.Status
	}
	return f, nil
}

// parseUsage reads the running totals of one session.
func parseUsage(text string) (protocol.SessionUsage, error) {
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
