package store

// This file is the interface of the feed: the records of sessions, which are many and large, and are kept apart from everything else, so
// that a flood of them never delays work.

import (
	"context"
	"errors"
	"time"

	"github.com/bullpen-dev/bullpen/office/feed"
)

// ErrGap is what an append gets whose spool sequence does not follow the last one that is durable. Test for it with errors.Is.
var ErrGap = errors.New("entries of the spool are missing")

// Feed is the durable memory of session records. It has one writer and many readers, and belongs to the store beside it. Its methods may
// be called by many goroutines.
type Feed interface {
	// Append stores records of one session, all or none, and numbers them on from the last one of the session without a gap. When it
	// returns nil, they are durable. Appends of different callers share group commits.
	Append(ctx context.Context, batch Batch) (Appended, error)
	// Read gives records of a session with a place above after, in order, encoded as JSON objects of feed.Record: at most limit, and at
	// most maxBytes together, but at least one where there is any. A session without records has none.
	Read(ctx context.Context, session string, after int64, limit, maxBytes int) ([]Stored, error)
	// Head says what the feed has of a session.
	Head(ctx context.Context, session string) (Head, error)
	// Uploaded gives the last sequence of a session's spool that is durable, 0 for none.
	Uploaded(ctx context.Context, session, spool string) (int64, error)
	// Placed gives the places of the records that were appended with these keys. A key without a record is not in it.
	Placed(ctx context.Context, session string, keys []string) (map[string]int64, error)
	// Ended says whether the session has the end of the turn (a turn_ended record with that turn's id).
	Ended(ctx context.Context, session, turn string) (bool, error)
	// Trim removes records of closed sessions of a team, the session that was closed first at first: all that were closed before the
	// limit's time, and then as many as it takes to get down to the limit's size. Sessions that are open lose nothing. It works in small
	// steps, between which others write.
	Trim(ctx context.Context, limits Limits) (Trimmed, error)
	// Size adds up the bytes of a team's records.
	Size(ctx context.Context, namespace, team string) (int64, error)
	// Healthy is nil while the last commit succeeded, else why it did not.
	Healthy() error
	// Close ends the feed after what is running.
	Close() error
}

// Batch is records to append to one session.
type Batch struct {
	Ref feed.SessionRef
	// Spool is the id of the spool that the entries come from; empty for the office's own records.
	Spool   string
	Entries []FeedEntry
}

// FeedEntry is one record to append. The record's FeedSeq, ID and SessionID are the feed's to fill in.
type FeedEntry struct {
	// Record is nil for an entry of a spool that is no record but has a sequence.
	Record *feed.Record
	// SpoolSeq is the entry's sequence in its spool: entries up to the last durable one are skipped, and a gap gives ErrGap. A spool goes
	// on from one session of an item to the next, so the first entry that a session sees of it may have any sequence. 0 for the office's own,
	// and for records with a Key that belong to the next entry with a sequence.
	SpoolSeq int64
	// Key is unique in its session: a second record with the same key is skipped. Empty is never a repeat.
	Key string
}

// Appended says what an append did.
type Appended struct {
	// Records are those that were stored, encoded, in order.
	Records []Stored
	// SpoolSeq is the last sequence of the batch's spool that is durable now.
	SpoolSeq int64
}

// Stored is a record as it is kept: its place, and its JSON, which others share and nobody may change.
type Stored struct {
	Seq  int64
	JSON []byte
}

// Head says what a feed has of a session. Places are 0 where it has no record (any more).
type Head struct {
	Earliest int64
	// Latest is the last place that was ever given.
	Latest int64
	// Bytes of the records that are kept.
	Bytes  int64
	Closed bool
}

// Limits bound what a team's closed sessions keep. Zero values do not bound.
type Limits struct {
	Namespace, Team string
	ClosedBefore    time.Time
	Bytes           int64
}

// Trimmed says what a trim removed.
type Trimmed struct {
	Sessions int
	Records  int64
	Bytes    int64
}
