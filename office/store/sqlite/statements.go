package sqlite

// This file has every statement of the store but the migrations.

// Transactions.
var (
	begin           = stmt("begin", `BEGIN IMMEDIATE`)
	beginRead       = stmt("begin", `BEGIN`)
	commit          = stmt("commit", `COMMIT`)
	rollback        = stmt("roll back", `ROLLBACK`)
	savepoint       = stmt("begin", `SAVEPOINT job`)
	releaseSave     = stmt("end", `RELEASE job`)
	rollbackSave    = stmt("roll back", `ROLLBACK TO job`)
	writeProbe      = stmt("try to write", `INSERT INTO probe (pad) VALUES (zeroblob(65536))`)
	clearProbe      = stmt("try to write", `DELETE FROM probe`)
	readID          = stmt("read the store's id", `SELECT id FROM store WHERE only = 1`)
	readRevision    = stmt("read the revision", `SELECT revision FROM store WHERE only = 1`)
	advanceRevision = stmt("advance the revision", `UPDATE store SET revision = revision + 1 WHERE only = 1 RETURNING revision`)
)

// Teams and people.
var (
	readTeam  = stmt("read a team", `SELECT doc FROM teams WHERE namespace = ? AND name = ?`)
	listTeams = stmt("list teams", `SELECT doc FROM teams ORDER BY namespace, name`)
	writeTeam = stmt("write a team", `INSERT INTO teams (namespace, name, doc) VALUES (?, ?, ?)
		ON CONFLICT DO UPDATE SET doc = excluded.doc`)
	deleteTeam = stmt("delete a team", `DELETE FROM teams WHERE namespace = ? AND name = ?`)

	readPerson  = stmt("read a person", `SELECT doc FROM people WHERE uid = ?`)
	findPerson  = stmt("find a person", `SELECT doc FROM people WHERE namespace = ? AND team = ? AND handle = ? ORDER BY created_at, uid LIMIT 1`)
	listPeople  = stmt("list people", `SELECT doc FROM people WHERE namespace = ? AND team = ? ORDER BY handle, created_at, uid`)
	listAll     = stmt("list people", `SELECT doc FROM people ORDER BY namespace, team, handle, created_at, uid`)
	writePerson = stmt("write a person", `INSERT INTO people (uid, namespace, team, handle, created_at, doc) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (uid) DO UPDATE SET namespace = excluded.namespace, team = excluded.team, handle = excluded.handle,
		created_at = excluded.created_at, doc = excluded.doc`)
	deletePerson = stmt("delete a person", `DELETE FROM people WHERE uid = ?`)

	readDoctor  = stmt("read a doctor's report", `SELECT doc FROM doctors WHERE person = ?`)
	writeDoctor = stmt("write a doctor's report", `INSERT INTO doctors (person, doc) VALUES (?, ?)
		ON CONFLICT DO UPDATE SET doc = excluded.doc`)
	readWindows  = stmt("read usage windows", `SELECT doc FROM windows WHERE namespace = ? AND team = ? AND subscription = ?`)
	writeWindows = stmt("write usage windows", `INSERT INTO windows (namespace, team, subscription, doc) VALUES (?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET doc = excluded.doc`)
)

// Items.
var (
	readItem = stmt("read an item", `SELECT doc FROM items WHERE id = ?`)
	findItem = stmt("find an item", `SELECT doc FROM items WHERE namespace = ? AND name = ? AND gone = 0
		ORDER BY created_at DESC, revision DESC LIMIT 1`)
	findHeld   = stmt("find a person's round", `SELECT doc FROM items WHERE namespace = ? AND team = ? AND holder = ?`)
	countHeld  = stmt("count rounds", `SELECT count(*), sum(holder = ?3) FROM items WHERE namespace = ?1 AND team = ?2 AND holder IS NOT NULL`)
	findLatest = stmt("find an item", `SELECT doc FROM items WHERE namespace = ? AND name = ?
		ORDER BY gone, created_at DESC, revision DESC LIMIT 1`)
	candidates = stmt("list what can be offered", `SELECT doc, place, priority, created_at, id FROM items
			WHERE namespace = ?1 AND team = ?2 AND queue = ?3 AND ready = 1 AND not_before <= ?5
		UNION ALL SELECT doc, place, priority, created_at, id FROM items
			WHERE namespace = ?1 AND team = ?2 AND queue = ?4 AND ready = 1 AND not_before <= ?5
		ORDER BY place, priority, created_at, id LIMIT ?6`)
	nextCandidate = stmt("find what can be offered next", `SELECT min(not_before) FROM items
		WHERE namespace = ?1 AND team = ?2 AND queue IN (?3, ?4) AND ready = 1 AND not_before > 0 AND not_before > ?5`)
	listOpen = stmt("list a person's open items", `SELECT doc FROM items WHERE namespace = ? AND team = ? AND who = ? AND open = 1 AND gone = 0
		ORDER BY place, priority, created_at, id LIMIT ?`)
	listOwn = stmt("list a person's items", `SELECT doc FROM items WHERE namespace = ? AND team = ? AND who = ? AND gone = 0
		ORDER BY place, priority, created_at, id LIMIT ?`)
	countQueued = stmt("count a person's queue", `SELECT count(*) FROM items
		WHERE namespace = ? AND team = ? AND who = ? AND open = 1 AND state = 'queued' AND gone = 0`)
	listUnfinished = stmt("list unfinished items", `SELECT id FROM items
		WHERE namespace = ? AND team = ? AND state IN ('queued', 'active', 'waiting', 'blocked') AND gone = 0 ORDER BY id`)
	countStates    = stmt("count items", `SELECT state, count(*) FROM items WHERE namespace = ? AND team = ? AND gone = 0 GROUP BY state`)
	listLive       = stmt("list live items", `SELECT id FROM items WHERE gone = 0`)
	listDependents = stmt("list dependents", `SELECT item FROM dependencies WHERE namespace = ? AND name = ? ORDER BY item`)
	findTombstone  = stmt("find a tombstone", `SELECT id FROM items WHERE namespace = ? AND name = ? AND hash = ? AND buried IS NOT NULL
		ORDER BY buried DESC LIMIT 1`)
	// An item that lives again has no tombstone.
	writeItem = stmt("write an item", `INSERT INTO items
		(id, namespace, name, team, who, queue, state, open, ready, holder, place, priority, not_before,
		created_at, gone, hash, revision, doc)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET namespace = excluded.namespace, name = excluded.name, team = excluded.team,
		who = excluded.who, queue = excluded.queue, state = excluded.state, open = excluded.open, ready = excluded.ready,
		holder = excluded.holder, place = excluded.place, priority = excluded.priority,
		not_before = excluded.not_before, created_at = excluded.created_at,
		gone = excluded.gone, hash = excluded.hash, revision = excluded.revision, doc = excluded.doc,
		buried = iif(excluded.gone, buried, NULL)`)
	buryItem          = stmt("bury an item", `UPDATE items SET buried = revision WHERE id = ?`)
	clearDependencies = stmt("write dependencies", `DELETE FROM dependencies WHERE item = ?`)
	writeDependency   = stmt("write dependencies", `INSERT INTO dependencies (namespace, name, item) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`)
	rememberFirst     = stmt("remember a message", `INSERT INTO seen (item, key, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`)
	listRounds        = stmt("list rounds", `SELECT doc FROM rounds WHERE item = ? ORDER BY number`)
	writeRound        = stmt("write a round", `INSERT INTO rounds (item, number, open, doc) VALUES (?, ?, ?, ?)
		ON CONFLICT (item, number) DO UPDATE SET open = excluded.open, doc = excluded.doc`)
	listJournal  = stmt("list a journal", `SELECT at, author, text FROM journal WHERE item = ? ORDER BY n`)
	writeJournal = stmt("write to a journal", `INSERT INTO journal (item, at, author, text) VALUES (?, ?, ?, ?)`)
)

// Usage.
var (
	readTotals = stmt("read a session's totals", `SELECT input, output, cache_read, cache_creation, cost, cost_known
		FROM session_totals WHERE item = ? AND session = ? AND model = ?`)
	writeTotals = stmt("write a session's totals", `INSERT INTO session_totals
		(item, session, model, input, output, cache_read, cache_creation, cost, cost_known) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET input = excluded.input, output = excluded.output, cache_read = excluded.cache_read,
		cache_creation = excluded.cache_creation, cost = excluded.cost, cost_known = excluded.cost_known`)
	writeLedger = stmt("write to the ledger", `INSERT INTO ledger
		(item, round, namespace, team, person, kind, session, model, at, input, output, cache_read, cache_creation, cost, cost_known)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	addSum = stmt("add usage up", `INSERT INTO usage_sums
		(namespace, team, person, input, output, cache_read, cache_creation, cost, cost_known) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET input = input + excluded.input, output = output + excluded.output,
		cache_read = cache_read + excluded.cache_read, cache_creation = cache_creation + excluded.cache_creation,
		cost = cost + excluded.cost, cost_known = max(cost_known, excluded.cost_known)`)
	sumModels = stmt("add an item's usage up", `SELECT sum(input), sum(output), sum(cache_read), sum(cache_creation), sum(cost), max(cost_known), model
		FROM ledger WHERE item = ? GROUP BY model ORDER BY sum(input + output + cache_read + cache_creation) DESC, model`)
	sumPerson = stmt("read a person's usage", `SELECT input, output, cache_read, cache_creation, cost, cost_known
		FROM usage_sums WHERE namespace = ? AND team = ? AND person = ?`)
	sumTeam = stmt("read a team's usage", `SELECT sum(input), sum(output), sum(cache_read), sum(cache_creation), sum(cost), max(cost_known)
		FROM usage_sums WHERE namespace = ? AND team = ?`)
)
