package spool

// This file is the form of entries on disk: a line for each with a checksum of what follows, the sequence, and the entry as JSON without
// its sequence and its offer, apart by spaces. The same JSON goes on the wire, with those two in front.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/bullpen-dev/bullpen/office/feed"
)

const (
	// SourceSpool is the source of the records that the spool itself makes. No schema knows them.
	SourceSpool = "bullpen"
	// FormatSpool is their format.
	FormatSpool = "bullpen_spool@1"
	// TypeDropped is the type of the record that stands where records are missing. Its payload is a Dropped.
	TypeDropped = "records_dropped"
	// maxVital is the most bytes of an entry that may use the reserve.
	maxVital = 16 << 10
	// sumLen is the length of a checksum.
	sumLen = 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Dropped is the payload of the record that says that others are missing.
type Dropped struct {
	// Count of the records that are missing here, and when the first and the last of them were made.
	Count int64     `json:"count"`
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
}

// Omitted is the payload in the place of one that was too large.
type Omitted struct {
	// Format is what it had, Bytes its size.
	Format string `json:"omitted_format"`
	Bytes  int    `json:"omitted_bytes"`
	Reason string `json:"reason"`
}

// head is an entry's JSON without what is added in front and behind.
type head struct {
	At     time.Time `json:"at"`
	Source string    `json:"source"`
	Format string    `json:"record_format"`
	Type   string    `json:"record_type"`
	Echo   *int      `json:"echo,omitempty"`
}

// Fitting gives an entry as it is kept if its payload is too large: with a note in its place. Others come back as they are.
func Fitting(e feed.Entry) feed.Entry {
	if len(e.Payload) <= feed.MaxRecord {
		return e
	}
	if fits, err := fitting(e); err == nil {
		return fits
	}
	return e // encode says what is wrong with it
}

// fitting compacts the payload of an entry, and replaces one that is too large.
func fitting(e feed.Entry) (feed.Entry, error) {
	if !utf8.Valid(e.Payload) {
		e.Payload = bytes.ToValidUTF8(e.Payload, []byte("�"))
	}
	// Compacted, a payload has no line breaks, and nothing that it says is lost.
	var payload bytes.Buffer
	payload.Grow(len(e.Payload))
	if err := json.Compact(&payload, e.Payload); err != nil {
		return e, fmt.Errorf("the payload of a %s record is no JSON: %w", e.Type, err)
	}
	if payload.Len() == 0 || payload.Bytes()[0] != '{' {
		return e, fmt.Errorf("the payload of a %s record is no JSON object", e.Type)
	}
	e.Payload = payload.Bytes()
	if payload.Len() <= feed.MaxRecord {
		return e, nil
	}
	note, err := json.Marshal(Omitted{
		Format: e.Format, Bytes: payload.Len(), Reason: fmt.Sprintf("a record may have at most %d bytes", feed.MaxRecord),
	})
	e.Format, e.Payload = FormatSpool, note
	return e, err
}

// encode makes the JSON of an entry. A payload that is no JSON object is an error; one that is too large is replaced.
func encode(e feed.Entry) ([]byte, error) {
	e, err := fitting(e)
	if err != nil {
		return nil, err
	}
	front, err := json.Marshal(head{At: e.At.UTC(), Source: e.Source, Format: e.Format, Type: e.Type, Echo: e.Echo})
	if err != nil {
		return nil, err
	}
	entry := make([]byte, 0, len(front)+len(payloadName)+len(e.Payload)+1)
	entry = append(append(entry, front[:len(front)-1]...), payloadName...)
	return append(append(entry, e.Payload...), '}'), nil
}

const payloadName = `,"payload":`

// lineOf makes the line of an entry.
func lineOf(seq int64, entry []byte) []byte {
	line := make([]byte, sumLen+1, sumLen+1+20+1+len(entry)+1)
	line = append(strconv.AppendInt(line, seq, 10), ' ')
	line = append(line, entry...)
	copy(line, fmt.Sprintf("%08x ", crc32.Checksum(line[sumLen+1:], castagnoli)))
	return append(line, '\n')
}

// parseLine reads a line, with or without its end. ok says whether it is as it was written.
func parseLine(line []byte) (seq int64, entry []byte, ok bool) {
	line = bytes.TrimSuffix(line, []byte("\n"))
	if len(line) <= sumLen || line[sumLen] != ' ' {
		return 0, nil, false
	}
	want, err := strconv.ParseUint(string(line[:sumLen]), 16, 32)
	if err != nil || crc32.Checksum(line[sumLen+1:], castagnoli) != uint32(want) {
		return 0, nil, false
	}
	number, entry, ok := bytes.Cut(line[sumLen+1:], []byte(" "))
	seq, err = strconv.ParseInt(string(number), 10, 64)
	return seq, entry, ok && err == nil
}

// isLifecycle says whether a line's entry is a platform's event of a type.
func isLifecycle(entry []byte, kind string) bool {
	front, _, _ := bytes.Cut(entry, []byte(payloadName))
	return bytes.Contains(front, fmt.Appendf(nil, `"source":%q,"record_format":%q,"record_type":%q`,
		feed.SourceLifecycle, feed.FormatLifecycle, kind))
}

// wire appends an entry as it is sent.
func wire(to []byte, seq int64, offer string, entry []byte) []byte {
	quoted, err := json.Marshal(offer)
	if err != nil {
		quoted = []byte(`""`) // a string always has a JSON form
	}
	to = append(strconv.AppendInt(append(to, `{"seq":`...), seq, 10), `,"offer":`...)
	return append(append(append(to, quoted...), ','), entry[1:]...)
}

// vital says whether an entry is one that a session cannot do without.
func vital(e feed.Entry) bool {
	return len(e.Payload) <= maxVital &&
		(e.Format == feed.FormatState || e.Format == feed.FormatLifecycle && e.Type != feed.TypeEnvironmentOutput)
}

// dropped is the entry that says that others are missing.
func dropped(d Dropped, at time.Time) feed.Entry {
	payload, err := json.Marshal(d)
	if err != nil {
		payload = []byte("{}") // numbers and times always have a JSON form
	}
	return feed.Entry{At: at, Source: SourceSpool, Format: FormatSpool, Type: TypeDropped, Payload: payload}
}
