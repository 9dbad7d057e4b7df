-- Sessions: the conversations of items with their runtimes. Their records are not here but in the feed, a file of its own.

CREATE TABLE sessions (
    id         TEXT    PRIMARY KEY NOT NULL,
    item       TEXT    NOT NULL REFERENCES items (id),
    number     INTEGER NOT NULL, -- which session of its item it is, from 1; 0: its id does not say
    namespace  TEXT    NOT NULL,
    team       TEXT    NOT NULL,
    name       TEXT    NOT NULL, -- the item's
    person     TEXT    NOT NULL, -- the handle of who has the item; empty: nobody
    state      TEXT    NOT NULL, -- the item's
    open       INTEGER NOT NULL, -- 1: not closed
    created_at INTEGER NOT NULL,
    doc        TEXT    NOT NULL
) STRICT;
CREATE INDEX sessions_item ON sessions (item, number);
CREATE INDEX sessions_name ON sessions (name, namespace);
-- What lists are chosen by comes before what they are ordered by; behind it stands what is compared without reading the row.
CREATE INDEX sessions_age ON sessions (open, created_at, id, state, namespace, team, person);
CREATE INDEX sessions_namespace ON sessions (namespace, open, created_at, id);
CREATE INDEX sessions_team ON sessions (namespace, team, open, created_at, id);
CREATE INDEX sessions_person ON sessions (namespace, person, open, created_at, id, team);
CREATE INDEX sessions_state ON sessions (namespace, state, open, created_at, id, team);

-- What was said to sessions.
CREATE TABLE messages (
    session TEXT NOT NULL REFERENCES sessions (id),
    id      TEXT NOT NULL,
    doc     TEXT NOT NULL,
    PRIMARY KEY (session, id)
) STRICT;

-- What sessions were started with, by its hash: many have the same.
CREATE TABLE frozen (
    hash TEXT PRIMARY KEY NOT NULL,
    body BLOB NOT NULL
) STRICT;

-- Records that the office wrote and the feed does not have yet. A number is never used again.
CREATE TABLE emitted (
    n         INTEGER PRIMARY KEY AUTOINCREMENT,
    key       TEXT    NOT NULL,
    session   TEXT    NOT NULL,
    namespace TEXT    NOT NULL,
    team      TEXT    NOT NULL,
    record    TEXT    NOT NULL -- as JSON, without a place in the feed
) STRICT;
