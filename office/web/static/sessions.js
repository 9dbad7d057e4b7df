// This module shows the sessions of a namespace as a table, the latest first.

import { announce, h } from './dom.js';
import { age, cost, count, fullTime, plural } from './format.js';
import { about, badge, most, pageSize, problemBox, sessions } from './list.js';
import { Poll } from './poll.js';

const states = ['active', 'waiting', 'blocked', 'queued', 'done', 'canceled'];

export class SessionsPage {
  /** @param {{namespace: string, filters: URLSearchParams, denied: (reason?: string) => void}} options */
  constructor({ namespace, filters, denied }) {
    document.title = 'Sessions · Bullpen';
    this.namespace = namespace;
    this.denied = denied;
    this.wanted = pageSize;
    this.rows = new Map();
    this.person = h('input', {
      id: 'person', name: 'person', list: 'people', autocomplete: 'off', spellcheck: 'false', value: filters.get('person') || '', placeholder: 'anybody',
    });
    this.state = h('select', { id: 'state', name: 'state' }, h('option', { value: '' }, 'any'), states.map((s) => h('option', { value: s }, s)));
    this.state.value = states.includes(filters.get('state')) ? filters.get('state') : '';
    this.people = h('datalist', { id: 'people' });
    this.body = h('tbody');
    this.table = h('table', { class: 'sessions', hidden: true },
      h('caption', { class: 'visually-hidden' }, 'Sessions, the latest first'),
      h('thead', null, h('tr', null, ['Work item', 'Person', 'State', 'Turn', 'Tokens', 'Cost', 'Age'].map((name, i) =>
        h('th', { scope: 'col', class: i > 3 ? 'number' : null }, name)))), this.body);
    this.message = h('div', { class: 'message' }, h('p', { class: 'dim' }, 'Loading…'));
    this.more = h('button', { type: 'button', class: 'quiet', hidden: true, onclick: () => { this.wanted += pageSize; this.poll.now(); } }, 'Show more');
    this.root = h('div', { class: 'page' },
      h('div', { class: 'page-head' }, h('h1', null, 'Sessions'),
        h('form', {
          class: 'filters', role: 'search', 'aria-label': 'Filter the sessions', onchange: () => this.filter(),
          onsubmit: (event) => { event.preventDefault(); this.filter(); },
        },
          h('label', { for: 'person' }, 'Person'), this.person, this.people, h('label', { for: 'state' }, 'State'), this.state)),
      this.message, this.table, this.more);
    this.poll = new Poll((signal) => this.load(signal));
  }

  close() {
    this.poll.close();
  }

  filter() {
    const q = new URLSearchParams();
    for (const field of [this.person, this.state]) if (field.value.trim()) q.set(field.name, field.value.trim());
    history.replaceState(null, '', `#/sessions${q.size ? `?${q}` : ''}`);
    this.wanted = pageSize;
    this.poll.now();
  }

  /** @param {AbortSignal} signal */
  async load(signal) {
    const filter = { namespace: this.namespace, person: this.person.value.trim(), state: this.state.value };
    try {
      const found = await sessions(filter, this.wanted, signal);
      if (!signal.aborted) this.show(found, filter);
    } catch (problem) {
      if (signal.aborted) return;
      if (problem.status === 401) this.denied();
      else this.message.replaceChildren(problemBox(problem, this.namespace));
      if (problem.status === 403) this.show({ sessions: [], more: false }, null);
    }
  }

  show({ sessions: list, more }, filter) {
    const now = Date.now();
    this.table.hidden = list.length === 0;
    this.more.hidden = !more || this.wanted >= most;
    if (filter && list.length) this.message.replaceChildren();
    if (filter && !list.length) this.message.replaceChildren(this.empty(filter));
    this.people.replaceChildren(...[...new Set(list.map((s) => about(s).person))].filter(Boolean).sort().map((p) => h('option', { value: p })));
    const seen = new Set();
    let next = this.body.firstChild;
    for (const session of list) {
      seen.add(session.id);
      let row = this.rows.get(session.id);
      if (!row) {
        row = rowOf();
        this.rows.set(session.id, row);
      }
      fill(row, session, now, this.namespace === '');
      if (row.element === next) next = next.nextSibling;
      else this.body.insertBefore(row.element, next);
    }
    for (const [id, row] of this.rows) {
      if (seen.has(id)) continue;
      row.element.remove();
      this.rows.delete(id);
    }
    if (filter) announce(plural(list.length, 'session'));
  }

  empty(filter) {
    const where = this.namespace ? ['namespace ', h('code', null, this.namespace)] : 'any namespace';
    if (filter.person || filter.state) return h('div', { class: 'empty' }, h('p', null, 'No session fits the filter in ', where, '.'));
    return h('div', { class: 'empty' }, h('p', null, 'There are no sessions in ', where, '.'),
      h('p', { class: 'dim' }, 'A session begins with a work item: ', h('code', null, 'kubectl apply'), ' one, and it appears here.'));
  }
}

/** A row, whose cells are filled anew where they differ: focus and selection stay. */
function rowOf() {
  const title = h('a', { class: 'row-title' });
  const item = h('span', { class: 'row-item' });
  const number = () => h('td', { class: 'number' });
  const cells = { person: h('td'), state: h('td'), turn: h('td'), tokens: number(), cost: number(), age: number() };
  return { title, item, cells, shown: {}, element: h('tr', null, h('th', { scope: 'row' }, title, item), Object.values(cells)) };
}

function fill(row, session, now, everywhere) {
  const a = about(session);
  const set = (name, value, apply) => {
    if (row.shown[name] === value) return;
    row.shown[name] = value;
    apply(value);
  };
  set('href', `#/s/${encodeURIComponent(session.id)}`, (v) => row.title.setAttribute('href', v));
  set('title', a.title || a.item || session.id, (v) => { row.title.textContent = v; });
  set('item', everywhere ? `${a.namespace}/${a.item}` : a.item, (v) => { row.item.textContent = v; });
  set('person', a.person || '–', (v) => { row.cells.person.textContent = v; });
  set('state', a.state, (v) => row.cells.state.replaceChildren(badge(v)));
  set('turn', session.turn ? `${session.turn.index + 1} ${session.turn.status}` : '–', (v) => { row.cells.turn.textContent = v; });
  set('tokens', session.tokens?.total ? count(session.tokens.total) : '–', (v) => { row.cells.tokens.textContent = v; });
  set('cost', cost(session.cost?.total), (v) => { row.cells.cost.textContent = v; });
  set('age', age(session.created_at, now), (v) => { row.cells.age.textContent = v; });
  set('at', session.created_at, (v) => { row.cells.age.title = fullTime(v); });
}
