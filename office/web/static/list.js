// This module reads lists of sessions, page by page, for the pages that show them, and has what both of these say.

import { ask, query } from './api.js';
import { h } from './dom.js';

const pageSize = 50;

/** The most sessions that one page shows: filters find the rest. */
export const most = 1000;

/**
 * Reads the first sessions of a list, as many as are wanted.
 * @param {Record<string, string>} filter
 * @param {number} wanted
 * @param {AbortSignal} signal
 * @returns {Promise<{sessions: any[], more: boolean}>}
 */
export async function sessions(filter, wanted, signal) {
  const found = [];
  let cursor = '';
  for (let page = 0; page < Math.ceil(most / pageSize) && found.length < wanted; page++) {
    const answer = await ask('GET', `/v1/sessions${query({ ...filter, limit: Math.min(200, wanted - found.length), cursor })}`, { signal });
    found.push(...answer.sessions);
    cursor = answer.next_cursor || '';
    if (!cursor) break;
  }
  return { sessions: found, more: cursor !== '' };
}

export { pageSize };

/** What Bullpen says of a session in words of its own. */
export const about = (session) => {
  const m = session.metadata || {};
  return {
    person: m.person || '', item: m.work_item || '', title: m.title || '', state: m.state || '', namespace: m.namespace || '', kind: m.kind || '',
  };
};

/** The marks of states, of items and of turns: nobody has to tell them by their colors. */
const marks = {
  active: '●', waiting: '◐', blocked: '▲', queued: '○', done: '✓', canceled: '–',
  running: '●', pending: '○', completed: '✓', failed: '▲', stopped: '■', cancelled: '–',
};

/**
 * A state with its mark.
 * @param {string} state
 */
export function badge(state) {
  const known = Object.hasOwn(marks, state);
  return h('span', { class: `badge state-${known ? state : 'other'}` },
    h('span', { 'aria-hidden': 'true' }, known ? marks[state] : '·'), ' ', state || 'unknown');
}

/**
 * Says that something is wrong, and what to do.
 * @param {any} problem
 * @param {string} namespace
 */
export function problemBox(problem, namespace) {
  const hint = problem.status === 403 &&
    h('p', null, 'Ask for a role with the verbs ', h('code', null, 'get'), ' and ', h('code', null, 'list'), ' on ', h('code', null, 'workitems/session'),
      ' of ', h('code', null, 'bullpen.dev'), namespace ? [' in ', h('code', null, namespace)] : ', or name a namespace above', '.');
  return h('div', { class: 'problem', role: 'alert' },
    h('strong', null, problem.status === 403 ? 'You may not list these sessions.' : 'This cannot be shown now.'), h('p', null, problem.message), hint);
}
