// This module shows work items by person: what runs, what waits, what is queued, what is done.

import { board, columns } from './board.js';
import { h } from './dom.js';
import { age, cost, count } from './format.js';
import { about, badge, problemBox, sessions } from './list.js';
import { Poll } from './poll.js';

/** How many sessions the board is made of. */
const wanted = 400;

export class WorkPage {
  /** @param {{namespace: string, denied: (reason?: string) => void}} options */
  constructor({ namespace, denied }) {
    document.title = 'Work · Bullpen';
    this.namespace = namespace;
    this.denied = denied;
    this.content = h('div', null, h('p', { class: 'dim' }, 'Loading…'));
    this.root = h('div', { class: 'page wide' }, h('div', { class: 'page-head' }, h('h1', null, 'Work')), this.content);
    this.poll = new Poll((signal) => this.load(signal));
  }

  close() {
    this.poll.close();
  }

  /** @param {AbortSignal} signal */
  async load(signal) {
    try {
      const found = await sessions({ namespace: this.namespace }, wanted, signal);
      if (!signal.aborted) this.show(found);
    } catch (problem) {
      if (signal.aborted) return;
      if (problem.status === 401) this.denied();
      else this.content.replaceChildren(problemBox(problem, this.namespace));
    }
  }

  show({ sessions: list, more }) {
    const rows = board(list);
    const shown = JSON.stringify(rows.map((r) => [r.person, r.hidden, r.cells.map((c) => c.map((s) => [s.id, s.updated_at]))]));
    const minute = Math.floor(Date.now() / 60_000);
    if (shown === this.shown && minute === this.minute) return; // the reader's focus stays
    this.shown = shown;
    this.minute = minute;
    const focused = document.activeElement?.getAttribute?.('href');
    this.content.replaceChildren(
      rows.length ? h('div', { class: 'board' }, rows.map(person)) : h('div', { class: 'empty' }, h('p', null, 'There are no work items here yet.')),
      more && h('p', { class: 'dim' }, `Only the latest ${list.length} sessions are on the board.`));
    if (focused) [...this.content.querySelectorAll('a')].find((a) => a.getAttribute('href') === focused)?.focus({ preventScroll: true });
  }
}

function person(row) {
  const name = row.person || 'Nobody yet';
  const id = `person-${name.replace(/[^a-z0-9]/gi, '-')}`;
  return h('section', { class: 'board-row', 'aria-labelledby': id },
    h('h2', { id }, h('span', { class: 'avatar', 'aria-hidden': 'true' }, Array.from(name)[0].toUpperCase()), name),
    columns.map((column, i) => h('div', { class: `board-cell ${row.cells[i].length ? '' : 'empty-cell'}` },
      h('h3', null, column.name, h('span', { class: 'dim' }, ` ${row.cells[i].length + (i === 3 ? row.hidden : 0)}`)),
      row.cells[i].length > 0 && h('ul', null, row.cells[i].map(card)),
      i === 3 && row.hidden > 0 &&
        h('a', { class: 'dim', href: `#/sessions?${new URLSearchParams({ person: row.person, state: 'done' })}` }, `${row.hidden} more`))));
}

function card(session) {
  const a = about(session);
  const running = a.state === 'active';
  return h('li', { class: `card card-${a.state}` },
    h('a', { href: `#/s/${encodeURIComponent(session.id)}` }, a.title || a.item),
    h('span', { class: 'row-item' }, a.item),
    running && session.summary?.description && h('p', { class: 'dim clamp' }, session.summary.description),
    h('span', { class: 'card-facts' }, !['active', 'queued'].includes(a.state) && badge(a.state),
      session.tokens?.total > 0 && h('span', null, `${count(session.tokens.total)} tokens`),
      session.cost?.total > 0 && h('span', null, cost(session.cost.total)),
      h('span', null, age(session.created_at, Date.now()))));
}
