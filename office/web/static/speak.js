// This module lets people speak into a session, and stop what it runs.

import { ask, sessionPath } from './api.js';
import { announce, h, setText } from './dom.js';

export class Speak {
  /** @param {{id: string, denied: (reason?: string) => void}} options */
  constructor({ id, denied }) {
    this.id = id;
    this.denied = denied;
    this.text = h('textarea', { id: 'say', rows: '1', placeholder: 'Say something to the agent', 'aria-describedby': 'say-note say-problem' });
    this.send = h('button', { type: 'submit', class: 'primary' }, 'Send');
    this.note = h('p', { class: 'dim', id: 'say-note' });
    this.problem = h('p', { class: 'problem', id: 'say-problem', role: 'alert', hidden: true });
    this.text.addEventListener('input', () => this.grow());
    this.text.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) this.form.requestSubmit();
    });
    this.form = h('form', { class: 'speak', 'aria-label': 'Speak to the agent', onsubmit: (event) => { event.preventDefault(); this.say(); } },
      h('label', { for: 'say', class: 'visually-hidden' }, 'Message'), this.problem, h('div', { class: 'speak-row' }, this.text, this.send), this.note);
    this.confirm = this.dialog();
    this.stop = h('button', { type: 'button', class: 'danger', hidden: true, onclick: () => this.confirm.showModal() }, 'Stop');
  }

  dialog() {
    const yes = h('button', { type: 'button', class: 'danger', onclick: () => { dialog.close(); this.halt(); } }, 'Stop the work');
    const no = h('button', { type: 'button', class: 'quiet', onclick: () => dialog.close() }, 'Let it run');
    no.autofocus = true;
    const dialog = h('dialog', { 'aria-labelledby': 'stop-title' }, h('h2', { id: 'stop-title' }, 'Stop this work?'),
      h('p', null, 'The agent ends what it runs. What it did so far stays; what it was writing may be lost.'), h('div', { class: 'dialog-row' }, no, yes));
    return dialog;
  }

  /**
   * Fits what can be done to the session.
   * @param {any} session
   */
  update(session) {
    this.session = session;
    const { prompting, state } = session.conversation;
    const turn = session.turn;
    const stops = state === 'open' && Boolean(turn) && ['pending', 'running'].includes(turn.status);
    this.stop.hidden = !stops;
    this.stop.disabled = this.stopping === turn?.id || Boolean(turn?.stopped);
    setText(this.stop, this.stop.disabled && stops ? 'Stopping…' : 'Stop');
    this.enabled = prompting.enabled;
    this.text.disabled = !prompting.enabled;
    this.send.disabled = !prompting.enabled || this.sending === true;
    const where = prompting.surface_name ? ` Speak to it in ${prompting.surface_name}.` : '';
    const why = (prompting.detail || 'This session takes no messages.') + where;
    setText(this.note, prompting.enabled ? 'Ctrl+Enter sends. The agent takes it up with its next turn.' : why);
  }

  grow() {
    this.text.rows = Math.min(8, this.text.value.split('\n').length);
  }

  async say() {
    const body = this.text.value;
    if (!body.trim() || this.sending) return;
    this.sending = true;
    this.send.disabled = true;
    try {
      await ask('POST', sessionPath(this.id, '/messages'), { body: { body } });
      this.text.value = '';
      this.grow();
      this.problem.hidden = true;
      announce('Sent.');
    } catch (problem) {
      this.fail(problem);
    }
    this.sending = false;
    this.send.disabled = !this.enabled;
    if (this.enabled) this.text.focus();
  }

  async halt() {
    this.stopping = this.session.turn?.id;
    this.update(this.session);
    try {
      await ask('POST', sessionPath(this.id, '/stop'));
      this.problem.hidden = true;
      announce('The work is being stopped.');
    } catch (problem) {
      this.stopping = undefined;
      this.update(this.session);
      this.fail(problem);
    }
  }

  fail(problem) {
    if (problem.status === 401) {
      this.denied();
      return;
    }
    setText(this.problem, problem.message);
    this.problem.hidden = false;
  }
}
