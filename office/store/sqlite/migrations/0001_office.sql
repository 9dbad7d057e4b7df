-- The first schema. What is queried is a column; the rest of a struct is its JSON document, doc, which holds the whole of
-- it. Times are nanoseconds since 1970 in UTC, 0 for none. A document's columns are written together with it, always.

-- One row: who this store is, and the number of its last change to an item.
CREATE TABLE store (
    only     INTEGER PRIMARY KEY CHECK (only = 1),
    id       TEXT    NOT NULL,
    revision INTEGER NOT NULL
) STRICT;

-- Always empty. A store that could not write tries here whether it can again.
CREATE TABLE probe (pad BLOB) STRICT;

CREATE TABLE teams (
    namespace TEXT NOT NULL,
    name      TEXT NOT NULL,
    doc       TEXT NOT NULL,
    PRIMARY KEY (namespace, name)
) STRICT;

CREATE TABLE people (
    uid        TEXT    PRIMARY KEY NOT NULL,
    namespace  TEXT    NOT NULL,
    team       TEXT    NOT NULL,
    handle     TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    doc        TEXT    NOT NULL
) STRICT;
CREATE INDEX people_handle ON people (namespace, team, handle, created_at, uid);

CREATE TABLE doctors (
    person TEXT PRIMARY KEY NOT NULL REFERENCES people (uid) ON DELETE CASCADE,
    doc    TEXT NOT NULL
) STRICT;

CREATE TABLE items (
    id         TEXT    PRIMARY KEY NOT NULL,
    namespace  TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    team       TEXT    NOT NULL,
    who        TEXT    NOT NULL, -- the handle it is assigned to, else the one it asks for; empty: anyone of the role
    queue      TEXT    NOT NULL, -- whose turn it waits for: person/HANDLE, or role/ROLE while nobody has it
    state      TEXT    NOT NULL,
    open       INTEGER NOT NULL, -- 1: neither done nor canceled
    ready      INTEGER NOT NULL, -- 1: queued, between rounds, with no hold that only an event ends
    holder     TEXT,             -- the handle that has its round
    place      INTEGER NOT NULL, -- 0: before all others; 1: by priority
    priority   INTEGER NOT NULL,
    not_before INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    gone       INTEGER NOT NULL,
    hash       TEXT    NOT NULL,
    buried     INTEGER,          -- the revision of its burial: its tombstone
    revision   INTEGER NOT NULL,
    doc        TEXT    NOT NULL
) STRICT;
CREATE INDEX items_name ON items (namespace, name, gone, created_at DESC, revision DESC);
CREATE INDEX items_who ON items (namespace, team, who, open, place, priority, created_at, id, state) WHERE gone = 0;
CREATE INDEX items_ready ON items (namespace, team, queue, place, priority, created_at, id, not_before) WHERE ready = 1;
CREATE INDEX items_later ON items (namespace, team, queue, not_before) WHERE ready = 1 AND not_before > 0;
CREATE INDEX items_state ON items (namespace, team, state, id) WHERE gone = 0;
CREATE INDEX items_tombstone ON items (namespace, name, hash, buried) WHERE buried IS NOT NULL;
-- A person has at most one round at a time.
CREATE UNIQUE INDEX items_holder ON items (namespace, team, holder) WHERE holder IS NOT NULL;

-- What unfinished items wait for, by name.
CREATE TABLE dependencies (
    namespace TEXT NOT NULL,
    name      TEXT NOT NULL,
    item      TEXT NOT NULL REFERENCES items (id),
    PRIMARY KEY (namespace, name, item)
) STRICT, WITHOUT ROWID;
CREATE INDEX dependencies_item ON dependencies (item);

CREATE TABLE rounds (
    item   TEXT    NOT NULL REFERENCES items (id),
    number INTEGER NOT NULL,
    open   INTEGER NOT NULL, -- 1: not ended
    doc    TEXT    NOT NULL,
    PRIMARY KEY (item, number)
) STRICT;
-- An item has at most one round that has not ended.
CREATE UNIQUE INDEX rounds_open ON rounds (item) WHERE open = 1;

CREATE TABLE journal (
    n      INTEGER PRIMARY KEY,
    item   TEXT    NOT NULL REFERENCES items (id),
    at     INTEGER NOT NULL,
    author TEXT    NOT NULL,
    text   TEXT    NOT NULL
) STRICT;
CREATE INDEX journal_item ON journal (item);

-- Usage, entry by entry, as hand-backs and reports added it.
CREATE TABLE ledger (
    n              INTEGER PRIMARY KEY,
    item           TEXT    NOT NULL REFERENCES items (id),
    round          INTEGER NOT NULL,
    namespace      TEXT    NOT NULL,
    team           TEXT    NOT NULL,
    person         TEXT    NOT NULL,
    kind           TEXT    NOT NULL,
    session        TEXT    NOT NULL,
    model          TEXT    NOT NULL,
    at             INTEGER NOT NULL,
    input          INTEGER NOT NULL,
    output         INTEGER NOT NULL,
    cache_read     INTEGER NOT NULL,
    cache_creation INTEGER NOT NULL,
    cost           INTEGER NOT NULL, -- millionths of a US dollar
    cost_known     INTEGER NOT NULL
) STRICT;
CREATE INDEX ledger_item ON ledger (item);

-- The ledger added up by person, so that a budget is checked without reading it.
CREATE TABLE usage_sums (
    namespace      TEXT    NOT NULL,
    team           TEXT    NOT NULL,
    person         TEXT    NOT NULL,
    input          INTEGER NOT NULL,
    output         INTEGER NOT NULL,
    cache_read     INTEGER NOT NULL,
    cache_creation INTEGER NOT NULL,
    cost           INTEGER NOT NULL,
    cost_known     INTEGER NOT NULL,
    PRIMARY KEY (namespace, team, person)
) STRICT, WITHOUT ROWID;

-- The last running totals of a session and model.
CREATE TABLE session_totals (
    item           TEXT    NOT NULL REFERENCES items (id),
    session        TEXT    NOT NULL,
    model          TEXT    NOT NULL,
    input          INTEGER NOT NULL,
    output         INTEGER NOT NULL,
    cache_read     INTEGER NOT NULL,
    cache_creation INTEGER NOT NULL,
    cost           INTEGER NOT NULL,
    cost_known     INTEGER NOT NULL,
    PRIMARY KEY (item, session, model)
) STRICT, WITHOUT ROWID;

CREATE TABLE windows (
    namespace    TEXT NOT NULL,
    team         TEXT NOT NULL,
    subscription TEXT NOT NULL,
    doc          TEXT NOT NULL,
    PRIMARY KEY (namespace, team, subscription)
) STRICT;

-- The keys of messages that were handled, so that a repeat is recognised.
CREATE TABLE seen (
    item TEXT    NOT NULL REFERENCES items (id),
    key  BLOB    NOT NULL,
    at   INTEGER NOT NULL,
    PRIMARY KEY (item, key)
) STRICT, WITHOUT ROWID;
