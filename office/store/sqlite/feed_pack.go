package sqlite

// This file packs records: many of a session become one compressed row. Records of a session are much alike, so that a pack takes a
// quarter of their bytes and less, and rows are few.

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/ncruces/go-sqlite3"

	"github.com/bullpen-dev/bullpen/office/store"
)

// maxDeflated bounds what is compressed at once, because others wait for the writer meanwhile: some ten milliseconds. It takes a record of
// this size to be over it.
const maxDeflated = 1 << 20

// pack is a row of packs.
type pack struct {
	first, records, bytes int64
	deflated              bool
	data                  []byte
}

// packer makes packs. One goroutine uses it at a time.
type packer struct {
	raw     []byte
	out     bytes.Buffer
	deflate *flate.Writer
}

// pack packs records that follow on one another. The pack is good until the next one is made.
func (p *packer) pack(records []store.Stored) (pack, error) {
	made := pack{first: records[0].Seq, records: int64(len(records))}
	p.raw = p.raw[:0]
	for _, r := range records {
		made.bytes += int64(len(r.JSON))
		p.raw = binary.AppendUvarint(p.raw, uint64(len(r.JSON)))
		p.raw = append(p.raw, r.JSON...)
	}
	made.data = p.raw
	defer func() {
		if cap(p.raw) > maxDeflated {
			p.raw = nil
		}
	}()
	if len(p.raw) > maxDeflated {
		return made, nil
	}
	p.out.Reset()
	if p.deflate == nil {
		var err error
		if p.deflate, err = flate.NewWriter(&p.out, flate.BestSpeed); err != nil {
			return made, err
		}
	} else {
		p.deflate.Reset(&p.out)
	}
	if _, err := p.deflate.Write(p.raw); err != nil {
		return made, err
	}
	if err := p.deflate.Close(); err != nil {
		return made, err
	}
	if p.out.Len() < len(p.raw) {
		made.deflated, made.data = true, p.out.Bytes()
	}
	return made, nil
}

// scanPack reads a row of packs; its data is good until the next step of the statement.
func scanPack(row *sqlite3.Stmt) pack {
	return pack{
		first: row.ColumnInt64(0) & maxPlace, records: row.ColumnInt64(1), bytes: row.ColumnInt64(2), deflated: row.ColumnBool(3),
		data: row.ColumnRawBlob(4),
	}
}

// errPack says that a pack is not as it was written.
var errPack = errors.New("a pack of records is damaged")

// inflaters are flate readers for reuse.
var inflaters = sync.Pool{New: func() any { return flate.NewReader(nil) }}

// unpack gives the records of a pack. They share memory of their own.
func (p pack) unpack() ([]store.Stored, error) {
	if p.records < 1 || p.records > maxPlace || p.bytes < 0 {
		return nil, errPack
	}
	raw, err := p.inflate()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errPack, err)
	}
	records := make([]store.Stored, 0, p.records)
	for place := p.first; place < p.first+p.records; place++ {
		length, n := binary.Uvarint(raw)
		if n <= 0 || length > uint64(len(raw)-n) {
			return nil, errPack
		}
		end := n + int(length)
		records = append(records, store.Stored{Seq: place, JSON: raw[n:end:end]})
		raw = raw[end:]
	}
	if len(raw) > 0 {
		return nil, errPack
	}
	return records, nil
}

// inflate gives the data of a pack as it was before it was compressed, in memory of its own.
func (p pack) inflate() ([]byte, error) {
	if !p.deflated {
		return bytes.Clone(p.data), nil
	}
	r := inflaters.Get().(io.ReadCloser)
	defer inflaters.Put(r)
	if err := r.(flate.Resetter).Reset(bytes.NewReader(p.data), nil); err != nil {
		return nil, err
	}
	// Every record is less than 2^28 bytes long, so that its length takes at most four.
	raw := bytes.NewBuffer(make([]byte, 0, min(p.bytes+4*p.records, 2*maxDeflated)+bytes.MinRead))
	_, err := raw.ReadFrom(io.LimitReader(r, 2*maxDeflated))
	return raw.Bytes(), err
}
