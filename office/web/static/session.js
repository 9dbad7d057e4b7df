// This module shows one session, live: its facts, its transcript, and the box to speak to it.

import { token } from './account.js';
import { ask, query, sessionPath } from './api.js';
import { announce, h, setText } from './dom.js';
import { facts, git } from './facts.js';
import { about, badge, problemBox } from './list.js';
import { Speak } from './speak.js';
import { Stream } from './stream.js';
import { tail } from './tail.js';
import { Transcript } from './transcript/fold.js';
import { TranscriptView } from './transcript/view.js';

/** How many records are wanted at first, and with each step back. */
const first = 1000;
const step = 500;

export class SessionPage {
  /** @param {{id: string, denied: (reason?: string) => void}} options */
  constructor({ id, denied }) {
    document.title = 'Session · Bullpen';
    this.id = id;
    this.denied = denied;
    this.abort = new AbortController();
    this.transcript = new Transcript();
    this.view = new TranscriptView(this.transcript, () => this.earlier());
    this.speak = new Speak({ id, denied });
    this.title = h('h1', null, 'Session');
    this.item = h('p', { class: 'row-item' });
    this.states = h('span', { class: 'states' });
    this.connection = h('span', { class: 'connection', role: 'status' }, 'connecting…');
    this.facts = h('dl', { class: 'facts' });
    this.git = h('div', { class: 'git' });
    this.banner = h('div', { class: 'banner', hidden: true });
    this.root = h('div', { class: 'session' },
      h('header', { class: 'session-head' },
        h('div', { class: 'session-title' }, this.title, this.item), h('div', { class: 'session-acts' }, this.states, this.connection, this.speak.stop)),
      h('aside', { 'aria-label': 'About this session' }, this.facts, this.git),
      h('div', { class: 'session-main' }, this.banner, this.view.root, this.speak.form), this.speak.confirm);
    this.clock = setInterval(() => this.show(), 30_000);
    this.begin();
  }

  close() {
    this.abort.abort();
    clearInterval(this.clock);
    clearTimeout(this.retry);
    this.stream?.close();
  }

  /** Looks at the session first: what is wrong with it is told better here than by a stream, and a long one is read from near its end. */
  async begin() {
    const signal = this.abort.signal;
    try {
      this.take(await ask('GET', sessionPath(this.id), { signal }));
      const more = async (after) => (await ask('GET', sessionPath(this.id, `/records${query({ cursor: after, limit: 1 })}`), { signal })).records.length > 0;
      this.transcript.cursor = await tail(more, first);
    } catch (problem) {
      if (!signal.aborted) this.failed(problem);
      return;
    }
    if (!signal.aborted) this.connect();
  }

  failed(problem) {
    if (problem.status === 401) {
      this.denied();
      return;
    }
    this.tell(problemBox(problem, ''));
    setText(this.connection, '');
    if (problem.status === 0 || problem.status >= 500) this.retry = setTimeout(() => this.begin(), 5000);
  }

  connect() {
    this.banner.hidden = true;
    this.stream = new Stream(sessionPath(this.id, '/stream'), token(), {
      cursor: () => this.transcript.cursor,
      frame: (frame, size) => this.frame(frame, size),
      state: (state, until) => this.connected(state, until),
      end: (verdict, reason) => this.ended(verdict, reason),
    });
  }

  frame(frame, size) {
    this.transcript.frame(frame, size);
    if (frame.type === 'snapshot' || frame.type === 'session') this.take(frame.session);
    if (this.view.following || this.transcript.records.length > 20_000) this.transcript.trim();
    this.view.changed();
  }

  connected(state, until) {
    this.connection.className = `connection connection-${state}`;
    if (state === 'waiting') setText(this.connection, `not connected, next try in ${Math.max(1, Math.round((until - Date.now()) / 1000))} s`);
    else setText(this.connection, state === 'live' ? 'live' : 'connecting…');
  }

  async ended(verdict, reason) {
    this.transcript.live.clear();
    this.view.changed();
    this.connection.className = 'connection';
    setText(this.connection, verdict === 'over' ? 'ended' : 'not connected');
    if (verdict === 'outdated') {
      this.tell(h('div', { class: 'problem', role: 'alert' }, h('strong', null, 'The office was renewed, this page is of the one before.'),
        h('button', { type: 'button', class: 'primary', onclick: () => location.reload() }, 'Reload the page')));
    }
    if (verdict === 'denied') await this.refused(reason);
  }

  /** Finds out why the stream was refused: the token is no longer good, or this session may not be read, or its records are others now. */
  async refused(reason) {
    try {
      await ask('GET', sessionPath(this.id), { signal: this.abort.signal });
    } catch (problem) {
      if (!this.abort.signal.aborted) this.failed(problem);
      return;
    }
    this.tell(h('div', { class: 'problem', role: 'alert' }, h('strong', null, 'The office ended this stream.'), h('p', null, reason),
      h('button', { type: 'button', class: 'primary', onclick: () => location.reload() }, 'Begin again')));
  }

  tell(box) {
    this.banner.hidden = false;
    this.banner.replaceChildren(box);
  }

  /** Brings earlier records. */
  async earlier() {
    const t = this.transcript;
    const from = Math.max(t.earliest - 1, t.first - 1 - step, 0);
    const answer = await ask('GET', sessionPath(this.id, `/records${query({ cursor: from, limit: step })}`), { signal: this.abort.signal });
    t.earliest = answer.earliest_feed_seq || t.earliest;
    let records = answer.records;
    let cursor = answer.next_cursor;
    // A page may be shorter than it was asked for, and what is between it and what is known must not be missing.
    for (let page = 0; page < step && cursor && cursor < t.first - 1; page++) {
      const next = await ask('GET', sessionPath(this.id, `/records${query({ cursor, limit: step })}`), { signal: this.abort.signal });
      records = records.concat(next.records);
      cursor = next.next_cursor;
    }
    t.prepend(records, JSON.stringify(records).length);
    announce(`Records from ${t.first} on are shown.`);
  }

  /** @param {any} session */
  take(session) {
    this.session = session;
    this.show();
    this.speak.update(session);
  }

  show() {
    if (!this.session) return;
    const a = about(this.session);
    const title = a.title || a.item || this.session.id;
    setText(this.title, title);
    setText(this.item, [a.namespace && `${a.namespace}/${a.item}`, a.kind].filter(Boolean).join(' · '));
    document.title = `${title} · Bullpen`;
    const shown = JSON.stringify(this.session);
    const minute = Math.floor(Date.now() / 30_000);
    if (shown === this.shown && minute === this.minute) return;
    this.shown = shown;
    this.minute = minute;
    this.states.replaceChildren(badge(a.state));
    this.facts.replaceChildren(...facts(this.session));
    this.git.replaceChildren(...git(this.session));
  }
}
