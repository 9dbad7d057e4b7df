-- The world outside as the office knows it, what is said about items, and the places of items in their queues. What is
-- queried is a column, as in the first schema; what happened is never deleted.

-- Where an item stands in its queue: by place, priority and rank, compared as bytes. Where nobody put it, rank is its age and id.
ALTER TABLE items ADD COLUMN rank TEXT NOT NULL DEFAULT '';
ALTER TABLE items ADD COLUMN kind TEXT NOT NULL DEFAULT '';
-- What the item is about, if it is one thing.
ALTER TABLE items ADD COLUMN subject_type TEXT;
ALTER TABLE items ADD COLUMN subject_ref TEXT;
-- The UID of its object; NULL: it began in the office and has none yet.
ALTER TABLE items ADD COLUMN object TEXT;
UPDATE items SET
    rank         = printf('%020d/', max(0, created_at)) || id,
    kind         = coalesce(doc ->> '$.Spec.Kind', ''),
    subject_type = doc ->> '$.Spec.Subject.type',
    subject_ref  = doc ->> '$.Spec.Subject.ref',
    object       = id;
DROP INDEX items_who;
DROP INDEX items_ready;
CREATE INDEX items_who ON items (namespace, team, who, open, place, priority, rank, state) WHERE gone = 0;
CREATE INDEX items_ready ON items (namespace, team, queue, place, priority, rank, not_before) WHERE ready = 1;
CREATE INDEX items_subject ON items (namespace, team, subject_type, subject_ref) WHERE subject_ref IS NOT NULL;
CREATE INDEX items_object ON items (object, revision) WHERE object IS NOT NULL;
CREATE INDEX items_unborn ON items (created_at, id) WHERE object IS NULL AND gone = 0;

ALTER TABLE rounds ADD COLUMN person TEXT NOT NULL DEFAULT '';
ALTER TABLE rounds ADD COLUMN accepted INTEGER NOT NULL DEFAULT 0; -- 1: the agent took the offer
UPDATE rounds SET
    person   = coalesce(doc ->> '$.Person', ''),
    accepted = doc ->> '$.AcceptedAt' IS NOT NULL;

-- Tokens whose cost nobody knows.
ALTER TABLE ledger ADD COLUMN unpriced INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_sums ADD COLUMN unpriced INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session_totals ADD COLUMN unpriced INTEGER NOT NULL DEFAULT 0;

-- What was said about an item. The number orders all feedback and is never used again.
CREATE TABLE feedback (
    n      INTEGER PRIMARY KEY AUTOINCREMENT,
    item   TEXT    NOT NULL REFERENCES items (id),
    key    TEXT    NOT NULL, -- what recognises a repeat; empty: never one
    moment INTEGER,          -- NULL: a remark is behind it
    doc    TEXT    NOT NULL
) STRICT;
CREATE INDEX feedback_item ON feedback (item, n);
CREATE UNIQUE INDEX feedback_key ON feedback (item, key) WHERE key <> '';

-- Why items have to do with tickets, pull requests, documents and chat threads.
CREATE TABLE refs (
    n    INTEGER PRIMARY KEY,
    item TEXT    NOT NULL REFERENCES items (id),
    type TEXT    NOT NULL,
    ref  TEXT    NOT NULL,
    doc  TEXT    NOT NULL,
    UNIQUE (item, type, ref)
) STRICT;
CREATE INDEX refs_item ON refs (item, n);
CREATE INDEX refs_place ON refs (type, ref, item);

-- The chat threads that items report to.
CREATE TABLE threads (
    n       INTEGER PRIMARY KEY,
    item    TEXT    NOT NULL REFERENCES items (id),
    person  TEXT    NOT NULL, -- the handle that hears it
    channel TEXT    NOT NULL,
    thread  TEXT    NOT NULL,
    ref     TEXT    NOT NULL, -- of its place
    doc     TEXT    NOT NULL,
    UNIQUE (item, channel, thread)
) STRICT;
CREATE INDEX threads_item ON threads (item, n);
CREATE INDEX threads_heard ON threads (ref, person, n);

CREATE TABLE events (
    namespace TEXT NOT NULL,
    team      TEXT NOT NULL,
    source    TEXT NOT NULL,
    id        TEXT NOT NULL,
    doc       TEXT NOT NULL,
    PRIMARY KEY (namespace, team, source, id)
) STRICT;

CREATE TABLE acts (
    n          INTEGER PRIMARY KEY,
    namespace  TEXT    NOT NULL,
    team       TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    person     TEXT    NOT NULL,
    item       TEXT    REFERENCES items (id),
    created_at INTEGER NOT NULL,
    open       INTEGER NOT NULL, -- 1: not answered
    doc        TEXT    NOT NULL,
    UNIQUE (namespace, team, id)
) STRICT;
CREATE INDEX acts_open ON acts (namespace, team, person, created_at, n) WHERE open = 1;

CREATE TABLE reports (
    n          INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    namespace  TEXT    NOT NULL,
    team       TEXT    NOT NULL,
    person     TEXT    NOT NULL,
    item       TEXT    REFERENCES items (id),
    created_at INTEGER NOT NULL,
    open       INTEGER NOT NULL, -- 1: not posted
    due        INTEGER,          -- when it is to be sent; NULL once it was, or was posted
    doc        TEXT    NOT NULL
) STRICT;
CREATE INDEX reports_due ON reports (namespace, team, person, due, n) WHERE due IS NOT NULL;
CREATE INDEX reports_open ON reports (namespace, team, person, created_at, n) WHERE open = 1;

CREATE TABLE tickets (
    namespace TEXT    NOT NULL,
    team      TEXT    NOT NULL,
    key       TEXT    NOT NULL,
    prefix    TEXT,             -- what stands before the number in the key
    assignee  TEXT    NOT NULL,
    parent    TEXT    NOT NULL,
    open      INTEGER NOT NULL, -- 1: it can still get work
    doc       TEXT    NOT NULL,
    PRIMARY KEY (namespace, team, key)
) STRICT;
CREATE INDEX tickets_assignee ON tickets (namespace, team, assignee, key) WHERE open = 1;
CREATE INDEX tickets_parent ON tickets (namespace, team, parent, key) WHERE parent <> '';
CREATE INDEX tickets_prefix ON tickets (namespace, team, prefix) WHERE prefix IS NOT NULL;

CREATE TABLE pulls (
    namespace TEXT    NOT NULL,
    team      TEXT    NOT NULL,
    ref       TEXT    NOT NULL,
    state     TEXT    NOT NULL,
    ended     INTEGER NOT NULL, -- 0: open
    at        INTEGER NOT NULL, -- when it was opened; once it ended, its last change
    author    TEXT    NOT NULL,
    ticket    TEXT    NOT NULL,
    repo      TEXT    NOT NULL,
    doc       TEXT    NOT NULL,
    PRIMARY KEY (namespace, team, ref)
) STRICT;
CREATE INDEX pulls_order ON pulls (namespace, team, ended, at DESC, ref, state, author, ticket, repo);
CREATE INDEX pulls_ticket ON pulls (namespace, team, ticket, ended, at DESC, ref);

CREATE TABLE docs (
    namespace TEXT NOT NULL,
    team      TEXT NOT NULL,
    id        TEXT NOT NULL,
    ticket    TEXT NOT NULL,
    doc       TEXT NOT NULL,
    PRIMARY KEY (namespace, team, id)
) STRICT;
CREATE INDEX docs_ticket ON docs (namespace, team, ticket, id);

-- What was said at a place.
CREATE TABLE remarks (
    n         INTEGER PRIMARY KEY,
    namespace TEXT    NOT NULL,
    team      TEXT    NOT NULL,
    type      TEXT    NOT NULL,
    ref       TEXT    NOT NULL,
    id        TEXT    NOT NULL,
    at        INTEGER NOT NULL,
    thread    TEXT    NOT NULL,
    moment    INTEGER NOT NULL,
    doc       TEXT    NOT NULL,
    UNIQUE (namespace, team, type, ref, id)
) STRICT;
CREATE INDEX remarks_place ON remarks (namespace, team, type, ref, at, n);
CREATE INDEX remarks_thread ON remarks (namespace, team, type, ref, thread) WHERE thread <> '';

-- What happened, in the order of time, for searches of a person's past. The number is the time in microseconds since 1970, or the
-- next that was free. Every source remembers the number of its moment.
CREATE TABLE moments (
    n      INTEGER PRIMARY KEY,
    source TEXT    NOT NULL, -- item, journal, outcome, remark or feedback
    item   TEXT,             -- the id, of items and outcomes
    number INTEGER           -- of the journal, of rounds, remarks and feedback
) STRICT;
-- Moments that are new or have changed, in that order, until the index of the past has them. The last one stays, so that numbers grow.
CREATE TABLE changes (
    seq INTEGER PRIMARY KEY,
    n   INTEGER NOT NULL
) STRICT;

ALTER TABLE items ADD COLUMN moment INTEGER;
ALTER TABLE items ADD COLUMN digest INTEGER; -- of all that its moments are found by
ALTER TABLE journal ADD COLUMN moment INTEGER;
ALTER TABLE rounds ADD COLUMN moment INTEGER; -- NULL: it has not ended, or nobody said how
INSERT INTO moments (n, source, item, number)
    WITH told AS (
        SELECT created_at / 1000 AS at, 'item' AS source, id AS item, NULL AS number FROM items
        UNION ALL SELECT at / 1000, 'journal', NULL, n FROM journal
        -- SQLite reads a time to the millisecond: the next one is not too early.
        UNION ALL SELECT CAST(unixepoch(doc ->> '$.EndedAt', 'subsec') * 1000 AS INTEGER) * 1000 + 1000, 'outcome', item, number
            FROM rounds WHERE doc ->> '$.EndedAt' IS NOT NULL AND doc ->> '$.Summary' IS NOT NULL
    ), ordered AS (
        SELECT at, source, item, number, row_number() OVER (ORDER BY at, number) AS place FROM told
    )
    SELECT max(at - place) OVER (ORDER BY place) + place, source, item, number FROM ordered;
UPDATE items SET moment = moments.n FROM moments WHERE moments.source = 'item' AND items.id = moments.item;
UPDATE journal SET moment = moments.n FROM moments WHERE moments.source = 'journal' AND journal.n = moments.number;
UPDATE rounds SET moment = moments.n FROM moments
    WHERE moments.source = 'outcome' AND rounds.item = moments.item AND rounds.number = moments.number;
