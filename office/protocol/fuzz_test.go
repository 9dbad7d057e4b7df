package protocol

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// This file lets chance write frames: for as long as make fuzz is asked to, and
// in every run of the tests a fixed number of them.

// FuzzDecode holds whatever comes to four rules: no panic; a refusal has one of
// the three codes and a sentence; what is taken can be sent; and what is sent
// means the same.
func FuzzDecode(f *testing.F) {
	for _, frame := range seeds(f) {
		f.Add(frame)
	}
	f.Fuzz(checkFrame)
}

func TestFramesOfChanceHoldTheRules(t *testing.T) {
	seed := uint64(rand.Int64())
	if s := os.Getenv("FUZZ_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	m := mutator{Rand: rand.New(rand.NewPCG(seed, 0)), frames: seeds(t)}
	taken := 0
	for range 6_000 {
		frame := m.frame()
		if _, werr := Decode(frame); werr == nil {
			taken++
		}
		if checkFrame(t, frame); t.Failed() {
			t.Fatalf("FUZZ_SEED=%d makes the same frames again; this one was %q", seed, frame)
		}
	}
	if taken < 100 {
		t.Errorf("only %d frames were right: this tests the refusals alone", taken)
	}
}

// seeds has every message with all of its fields and with those that it must
// have, and what was a surprise once.
func seeds(t testing.TB) [][]byte {
	t.Helper()
	var all [][]byte
	messages := rowsByMessage(t)
	for _, s := range Specs() {
		rows := messages[string(s.Type)]
		all = append(all, frameOf(t, string(s.Type), document(rows, true)), frameOf(t, string(s.Type), document(rows, false)))
	}
	for _, s := range []string{
		``, `{}`, `[]`, `null`, `{"id":"m1","type":"ack"}{}`, `{"id":"m1","type":"ack","payload":{"a":1,"a":2}}`,
		`{"id":"\ud800","type":"ack"}`, `{"id":"m1","type":"act","payload":{"id":"a","ops":[ {"a" : 1.0e+1} ,null]}}`,
		usageFrame(`{"inputTokens":1e3,"costUSD":-0}`), usageFrame(`{}`), strings.Repeat(`{"a":`, 70),
		`{"id":"m1","type":"handback","payload":{"workItemId":"w","summary":"","status":"done","links":[{"url":"https://a.b","x":[ 1 ],"\u0079":{}}]}}`,
		"{\"id\":\"m1\",\"type\":\"ping\",\"payload\":{\"\xc0\":1}}",
	} {
		all = append(all, []byte(s))
	}
	return all
}

func checkFrame(t *testing.T, frame []byte) {
	got, werr := Decode(frame)
	if werr != nil {
		checkRefusal(t, werr)
		return
	}
	sent, err := Encode(got)
	if errors.Is(err, ErrTooLarge) {
		return // the usage of a model is written in full, so it can grow
	}
	if err != nil {
		t.Errorf("taken, but cannot be sent: %v", err)
		return
	}
	again, werr := Decode(sent)
	if werr != nil {
		t.Errorf("sent, but not taken: %v: %s", werr, sent)
		return
	}
	if twice, err := Encode(again); err != nil || !bytes.Equal(sent, twice) {
		t.Errorf("changed on the way (%v):\n%s\n%s", err, sent, twice)
	}
}

func checkRefusal(t *testing.T, werr *WireError) {
	t.Helper()
	codes := []Code{CodeMalformed, CodeUnknownType, CodeInvalidMessage}
	if !slices.Contains(codes, werr.Code) || werr.Message == "" {
		t.Errorf("refused without a code or a sentence: %#v", werr)
	}
	if _, err := Encode(werr.Reply("o1")); err != nil {
		t.Errorf("the refusal cannot be sent: %v", err)
	}
}

// mutator breaks frames.
type mutator struct {
	*rand.Rand
	frames [][]byte
}

// pieces are what makes a difference in JSON.
var pieces = []string{
	`{`, `}`, `[`, `]`, `,`, `:`, `"`, `\`, `\u`, `\ud800`, `\u0000`, `null`, `true`, `0`, `-`, `.5`, `e999`, `9007199254740993`, ` `, "\x00", "\xff", "é",
	`"id":"x",`, `"payload":{},`, `"type":"ping"`, `"more":[{}],`, `""`, `"2026-01-31"`, `"https://a.b"`,
}

func (m mutator) frame() []byte {
	b := slices.Clone(m.frames[m.IntN(len(m.frames))])
	for range 1 + m.IntN(3) {
		at := m.IntN(len(b) + 1)
		end := at + m.IntN(min(len(b)-at, 40)+1)
		switch m.IntN(6) {
		case 0:
			b = slices.Insert(b, at, []byte(pieces[m.IntN(len(pieces))])...)
		case 1:
			b = slices.Delete(b, at, end)
		case 2:
			b = slices.Insert(b, end, slices.Clone(b[at:end])...)
		case 3:
			b = slices.Replace(b, at, end, []byte(pieces[m.IntN(len(pieces))])...)
		case 4:
			if at < len(b) {
				b[at] ^= 1 << m.IntN(8)
			}
		case 5:
			other := m.frames[m.IntN(len(m.frames))]
			b = append(b[:at:at], other[m.IntN(len(other)+1):]...)
		}
	}
	return b
}
