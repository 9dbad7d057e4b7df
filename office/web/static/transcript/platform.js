// This module reads the platform's own records: messages, the environment's preparation, turns. It is pure.

import { list, num, str } from './fold.js';
import { lines, other } from './other.js';
import { pretty } from '../json.js';

const readers = {
  message_received: received,
  message_delivered: () => {},
  message_requeued: requeued,
  environment_phase: phase,
  environment_output: output,
  environment_ready: ready,
  turn_started: turnStarted,
  turn_ended: turnEnded,
  session_closed: (t) => {
    endStep(t);
    t.note('dim', 'The session was closed.');
  },
};

/**
 * @param {import('./fold.js').Transcript} t
 * @param {any} record
 * @param {any} payload
 */
export function platform(t, record, payload) {
  if (!Object.hasOwn(readers, record.record_type)) return other(t, record, payload);
  return readers[record.record_type](t, payload, record);
}

/** A message came. Runtimes repeat it later, which is not shown again. */
function received(t, m) {
  const who = str(m.author) || 'somebody';
  t.told.set(str(m.message_id), who);
  asks(t, m.turn_id, who);
  t.add('message', { who, text: str(m.body), last: m.closes_session === true });
}

function asks(t, turn, who) {
  if (typeof turn !== 'string') return;
  const names = t.askers.get(turn) || [];
  if (!names.includes(who)) t.askers.set(turn, [...names, who]);
}

function requeued(t, m) {
  const who = t.told.get(str(m.message_id));
  if (who) asks(t, m.requeued_turn_id, who);
  t.note('warn', `The turn ended before ${who ? `the message of ${who}` : 'a message'} was answered; it waits for the next turn.`);
}

function turnStarted(t, m) {
  endStep(t);
  t.add('turn', { index: num(m.turn_index) ?? 0, askers: t.askers.get(str(m.turn_id)) || [] });
}

function turnEnded(t, m) {
  endStep(t);
  if (!t.replaying) t.live.turnOver(str(m.turn_id));
  t.add('turn-end', {
    index: num(m.turn_index) ?? 0, status: str(m.status), reason: str(m.reason), detail: str(m.detail), ms: num(m.duration_ms),
  });
}

/** The step of a phase, made where it is new. */
function stepOf(t, m) {
  const title = [str(m.phase) || 'step', str(m.step)].filter(Boolean).join(' · ');
  if (!t.step || t.step.title !== title) {
    endStep(t);
    t.step = t.add('step', { title, status: 'started', ms: null, detail: '', lines: [], more: 0 });
  }
  return t.step;
}

/** A step that another one follows is over, also where nobody said so. */
function endStep(t) {
  if (t.step && t.step.status === 'started') {
    t.step.status = 'ended';
    t.touch(t.step);
  }
  t.step = null;
}

function phase(t, m) {
  const step = stepOf(t, m);
  const status = str(m.status) || 'ended';
  step.status = status;
  step.ms = num(m.duration_ms) ?? step.ms;
  if (m.detail && typeof m.detail === 'object') step.detail = details(m.detail);
  t.touch(step);
  if (status !== 'started') t.step = null;
}

/** What a step says of itself, a name and a value a line. */
function details(detail) {
  return Object.entries(detail)
    .filter(([, value]) => value !== null && value !== '')
    .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : pretty(value)}`)
    .join('\n');
}

function output(t, m) {
  lines(t, stepOf(t, m), list(m.lines), str(m.stream));
}

function ready(t, m) {
  endStep(t);
  t.add('ready', { ms: num(m.duration_ms), repositories: list(m.repositories).map(str).filter(Boolean) });
}
