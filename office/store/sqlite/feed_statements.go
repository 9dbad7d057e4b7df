package sqlite

// This file has every statement of the feed but its schema.

var (
	readFeed    = feedStmt("read whose feed it is", `SELECT store, active FROM feed WHERE only = 1`)
	writeFeed   = feedStmt("begin a feed", `INSERT INTO feed (only, store, active) VALUES (1, ?, 0)`)
	activateLog = feedStmt("change logs", `UPDATE feed SET active = ? WHERE only = 1`)

	findTeam      = feedStmt("find a team", `SELECT n, bytes FROM teams WHERE namespace = ? AND team = ?`)
	readTeamBytes = feedStmt("read a team", `SELECT bytes FROM teams WHERE n = ?`)
	addTeam       = feedStmt("add a team", `INSERT INTO teams (namespace, team, bytes) VALUES (?, ?, 0)`)
	sizeTeam      = feedStmt("write a team's size", `UPDATE teams SET bytes = ? WHERE n = ?`)

	findFeedSession = feedStmt("find a session", `SELECT n FROM sessions WHERE id = ?`)
	nameFeedSession = feedStmt("read a session", `SELECT id FROM sessions WHERE n = ?`)
	loadFeedSession = feedStmt("read a session", `SELECT n, team, first, latest, bytes, closed FROM sessions JOIN heads ON heads.session = n
		WHERE id = ?`)
	addFeedSession = feedStmt("add a session", `INSERT INTO sessions (id, team) VALUES (?, ?)`)
	writeHead      = feedStmt("write a session", `INSERT INTO heads (session, first, latest, bytes, closed) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET first = excluded.first, latest = excluded.latest, bytes = excluded.bytes, closed = excluded.closed`)
	lastHeads = feedStmt("read the last sessions", `SELECT session, first, latest FROM heads ORDER BY session DESC LIMIT ?`)

	loadSpool  = feedStmt("read a spool", `SELECT n, seq FROM spools WHERE session = ? AND spool = ?`)
	readSpool  = feedStmt("read a spool", `SELECT spool, seq FROM spools WHERE n = ?`)
	addSpool   = feedStmt("add a spool", `INSERT INTO spools (session, spool, seq) VALUES (?, ?, 0)`)
	writeSpool = feedStmt("write a spool", `UPDATE spools SET seq = ? WHERE n = ?`)
	findSpool  = feedStmt("read a spool", `SELECT seq FROM spools WHERE session = (SELECT n FROM sessions WHERE id = ?) AND spool = ?`)

	writeMark = feedStmt("write a mark", `INSERT INTO marks (session, mark, place) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`)
	findMark  = feedStmt("look for a mark", `SELECT place FROM marks WHERE session = (SELECT n FROM sessions WHERE id = ?) AND mark = ?`)

	writeClosing = feedStmt("write a closed session", `INSERT INTO closings (team, at, session) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`)
	firstClosing = feedStmt("find a closed session", `SELECT at, session FROM closings WHERE team = ? ORDER BY at, session LIMIT 1`)
	dropClosing  = feedStmt("drop a closed session", `DELETE FROM closings WHERE team = ? AND at = ? AND session = ?`)

	writePack = feedStmt("pack records", `INSERT INTO packs (n, records, bytes, deflated, data) VALUES (?, ?, ?, ?, ?)`)
	lastPacks = feedStmt("read packs", `SELECT n, records, bytes, deflated, data FROM packs WHERE n > ? AND n <= ? ORDER BY n DESC`)
	// From the pack on that has the first of them in it.
	readPacks = feedStmt("read packs", `SELECT n, records, bytes, deflated, data FROM packs
		WHERE n >= coalesce((SELECT n FROM packs WHERE n > ?1 AND n <= ?2 ORDER BY n DESC LIMIT 1), ?2) AND n <= ?3 ORDER BY n`)
	sizePacks = feedStmt("measure packs", `SELECT n, records, bytes FROM packs WHERE n >= ? AND n <= ? ORDER BY n LIMIT ?`)
	dropPacks = feedStmt("remove packs", `DELETE FROM packs WHERE n >= ? AND n <= ?`)
	packEnds  = feedStmt("look for a session's packs", `SELECT (SELECT n FROM packs WHERE n > ?1 AND n <= ?2 ORDER BY n LIMIT 1),
		(SELECT n + records - 1 FROM packs WHERE n > ?1 AND n <= ?2 ORDER BY n DESC LIMIT 1)`)

	// The two logs.
	writeLog = [2]*statement{
		feedStmt("write a record", `INSERT INTO log0 (session, place, spool, seq, json) VALUES (?, ?, ?, ?, ?)`),
		feedStmt("write a record", `INSERT INTO log1 (session, place, spool, seq, json) VALUES (?, ?, ?, ?, ?)`),
	}
	readLog = [2]*statement{
		feedStmt("read the log", `SELECT session, place, spool, seq, json FROM log0 ORDER BY n`),
		feedStmt("read the log", `SELECT session, place, spool, seq, json FROM log1 ORDER BY n`),
	}
	clearLog = [2]*statement{
		feedStmt("empty the log", `DELETE FROM log0`),
		feedStmt("empty the log", `DELETE FROM log1`),
	}
)

// maxPlace is the last place that a session can give, maxSession the last session of a feed.
const (
	maxPlace   = 1<<32 - 1
	maxSession = 1<<31 - 1
)

// recordNumber is the number that a pack has which begins with a session's record at a place.
func recordNumber(session, place int64) int64 { return session<<32 | place }
