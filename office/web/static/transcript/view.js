// This module shows a transcript: a window of its blocks, what is being written, and a scroll position that stays where the reader is. Only
// the window is in the page, so a session of 100,000 records costs no more than a short one.

import { h, setText } from '../dom.js';
import { count, plural } from '../format.js';
import { element, prose } from './blocks.js';

/** How many blocks are in the page, and how many more are shown at a time. */
const windowSize = 400;
const stride = 200;

/** How many pixels above the end still count as the end. */
const slack = 48;

export class TranscriptView {
  /**
   * @param {import('./fold.js').Transcript} transcript
   * @param {() => Promise<void>} loadEarlier brings earlier records into the transcript
   */
  constructor(transcript, loadEarlier) {
    this.transcript = transcript;
    this.loadEarlier = loadEarlier;
    this.following = true;
    this.start = 0;
    this.end = 0;
    this.length = 0;
    /** The elements in the page, by the keys of their blocks, with what they show. */
    this.elements = new Map();
    this.before = h('div', { class: 'before' });
    this.log = h('div', { class: 'log', role: 'log', 'aria-live': 'polite', 'aria-label': 'Transcript' });
    this.liveText = h('div', { class: 'block live-text', 'aria-live': 'off' });
    this.liveThought = h('p', { class: 'block live-thought', 'aria-live': 'off' });
    this.liveTokens = h('p', { class: 'live-tokens', 'aria-live': 'off' });
    this.live = h('div', { class: 'live' }, this.liveText, this.liveThought, this.liveTokens);
    this.scroller = h('div', { class: 'scroller', tabindex: '0', role: 'region', 'aria-label': 'Session, from its beginning to now' },
      this.before, this.log, this.live);
    this.latest = h('button', { type: 'button', class: 'latest', hidden: true, onclick: () => this.follow() }, '↓ Latest');
    this.root = h('div', { class: 'transcript' }, this.scroller, this.latest);
    this.scroller.addEventListener('scroll', () => this.scrolled(), { passive: true });
  }

  /** Shows what is new with the next frame of the screen. */
  changed() {
    if (this.planned) return;
    // A tab in the background gets no frames; a timer keeps what it holds bounded.
    this.planned = true;
    const show = () => {
      if (!this.planned) return;
      this.planned = false;
      this.show();
    };
    requestAnimationFrame(show);
    setTimeout(show, document.hidden ? 1000 : 250);
  }

  /** Goes to the end and stays there. */
  follow() {
    this.following = true;
    this.show();
    this.scroller.focus({ preventScroll: true });
  }

  atEnd() {
    const s = this.scroller;
    return s.scrollHeight - s.scrollTop - s.clientHeight <= slack;
  }

  /** The reader scrolled, or the page did. */
  scrolled() {
    if (this.moving) return;
    const at = this.scroller.scrollTop;
    const up = at < this.at;
    this.at = at;
    if (this.atEnd() && this.end < this.transcript.blocks.length) {
      this.end = Math.min(this.transcript.blocks.length, this.end + stride);
      this.start = Math.max(this.start, this.end - 2 * windowSize);
      this.changed();
    } else if (this.atEnd()) {
      this.following = true;
    } else if (up) {
      this.following = false;
    }
    this.latest.hidden = this.following;
  }

  /** Shows earlier blocks: those in memory first, then those that the office has. */
  async earlier(button) {
    this.following = false;
    if (this.start === 0) {
      button.disabled = true;
      const known = this.transcript.blocks[0]?.seq ?? 0;
      try {
        await this.loadEarlier();
      } catch (error) {
        setText(button, `That did not work: ${error.message} Try again.`);
        button.disabled = false;
        return;
      }
      const from = this.transcript.blocks.findIndex((b) => b.seq >= known);
      this.start = Math.max(0, from);
      this.end = this.start + windowSize;
    }
    this.start = Math.max(0, this.start - stride);
    this.end = Math.min(this.transcript.blocks.length, Math.max(this.start + windowSize, Math.min(this.end, this.start + 2 * windowSize)));
    this.show();
    this.latest.hidden = false;
  }

  /** Brings the page up to what the transcript has. */
  show() {
    const anchor = this.following ? null : this.anchor();
    const all = this.transcript.blocks;
    if (this.generation !== this.transcript.generation) this.renumber(anchor);
    if (this.following) {
      this.end = all.length;
      this.start = Math.max(0, this.end - windowSize);
    } else {
      // Who reads near the end sees what is new below, up to a bound.
      const most = this.start + (this.end >= this.length ? 2 * windowSize : windowSize);
      this.end = Math.min(all.length, Math.max(this.end, most));
    }
    this.length = all.length;
    this.place(all.slice(this.start, this.end));
    this.showBefore();
    this.showLive();
    this.moving = true;
    if (this.following) this.scroller.scrollTop = this.scroller.scrollHeight;
    else this.restore(anchor);
    this.at = this.scroller.scrollTop;
    this.moving = false;
    this.latest.hidden = this.following;
  }

  /** Finds the window again after the blocks were made anew. */
  renumber(anchor) {
    this.generation = this.transcript.generation;
    if (this.following || !anchor) return;
    const at = this.transcript.blocks.findIndex((b) => b.key === anchor.key);
    if (at < 0) return;
    this.start = Math.max(0, Math.min(this.start, at), at - stride);
    this.end = Math.min(this.transcript.blocks.length, at + windowSize);
  }

  /** Puts the elements of these blocks into the page; those that show them already stay. */
  place(blocks) {
    const wanted = new Set(blocks.map((b) => b.key));
    for (const [key, shown] of this.elements) {
      if (wanted.has(key)) continue;
      shown.element.remove();
      this.elements.delete(key);
    }
    let next = this.log.firstChild;
    for (const block of blocks) {
      const version = `${this.transcript.generation}:${block.rev}`;
      let shown = this.elements.get(block.key);
      if (!shown || shown.version !== version) {
        const comes = shown && shown.element === next;
        shown = this.make(block, version, shown);
        if (comes) next = shown.element;
      }
      if (shown.element === next) next = next.nextSibling;
      else this.log.insertBefore(shown.element, next);
    }
  }

  /** Makes the element of a block, which takes the place of the one before and keeps what the reader did to it. */
  make(block, version, before) {
    const made = element(block);
    if (before) {
      const open = before.element.querySelector('details')?.open;
      const details = made.querySelector('details');
      const summary = before.element.querySelector('summary');
      const focused = summary !== null && summary === document.activeElement;
      before.element.replaceWith(made);
      if (open && details) details.open = true;
      if (focused) made.querySelector('summary')?.focus({ preventScroll: true });
    }
    const shown = { element: made, version };
    this.elements.set(block.key, shown);
    return shown;
  }

  /** Says what is above the window. */
  showBefore() {
    const t = this.transcript;
    const missing = Math.max(t.earliest, 1);
    const more = this.start > 0 || t.first > missing;
    const state = more ? 'more' : t.earliest > 1 ? `kept ${t.earliest}` : t.cursor ? 'all' : 'nothing';
    if (state === this.beforeState) return;
    this.beforeState = state;
    if (more) {
      const button = h('button', { type: 'button', class: 'quiet earlier' }, 'Show what came earlier');
      button.addEventListener('click', () => this.earlier(button).finally(() => { this.beforeState = ''; this.showBefore(); }));
      this.before.replaceChildren(button);
    } else if (t.earliest > 1) {
      this.before.replaceChildren(h('p', { class: 'dim' }, `${plural(t.earliest - 1, 'earlier record')} are no longer kept.`));
    } else {
      this.before.replaceChildren(h('p', { class: 'dim' }, t.cursor ? 'The session begins here.' : 'Nothing has happened yet.'));
    }
  }

  /** Shows what is being written. */
  showLive() {
    const { text, late, thought, tokens } = this.transcript.live;
    const shown = text.trim() ? (late ? '… ' : '') + text.replace(/^\n+/, '') : '';
    this.liveText.hidden = shown === '';
    if (shown !== this.liveShown) {
      this.liveShown = shown;
      this.liveText.replaceChildren(...(shown ? [prose(shown)] : []));
    }
    const line = thought.trim().split('\n')[0].replace(/^[*#\s]+|[*\s]+$/g, '');
    this.liveThought.hidden = line === '';
    setText(this.liveThought, line && `∴ ${line}`);
    this.liveTokens.hidden = !(tokens > 0 && (shown || line));
    setText(this.liveTokens, `${count(tokens)} tokens`);
  }

  /** The first block that the reader sees, and where it is. */
  anchor() {
    const top = this.scroller.getBoundingClientRect().top;
    for (const [key, shown] of this.elements) {
      const box = shown.element.getBoundingClientRect();
      if (box.bottom > top) return { key, offset: box.top - top };
    }
    return null;
  }

  /** Brings a block back to where it was. */
  restore(anchor) {
    const shown = anchor && this.elements.get(anchor.key);
    if (!shown) return;
    const top = this.scroller.getBoundingClientRect().top;
    this.scroller.scrollTop += shown.element.getBoundingClientRect().top - top - anchor.offset;
  }
}
