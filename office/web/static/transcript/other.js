// This module reads records that have no schema: what a program of the command runtime prints, what the agent itself notes, and what nobody
// knows. It is pure.

import { list, num, str } from './fold.js';
import { plural } from '../format.js';

/** The most lines of one block of output that are kept; the middle of what is longer is left out. */
const mostLines = 2000;

/**
 * @param {import('./fold.js').Transcript} t
 * @param {any} record
 * @param {any} payload
 */
export function other(t, record, payload) {
  const type = record.record_type;
  if ((type === 'stdout' || type === 'stderr') && Array.isArray(payload.lines)) {
    const block = t.lastOf('output', (b) => b.lines.length < mostLines) || t.add('output', { lines: [], more: 0 });
    return lines(t, block, payload.lines, type);
  }
  if (type === 'records_dropped') return t.note('warn', `${plural(num(payload.count) ?? 0, 'record')} missing here: the agent's disk was full.`);
  if (record.source === 'command' && type === 'result') {
    return t.note('dim', `The program reports ${str(payload.status) || 'its end'}${payload.summary ? `: ${str(payload.summary)}` : ''}`);
  }
  return unknown(t, record);
}

/**
 * Adds lines to a block of output.
 * @param {import('./fold.js').Transcript} t
 * @param {any} block
 * @param {any[]} said
 * @param {string} stream
 */
export function lines(t, block, said, stream) {
  for (const line of list(said)) block.lines.push({ stream, text: str(line) });
  const over = block.lines.length - mostLines;
  if (over > 0) {
    block.lines.splice(mostLines / 2, over);
    block.more += over;
  }
  t.touch(block);
}

/**
 * Shows that there is a record that nobody can read, and what it has.
 * @param {import('./fold.js').Transcript} t
 * @param {any} record
 */
export function unknown(t, record) {
  t.add('unknown', { source: str(record.source), type: str(record.record_type), payload: record.payload });
}
