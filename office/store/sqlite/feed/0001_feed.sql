-- The feed: the records of sessions. It is made for hundreds of millions of them, so that what an append writes is little and at one
-- place: a row at the end of a log. From there the records of a session are packed, many in a row, in the order of their places, and found
-- by number, without an index.

-- One row: whose feed this is.
CREATE TABLE feed (
    only   INTEGER PRIMARY KEY CHECK (only = 1),
    store  TEXT    NOT NULL, -- the id of the store that it belongs to
    active INTEGER NOT NULL  -- the log that grows, 0 or 1
) STRICT;

-- Always empty. A feed that could not write tries here whether it can again.
CREATE TABLE probe (pad BLOB) STRICT;

CREATE TABLE teams (
    n         INTEGER PRIMARY KEY,
    namespace TEXT    NOT NULL,
    team      TEXT    NOT NULL,
    bytes     INTEGER NOT NULL, -- of the records of all of its sessions
    UNIQUE (namespace, team)
) STRICT;

-- Sessions stay when their records go: what has been uploaded is not asked for again, and places are not given twice.
CREATE TABLE sessions (
    n    INTEGER PRIMARY KEY,
    id   TEXT    NOT NULL UNIQUE,
    team INTEGER NOT NULL
) STRICT;

-- What is known of a session but for what the logs have. It is apart from the rest and small, so that the rows of many share a page.
CREATE TABLE heads (
    session INTEGER PRIMARY KEY, -- sessions.n
    first   INTEGER NOT NULL,    -- the place of the first record that is kept; latest + 1: none is
    latest  INTEGER NOT NULL,    -- the last place that was given
    bytes   INTEGER NOT NULL,    -- of the records that are kept
    closed  INTEGER              -- when the session was closed, in nanoseconds since 1970; NULL: it is open
) STRICT;

-- The last sequence of each spool, but for what the logs have.
CREATE TABLE spools (
    n       INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    spool   TEXT    NOT NULL,
    seq     INTEGER NOT NULL,
    UNIQUE (session, spool)
) STRICT;

-- Where records with a key are, and the ends of turns. A mark is a hash, for it is never read, only looked for.
CREATE TABLE marks (
    session INTEGER NOT NULL,
    mark    BLOB    NOT NULL,
    place   INTEGER NOT NULL,
    PRIMARY KEY (session, mark)
) STRICT, WITHOUT ROWID;

-- Sessions that are closed and have records: what retention may remove, in the order in which it does.
CREATE TABLE closings (
    team    INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    session INTEGER NOT NULL,
    PRIMARY KEY (team, at, session)
) STRICT, WITHOUT ROWID;

-- Records that follow on one another, each after its length as a varint. The number of a pack is that of its session, times 2^32, plus the
-- place of its first record. All records up to heads.latest are packed.
CREATE TABLE packs (
    n        INTEGER PRIMARY KEY,
    records  INTEGER NOT NULL, -- how many
    bytes    INTEGER NOT NULL, -- of all of them
    deflated INTEGER NOT NULL, -- 1: data is compressed
    data     BLOB    NOT NULL
) STRICT;

-- The records that are not packed yet, as they came. One log grows; once it is long, the other one does, and when all of its records are
-- packed, it is emptied at once. A row whose place is not above heads.latest is of no more use. What spools have uploaded is told by the
-- last of their rows.
CREATE TABLE log0 (
    n       INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    place   INTEGER NOT NULL, -- 0: no record
    spool   INTEGER,          -- spools.n
    seq     INTEGER NOT NULL, -- of the spool
    json    BLOB
) STRICT;
CREATE TABLE log1 (
    n       INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    place   INTEGER NOT NULL,
    spool   INTEGER,
    seq     INTEGER NOT NULL,
    json    BLOB
) STRICT;
