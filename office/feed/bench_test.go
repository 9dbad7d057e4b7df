package feed_test

import (
	"testing"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/feed/feedtest"
)

// This file has benchmarks of what every record goes through. They take all samples in turn, so that a figure is of an ordinary record.

func BenchmarkAppendRecord(b *testing.B) {
	records := feedtest.Records()
	buf := make([]byte, 0, 1<<16)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		buf = feed.AppendRecord(buf[:0], &records[i%len(records)])
	}
}

func BenchmarkDecodeRecord(b *testing.B) {
	encoded := feedtest.Encoded()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := feed.DecodeRecord(encoded[i%len(encoded)]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkClassify(b *testing.B) {
	records := feedtest.Records()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r := &records[i%len(records)]
		if feed.Classify(r.Source, r.Format, r.Type, r.Payload) != r.Kind {
			b.Fatal(r.Type)
		}
	}
}

func BenchmarkDerive(b *testing.B) {
	records := feedtest.Records()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		feed.Derive(&records[i%len(records)])
	}
}

func BenchmarkCheckPayload(b *testing.B) {
	records := feedtest.Records()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := feed.CheckPayload(records[i%len(records)].Payload); err != nil {
			b.Fatal(err)
		}
	}
}
