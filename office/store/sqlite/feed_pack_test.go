package sqlite

// This file tests packs without a feed.

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/bullpen-dev/bullpen/office/store"
)

// somePacks are packs of all sorts.
func somePacks() map[string][]store.Stored {
	packs := map[string][]store.Stored{
		"one small record":                {{Seq: 1, JSON: []byte(`{"a":1}`)}},
		"one record that is empty":        {{Seq: 7, JSON: []byte{}}},
		"one that cannot be made smaller": {{Seq: maxPlace, JSON: []byte(line("", 5000).Payload)}},
		"one over what is compressed":     {{Seq: 2, JSON: bytes.Repeat([]byte("long "), maxDeflated)}},
		"some that together are just below": {
			{Seq: 3, JSON: bytes.Repeat([]byte("a"), maxDeflated/2-9)}, {Seq: 4, JSON: bytes.Repeat([]byte("b"), maxDeflated/2-9)},
		},
	}
	var many []store.Stored
	for n := range 3000 {
		many = append(many, store.Stored{Seq: int64(100 + n), JSON: fmt.Appendf(nil, `{"n":%d,"text":"%s"}`, n, strings.Repeat("x", n%300))})
	}
	packs["many"] = many
	return packs
}

func TestPacksComeBack(t *testing.T) {
	p := &packer{}
	for range 2 { // the packer is used again
		for name, records := range somePacks() {
			made, err := p.pack(records)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got, err := made.unpack()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if len(got) != len(records) {
				t.Fatalf("%s: %d records became %d", name, len(records), len(got))
			}
			sum := int64(0)
			for n, r := range got {
				sum += int64(len(r.JSON))
				if r.Seq != records[n].Seq || !bytes.Equal(r.JSON, records[n].JSON) {
					t.Fatalf("%s: record %d differs", name, n)
				}
			}
			if sum != made.bytes {
				t.Errorf("%s: the pack says that it has %d bytes, and has %d", name, made.bytes, sum)
			}
			if name == "many" && (!made.deflated || int64(len(made.data))*5 > made.bytes) {
				t.Errorf("%s: %d bytes became %d", name, made.bytes, len(made.data))
			}
		}
	}
}

// FuzzUnpack has no data that does harm: it gives as many records as it should, or an error.
func FuzzUnpack(f *testing.F) {
	p := &packer{}
	for _, records := range somePacks() {
		if made, err := p.pack(records); err != nil {
			f.Fatal(err)
		} else if len(made.data) < 1<<16 {
			f.Add(made.data, made.deflated, made.records, made.bytes)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, deflated bool, records, size int64) {
		got, err := pack{first: 1, records: records, bytes: size, deflated: deflated, data: data}.unpack()
		if err == nil && int64(len(got)) != records {
			t.Errorf("%d records became %d", records, len(got))
		}
		if err != nil && (!errors.Is(err, errPack) || got != nil) {
			t.Errorf("got %v and the error %v", got, err)
		}
	})
}
