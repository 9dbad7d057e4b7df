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
	findObject = stmt("find an item", `SELECT doc FROM items WHERE object = ? ORDER BY revision DESC LIMIT 1`)
	findHeld   = stmt("find a person's round", `SELECT doc FROM items WHERE namespace = ? AND team = ? AND holder = ?`)
	countHeld  = stmt("count rounds", `SELECT count(*), sum(holder = ?3) FROM items WHERE namespace = ?1 AND team = ?2 AND holder IS NOT NULL`)
	findLatest = stmt("find an item", `SELECT doc FROM items WHERE namespace = ? AND name = ?
		ORDER BY gone, created_at DESC, revision DESC LIMIT 1`)
	candidates = stmt("list what can be offered", `SELECT doc, place, priority, rank FROM items
			WHERE namespace = ?1 AND team = ?2 AND queue = ?3 AND ready = 1 AND not_before <= ?5
		UNION ALL SELECT doc, place, priority, rank FROM items
			WHERE namespace = ?1 AND team = ?2 AND queue = ?4 AND ready = 1 AND not_before <= ?5
		ORDER BY place, priority, rank LIMIT ?6`)
	nextCandidate = stmt("find what can be offered next", `SELECT min(not_before) FROM items
		WHERE namespace = ?1 AND team = ?2 AND queue IN (?3, ?4) AND ready = 1 AND not_before > 0 AND not_before > ?5`)
	nextHeld = stmt("find what a budget holds", `SELECT doc FROM items
		WHERE namespace = ? AND team = ? AND held = 1 AND (place, priority, rank, id) > (?, ?, ?, ?) ORDER BY place, priority, rank, id LIMIT 1`)
	listHolders = stmt("list who has a round", `SELECT holder FROM items WHERE namespace = ? AND team = ? AND holder IS NOT NULL ORDER BY holder`)
	listOpen    = stmt("list a person's open items", `SELECT doc FROM items WHERE namespace = ? AND team = ? AND who = ? AND open = 1 AND gone = 0
		ORDER BY place, priority, rank LIMIT ?`)
	listOwn = stmt("list a person's items", `SELECT doc FROM items WHERE namespace = ? AND team = ? AND who = ? AND gone = 0
		ORDER BY place, priority, rank LIMIT ?`)
	countQueued = stmt("count a person's queue", `SELECT count(*) FROM items
		WHERE namespace = ? AND team = ? AND who = ? AND open = 1 AND state = 'queued' AND gone = 0`)
	listUnfinished = stmt("list unfinished items", `SELECT id FROM items
		WHERE namespace = ? AND team = ? AND state IN ('queued', 'active', 'waiting', 'blocked') AND gone = 0 ORDER BY id`)
	countStates    = stmt("count items", `SELECT state, count(*) FROM items WHERE namespace = ? AND team = ? AND gone = 0 GROUP BY state`)
	listLive       = stmt("list live items", `SELECT object FROM items WHERE gone = 0 AND object IS NOT NULL`)
	listDependents = stmt("list dependents", `SELECT item FROM dependencies WHERE namespace = ? AND name = ? ORDER BY item`)
	findTombstone  = stmt("find a tombstone", `SELECT id FROM items WHERE namespace = ? AND name = ? AND hash = ? AND buried IS NOT NULL
		ORDER BY buried DESC LIMIT 1`)
	// An item that lives again has no tombstone.
	writeItem = stmt("write an item", `INSERT INTO items
		(id, namespace, name, team, who, queue, state, open, ready, holder, place, priority, not_before,
		created_at, gone, hash, revision, rank, kind, subject_type, subject_ref, object, moment, digest, held, doc)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET namespace = excluded.namespace, name = excluded.name, team = excluded.team,
		who = excluded.who, queue = excluded.queue, state = excluded.state, open = excluded.open, ready = excluded.ready,
		holder = excluded.holder, place = excluded.place, priority = excluded.priority,
		not_before = excluded.not_before, created_at = excluded.created_at,
		gone = excluded.gone, hash = excluded.hash, revision = excluded.revision, rank = excluded.rank, kind = excluded.kind,
		subject_type = excluded.subject_type, subject_ref = excluded.subject_ref, object = excluded.object,
		moment = excluded.moment, digest = excluded.digest, held = excluded.held, doc = excluded.doc,
		buried = iif(excluded.gone, buried, NULL)`)
	buryItem          = stmt("bury an item", `UPDATE items SET buried = revision WHERE id = ?`)
	clearDependencies = stmt("write dependencies", `DELETE FROM dependencies WHERE item = ?`)
	writeDependency   = stmt("write dependencies", `INSERT INTO dependencies (namespace, name, item) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`)
	rememberFirst     = stmt("remember a message", `INSERT INTO seen (item, key, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`)
	readSeen          = stmt("look for a message", `SELECT 1 FROM seen WHERE item = ? AND key = ?`)
	listRounds        = stmt("list rounds", `SELECT doc FROM rounds WHERE item = ? ORDER BY number`)
	writeRound        = stmt("write a round", `INSERT INTO rounds (item, number, open, person, accepted, doc) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (item, number) DO UPDATE SET open = excluded.open, person = excluded.person, accepted = excluded.accepted,
		doc = excluded.doc RETURNING moment`)
	listJournal  = stmt("list a journal", `SELECT item, at, author, text FROM journal WHERE item = ? ORDER BY n`)
	writeJournal = stmt("write to a journal", `INSERT INTO journal (item, at, author, text, moment) VALUES (?, ?, ?, ?, ?)`)
)

// Usage.
var (
	readTotals = stmt("read a session's totals", `SELECT input, output, cache_read, cache_creation, cost, cost_known, unpriced
		FROM session_totals WHERE item = ? AND session = ? AND model = ?`)
	writeTotals = stmt("write a session's totals", `INSERT INTO session_totals
		(item, session, model, input, output, cache_read, cache_creation, cost, cost_known, unpriced) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET input = excluded.input, output = excluded.output, cache_read = excluded.cache_read,
		cache_creation = excluded.cache_creation, cost = excluded.cost, cost_known = excluded.cost_known,
		unpriced = excluded.unpriced`)
	writeLedger = stmt("write to the ledger", `INSERT INTO ledger
		(item, round, namespace, team, person, kind, session, model, at,
			input, output, cache_read, cache_creation, cost, cost_known, unpriced)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	addSum = stmt("add usage up", `INSERT INTO usage_sums
		(namespace, team, person, input, output, cache_read, cache_creation, cost, cost_known, unpriced) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET input = input + excluded.input, output = output + excluded.output,
		cache_read = cache_read + excluded.cache_read, cache_creation = cache_creation + excluded.cache_creation,
		cost = cost + excluded.cost, cost_known = max(cost_known, excluded.cost_known),
		unpriced = unpriced + excluded.unpriced`)
	sumModels = stmt("add an item's usage up", `SELECT sum(input), sum(output), sum(cache_read), sum(cache_creation), sum(cost),
			max(cost_known), sum(unpriced), model FROM ledger WHERE item = ? GROUP BY model ORDER BY sum(input + output + cache_read + cache_creation) DESC, model`)
	sumPerson = stmt("read a person's usage", `SELECT input, output, cache_read, cache_creation, cost, cost_known, unpriced
		FROM usage_sums WHERE namespace = ? AND team = ? AND person = ?`)
	sumTeam = stmt("read a team's usage", `SELECT sum(input), sum(output), sum(cache_read), sum(cache_creation), sum(cost), max(cost_known),
			sum(unpriced) FROM usage_sums WHERE namespace = ? AND team = ?`)
	// Of every item, gone or not, that is about the ticket.
	sumTicket = stmt("add a ticket's usage up", `SELECT sum(input), sum(output), sum(cache_read), sum(cache_creation), sum(cost),
			max(cost_known), sum(unpriced), person, model, kind, count(DISTINCT item || '/' || round) FROM ledger WHERE item IN (`+itemsOfPlace+`)
		GROUP BY person, model, kind ORDER BY person, model, kind`)
	countTicket = stmt("count a ticket's rounds", `SELECT rounds.person, items.kind, count(*) FROM rounds JOIN items ON items.id = rounds.item
		WHERE rounds.item IN (`+itemsOfPlace+`) AND accepted = 1 GROUP BY rounds.person, items.kind ORDER BY rounds.person, items.kind`)
)

// itemsOfPlace selects the ids of all items of a team that are about a place: those whose subject it is, and those with a ref to it.
const itemsOfPlace = `SELECT id FROM items WHERE namespace = ?1 AND team = ?2 AND subject_type = ?3 AND subject_ref = ?4
	UNION SELECT id FROM refs JOIN items ON items.id = refs.item WHERE type = ?3 AND ref = ?4 AND namespace = ?1 AND team = ?2`

// What is said about items, and where.
var (
	listUnborn = stmt("list items without an object", `SELECT doc FROM items WHERE object IS NULL AND gone = 0 ORDER BY created_at, id`)

	listFeedback  = stmt("list feedback", `SELECT doc, n FROM feedback WHERE item = ? AND n > ? ORDER BY n`)
	writeFeedback = stmt("write feedback", `INSERT INTO feedback (item, key, moment, doc) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING n`)

	listRefs  = stmt("list refs", `SELECT doc FROM refs WHERE item = ? ORDER BY n`)
	writeRef  = stmt("write a ref", `INSERT INTO refs (item, type, ref, doc) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`)
	listAbout = stmt("list items about a place", `SELECT id FROM items WHERE id IN (`+itemsOfPlace+`) AND gone = 0
		ORDER BY created_at DESC, id DESC`)

	listThreads  = stmt("list chat threads", `SELECT doc FROM threads WHERE item = ? ORDER BY n`)
	writeThread  = stmt("link a chat thread", `INSERT INTO threads (item, person, channel, thread, ref, doc) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`)
	listInThread = stmt("list items of a chat thread", `SELECT items.id FROM threads JOIN items ON items.id = threads.item
		WHERE threads.ref = ? AND threads.person = ? AND threads.channel = ? AND items.namespace = ? AND items.team = ?
		ORDER BY threads.n DESC`)
)

// What crosses between the office and the world.
var (
	readEvent  = stmt("read an event", `SELECT doc FROM events WHERE namespace = ? AND team = ? AND source = ? AND id = ?`)
	firstEvent = stmt("take an event in", `INSERT INTO events (namespace, team, source, id, doc) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`)
	writeEvent = stmt("write an event", `INSERT INTO events (namespace, team, source, id, doc) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET doc = excluded.doc`)

	readAct  = stmt("read an act", `SELECT doc FROM acts WHERE namespace = ? AND team = ? AND id = ?`)
	listActs = stmt("list open acts", `SELECT doc FROM acts WHERE namespace = ? AND team = ? AND person = ? AND open = 1 ORDER BY created_at, n`)
	writeAct = stmt("write an act", `INSERT INTO acts (namespace, team, id, person, item, created_at, open, doc) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET person = excluded.person, item = excluded.item, created_at = excluded.created_at,
		open = excluded.open, doc = excluded.doc`)

	readReport  = stmt("read a report", `SELECT doc FROM reports WHERE id = ?`)
	listReports = stmt("list open reports", `SELECT doc FROM reports WHERE namespace = ? AND team = ? AND person = ? AND open = 1 ORDER BY created_at, n`)
	listDue     = stmt("list reports to send", `SELECT doc FROM reports WHERE namespace = ? AND team = ? AND person = ? AND due IS NOT NULL
		ORDER BY due, n LIMIT ?`)
	writeReport = stmt("write a report", `INSERT INTO reports (id, namespace, team, person, item, created_at, open, due, doc)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET namespace = excluded.namespace, team = excluded.team, person = excluded.person, item = excluded.item,
		created_at = excluded.created_at, open = excluded.open, due = excluded.due, doc = excluded.doc`)
)

// The world: tickets, pull requests, documents and remarks.
var (
	readTicket  = stmt("read a ticket", `SELECT doc FROM tickets WHERE namespace = ? AND team = ? AND key = ?`)
	listTickets = stmt("list tickets of assignees", `SELECT doc FROM tickets
		WHERE namespace = ? AND team = ? AND assignee IN (SELECT value FROM json_each(?)) AND open = 1 ORDER BY +key`)
	listSubTickets = stmt("list sub-tickets", `SELECT doc FROM tickets WHERE namespace = ? AND team = ? AND parent = ? AND parent <> '' ORDER BY key`)
	listPrefixes   = stmt("list prefixes of tickets", `SELECT DISTINCT prefix FROM tickets WHERE namespace = ? AND team = ? AND prefix IS NOT NULL ORDER BY prefix`)
	writeTicket    = stmt("write a ticket", `INSERT INTO tickets (namespace, team, key, prefix, assignee, parent, open, doc) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET assignee = excluded.assignee, parent = excluded.parent, open = excluded.open, doc = excluded.doc`)

	readPull        = stmt("read a pull request", `SELECT doc FROM pulls WHERE namespace = ? AND team = ? AND ref = ?`)
	listPulls       = stmt("list pull requests", `SELECT doc FROM pulls WHERE `+pullsThat+` ORDER BY ended, at DESC, ref LIMIT ?9`)
	listTicketPulls = stmt("list a ticket's pull requests", `SELECT doc FROM pulls WHERE ticket = ?7 AND `+pullsThat+` ORDER BY ended, at DESC, ref LIMIT ?9`)
	// What matches, beyond a limit too.
	countPulls       = stmt("count pull requests", `SELECT count(*) FROM pulls WHERE `+pullsThat)
	countTicketPulls = stmt("count a ticket's pull requests", `SELECT count(*) FROM pulls WHERE ticket = ?7 AND `+pullsThat)
	writePull        = stmt("write a pull request", `INSERT INTO pulls (namespace, team, ref, state, ended, at, author, ticket, repo, doc)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET state = excluded.state, ended = excluded.ended, at = excluded.at, author = excluded.author,
		ticket = excluded.ticket, repo = excluded.repo, doc = excluded.doc`)

	readDoc  = stmt("read a document", `SELECT doc FROM docs WHERE namespace = ? AND team = ? AND id = ?`)
	listDocs = stmt("list documents of a ticket", `SELECT doc FROM docs WHERE namespace = ? AND team = ? AND ticket = ? ORDER BY id`)
	writeDoc = stmt("write a document", `INSERT INTO docs (namespace, team, id, ticket, doc) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET ticket = excluded.ticket, doc = excluded.doc`)

	readRemark        = stmt("read a remark", `SELECT doc FROM remarks WHERE namespace = ? AND team = ? AND type = ? AND ref = ? AND id = ?`)
	latestRemarks     = stmt("list remarks", `SELECT doc FROM remarks WHERE namespace = ? AND team = ? AND type = ? AND ref = ? ORDER BY at DESC, n DESC LIMIT ?`)
	countRemarks      = stmt("count remarks", `SELECT count(*) FROM remarks WHERE namespace = ? AND team = ? AND type = ? AND ref = ?`)
	listThreadRemarks = stmt("list the remarks of a thread", `SELECT doc FROM remarks
		WHERE namespace = ? AND team = ? AND type = ? AND ref = ? AND thread = ? AND thread <> ''`)
	writeRemark = stmt("write a remark", `INSERT INTO remarks (namespace, team, type, ref, id, at, thread, moment, doc)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (namespace, team, type, ref, id) DO UPDATE SET at = excluded.at, thread = excluded.thread, moment = excluded.moment,
		doc = excluded.doc RETURNING n`)
)

// pullsThat are the pull requests that a filter lets through: ?3 and ?4 bound ended.
const pullsThat = `namespace = ?1 AND team = ?2 AND ended BETWEEN ?3 AND ?4 AND (?5 = '' OR state = ?5) AND (?6 = '' OR author = ?6)
	AND (?7 = '' OR ticket = ?7) AND (?8 = '' OR repo = ?8)`

// The past, and its index.
var (
	findFreeMoment = stmt("find a moment", `SELECT iif(EXISTS (SELECT 1 FROM moments WHERE n = ?1),
		(SELECT max(n) + 1 FROM moments WHERE n >= ?1 AND n < ?2), ?1)`)
	readMoment   = stmt("read a moment", `SELECT source, item, number FROM moments WHERE n = ?`)
	writeMoment  = stmt("write a moment", `INSERT INTO moments (n, source, item, number) VALUES (?, ?, ?, ?)`)
	deleteMoment = stmt("move a moment", `DELETE FROM moments WHERE n = ?`)

	readKnown      = stmt("read an item", `SELECT moment, digest, created_at, subject_type, subject_ref FROM items WHERE id = ?`)
	readTeamOf     = stmt("read an item's team", `SELECT namespace, team FROM items WHERE id = ?`)
	setRoundMoment = stmt("write a round", `UPDATE rounds SET moment = ? WHERE item = ? AND number = ?`)

	readJournal     = stmt("read a journal", `SELECT item, at, author, text FROM journal WHERE n = ?`)
	readRound       = stmt("read a round", `SELECT doc FROM rounds WHERE item = ? AND number = ?`)
	readRemarkN     = stmt("read a remark", `SELECT doc FROM remarks WHERE n = ?`)
	readKnownRemark = stmt("read a remark", `SELECT doc, moment FROM remarks WHERE namespace = ? AND team = ? AND type = ? AND ref = ? AND id = ?`)
	readFeedbackN   = stmt("read feedback", `SELECT doc FROM feedback WHERE n = ?`)

	noteMoment       = stmt("note a change", `INSERT INTO changes (n) VALUES (?)`)
	noteItemsMoments = stmt("note a change", `INSERT INTO changes (n)
		SELECT moment FROM journal WHERE item = ?1
		UNION ALL SELECT moment FROM rounds WHERE item = ?1 AND moment IS NOT NULL
		UNION ALL SELECT moment FROM feedback WHERE item = ?1 AND moment IS NOT NULL`)
	noteRemarks = stmt("note a change", `INSERT INTO changes (n)
		SELECT moment FROM remarks WHERE namespace = ? AND team = ? AND type = ? AND ref = ?`)
	noteAll      = stmt("note a change", `INSERT INTO changes (n) SELECT n FROM moments ORDER BY n`)
	listChanges  = stmt("list changes", `SELECT seq, n FROM changes WHERE seq > ? ORDER BY seq LIMIT ?`)
	boundChanges = stmt("list changes", `SELECT (SELECT min(seq) FROM changes), (SELECT max(seq) FROM changes)`)
	trimChanges  = stmt("trim changes", `DELETE FROM changes WHERE seq < ?`)
	haveRemarks  = stmt("look for remarks", `SELECT EXISTS (SELECT 1 FROM remarks WHERE namespace = ? AND team = ? AND type = ? AND ref = ?)`)
	// Those who have an item about the place, and those who hear it as a chat thread.
	listOwners = stmt("list whom a place concerns", `SELECT who FROM items
			WHERE namespace = ?1 AND team = ?2 AND subject_type = ?3 AND subject_ref = ?4 AND who <> ''
		UNION SELECT who FROM refs JOIN items ON items.id = refs.item
			WHERE type = ?3 AND ref = ?4 AND namespace = ?1 AND team = ?2 AND who <> ''
		UNION SELECT person FROM threads JOIN items ON items.id = threads.item
			WHERE ?3 = 'chat_thread' AND ref = ?4 AND namespace = ?1 AND team = ?2 ORDER BY 1`)
	listOwnAbout = stmt("list a person's items about a place", `SELECT id FROM items WHERE id IN (`+itemsOfPlace+`) AND who = ?5`)
)

// The index, a file of its own.
var (
	readState    = indexStmt("read the index", `SELECT store, seq FROM state WHERE only = 1`)
	writeState   = indexStmt("index", `INSERT INTO state (only, store, seq) VALUES (1, ?, ?)`)
	advanceState = indexStmt("index", `UPDATE state SET seq = ? WHERE only = 1`)
	writePast    = indexStmt("index", `INSERT OR REPLACE INTO past (rowid, text) VALUES (?, ?)`)
	dropPast     = indexStmt("index", `DELETE FROM past WHERE rowid = ?`)
	clearPast    = indexStmt("clear an index", `INSERT INTO past (past) VALUES ('delete-all')`)
	searchPast   = indexStmt("search", `SELECT rowid, first_match(past) FROM past WHERE past MATCH ?1 AND rowid >= ?2 ORDER BY rowid DESC`)
	cutExcerpt   = indexStmt("search", `SELECT excerpt(past, ?1, ?2) FROM past WHERE rowid = ?3`)
)
