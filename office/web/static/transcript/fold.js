// This module makes what a page shows of what the stream of a session tells: records become blocks, in order, each record once. It is pure:
// it knows no page, no network and no clock. What single records mean is in platform.js, claude.js, codex.js and other.js.

import { Live } from './live.js';
import { platform } from './platform.js';
import { claude } from './claude.js';
import { codex } from './codex.js';
import { other, unknown } from './other.js';

/**
 * A block is one thing to show. Its key stays the same while it changes; rev counts its changes.
 * @typedef {{key: string, kind: string, seq: number, at: string, rev: number, [field: string]: any}} Block
 */

/** How much of a session is kept in memory, in records and in characters. What is older is asked for again when it is wanted. */
export const limits = { records: 5000, trimTo: 4000, size: 48 << 20 };

/** What a page knows of a session's feed. */
export class Transcript {
  constructor() {
    /** The records in memory, without a gap but for what is not kept any more, and how many characters each has. */
    this.records = [];
    this.sizes = [];
    this.size = 0;
    /** The place of the last record that was seen. */
    this.cursor = 0;
    /** The first place that the office still has; 0 where it told of none. */
    this.earliest = 0;
    /** The session object, and the messages that wait for their turn. */
    this.session = null;
    this.live = new Live();
    /** Counts how often the blocks were made anew. */
    this.generation = 0;
    this.restart();
  }

  /** Forgets what was made of the records, not the records. */
  restart() {
    /** @type {Block[]} */
    this.blocks = [];
    this.generation++;
    /** The uses of tools by their ids, who said which message, who asked for which turn, and how rate limits stand. */
    this.calls = new Map();
    this.told = new Map();
    this.askers = new Map();
    this.limits = new Map();
    /** The step of the environment's preparation that runs. */
    this.step = null;
    this.last = 0;
    this.replaying = false;
  }

  /** The place of the first record in memory, one above the cursor where there is none. */
  get first() {
    return this.records.length ? this.records[0].feed_seq : this.cursor + 1;
  }

  /**
   * Takes a frame. Frames of types that nobody knows are passed over.
   * @param {any} frame
   * @param {number} size in characters
   */
  frame(frame, size) {
    switch (frame.type) {
      case 'snapshot':
        this.session = frame.session;
        this.earliest = frame.earliest_feed_seq || 0;
        this.live.join(frame.session);
        break;
      case 'records_append':
        this.append(frame.records, size);
        break;
      case 'session':
        this.session = frame.session;
        if (over(frame.session?.turn)) this.live.turnOver(frame.session.turn.id);
        break;
      case 'delta':
        this.live.write(frame);
        break;
    }
  }

  /**
   * Takes records that follow. What was seen already is passed over.
   * @param {any[]} records
   * @param {number} size of all of them, in characters
   */
  append(records, size) {
    const each = size / Math.max(1, records.length);
    for (const record of records) {
      if (record.feed_seq <= this.cursor) continue;
      this.keep(record, each);
      this.cursor = record.feed_seq;
      this.fold(record);
    }
  }

  keep(record, size) {
    this.records.push(record);
    this.sizes.push(size);
    this.size += size;
  }

  /**
   * Takes records that come before those in memory.
   * @param {any[]} records
   * @param {number} size of all of them, in characters
   */
  prepend(records, size) {
    const before = records.filter((r) => r.feed_seq < this.first);
    const each = size / Math.max(1, records.length);
    this.records = before.concat(this.records);
    this.sizes = before.map(() => each).concat(this.sizes);
    this.size += each * before.length;
    this.again();
  }

  /** Lets the oldest records go where there are too many; it says whether there were. */
  trim() {
    if (this.records.length <= limits.records && this.size <= limits.size) return false;
    let drop = Math.max(0, this.records.length - limits.trimTo);
    let size = this.sizes.slice(drop).reduce((a, b) => a + b, 0);
    while (drop < this.records.length - 1 && size > limits.size / 2) size -= this.sizes[drop++];
    this.records = this.records.slice(drop);
    this.sizes = this.sizes.slice(drop);
    this.size = size;
    this.again();
    return true;
  }

  /** Makes the blocks anew. What is live is not touched by what was seen before. */
  again() {
    this.restart();
    this.replaying = true;
    for (const record of this.records) this.fold(record);
    this.replaying = false;
  }

  /** @param {any} record */
  fold(record) {
    if (this.last && record.feed_seq > this.last + 1) {
      this.now = { seq: record.feed_seq, at: record.created_at, made: 0 };
      this.add('gap', { from: this.last + 1, to: record.feed_seq - 1 }, 'gap');
    }
    this.last = record.feed_seq;
    this.now = { seq: record.feed_seq, at: record.created_at, made: 0 };
    const payload = record.payload && typeof record.payload === 'object' ? record.payload : {};
    try {
      read(this, record, payload);
    } catch {
      unknown(this, record); // a payload that is otherwise than any schema says
    }
  }

  /**
   * Adds a block for the record that is being read.
   * @param {string} kind
   * @param {Record<string, any>} fields
   * @param {string} [key] a name beside the record's place
   * @returns {Block}
   */
  add(kind, fields, key) {
    const block = { ...fields, key: `${this.now.seq}.${key ?? this.now.made++}`, kind, seq: this.now.seq, at: this.now.at, rev: 0 };
    this.blocks.push(block);
    return block;
  }

  /** @param {Block} block */
  touch(block) {
    block.rev++;
  }

  /** The last block, if it is of that kind and fits. */
  lastOf(kind, fits) {
    const block = this.blocks[this.blocks.length - 1];
    return block && block.kind === kind && fits(block) ? block : null;
  }

  /** A text of the runtime is complete. */
  said(text, sub) {
    if (!sub && !this.replaying) this.live.wrote(text);
    if (text.trim()) this.add('text', { text, sub });
  }

  /** A thought of the runtime is complete. */
  thinks(text, sub) {
    if (!sub && !this.replaying) this.live.thoughtOver();
    if (text.trim()) this.add('thinking', { text, sub });
  }

  /**
   * A tool is used.
   * @param {string} id
   * @param {{name: string, argument: string, input?: any}} call
   * @param {boolean} sub
   */
  used(id, call, sub) {
    if (!this.replaying && !sub) this.live.thoughtOver();
    const block = this.add('tool', { ...call, sub, result: null });
    if (id) this.calls.set(id, block);
    return block;
  }

  /**
   * A tool gave something.
   * @param {string} id
   * @param {{text: string, failed: boolean, why?: string}} result
   * @param {boolean} sub
   */
  came(id, result, sub) {
    const block = this.calls.get(id);
    if (!block) {
      this.add('tool', { name: 'Result', argument: 'of a tool call further up', sub, result });
      return;
    }
    block.result = result;
    block.took = Date.parse(this.now.at) - Date.parse(block.at);
    this.touch(block);
  }

  /**
   * A line about what happens.
   * @param {'dim' | 'warn' | 'bad'} tone
   * @param {string} text
   * @param {string} [more]
   */
  note(tone, text, more) {
    return this.add('note', { tone, text, more: more || '' });
  }

  /**
   * A rate limit is told of; one that refuses or is nearly used up is worth a line, once.
   * @param {{name: string, status: string, used: number | null, resets: number | null}} limit used is a part of 1, resets in seconds since 1970
   */
  limit(limit) {
    const near = limit.used !== null && limit.used >= 0.8;
    const refused = limit.status !== '' && !limit.status.startsWith('allowed');
    const state = refused ? 'refused' : near ? 'near' : 'fine';
    const before = this.limits.get(limit.name) ?? 'fine';
    this.limits.set(limit.name, state);
    if (before === state) return;
    this.add('limit', { ...limit, state });
  }
}

/** Whether a turn has come to its end. */
const over = (turn) => Boolean(turn) && ['completed', 'failed', 'stopped', 'cancelled'].includes(turn.status);

/** A string of a payload, empty where it is none. */
export const str = (value) => (typeof value === 'string' ? value : '');

/** A number of a payload, null where it is none. */
export const num = (value) => (typeof value === 'number' && Number.isFinite(value) ? value : null);

/** A list of a payload, empty where it is none. */
export const list = (value) => (Array.isArray(value) ? value : []);

function read(t, record, payload) {
  switch (record.source) {
    case 'lifecycle':
      return platform(t, record, payload);
    case 'claude_code':
      return claude(t, record, payload);
    case 'codex':
      return codex(t, record, payload);
  }
  return other(t, record, payload);
}
