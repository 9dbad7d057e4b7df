// Package sqlite keeps the office's memory in one SQLite file, without cgo.
//
// One goroutine writes. Every Update that waits is taken into the transaction that is open, each inside a savepoint of its
// own, so that one fsync makes all of them durable; only then are their callers answered. An Update's function runs on its
// caller's goroutine while the writer stands by, so a panic in it is the caller's. Readers have connections of their own and
// see the last commit.
//
// What a person's past is searched with is an index in a second file, path.past, which a goroutine keeps up to date from notes that every
// change leaves. It holds nothing that the database does not, and is made anew when it is missing or does not fit; a backup needs only the
// database. A search looks through what is noted but not yet indexed by itself, so that it finds all that its view shows.
//
// The records of sessions are in a feed, a file of its own with a writer of its own (OpenFeed), so that a flood of them never delays what is
// decided in the store. It is no index of anything: a backup of sessions needs both files.
//
// A file lock beside the database keeps a second office out. A file that is damaged, not ours, or written by a newer release
// is refused before anything in it changes. If the disk is full or fails, no Update succeeds and Healthy says why; the store
// tries again by itself until it can write.
package sqlite
