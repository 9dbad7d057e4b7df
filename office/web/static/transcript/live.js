// This module has what the runtime is writing right now. Deltas come at once, records by way of two disks: the record of a text often comes
// when the next text has begun, and who came late knows the end of a text without its beginning. It is pure.

/** The most characters that are kept without a record: one that never comes may not fill the memory. */
const most = 1 << 20;

/** What deltas told that no record has yet. */
export class Live {
  constructor() {
    this.clear();
  }

  clear() {
    /** The answer so far; late says that its beginning is not known. */
    this.text = '';
    this.late = false;
    /** The first line of what the runtime thinks. */
    this.thought = '';
    /** The tokens that the answer has so far. */
    this.tokens = 0;
    this.turn = '';
    /** The turn that ran already when the watcher came, until a text of it is complete: its first delta may be the middle of a text. */
    this.running = '';
  }

  /**
   * Begins anew, where a watcher comes, or comes back.
   * @param {any} session
   */
  join(session) {
    this.clear();
    if (session?.turn?.status === 'running') this.running = String(session.turn.id);
  }

  /**
   * Takes a delta. Kinds that nobody knows are passed over.
   * @param {any} delta
   */
  write(delta) {
    const turn = typeof delta.turn_id === 'string' ? delta.turn_id : '';
    if (delta.kind !== 'text' && delta.kind !== 'thinking') return;
    if (turn !== this.turn) {
      const running = this.running;
      this.clear();
      this.turn = turn;
      this.running = running;
    }
    if (delta.kind === 'text' && typeof delta.output_tokens === 'number') this.tokens = delta.output_tokens;
    if (typeof delta.text !== 'string') return;
    if (delta.kind === 'thinking') {
      this.thought = delta.text;
      return;
    }
    this.late = this.late || (this.text === '' && turn !== '' && turn === this.running);
    this.text += delta.text;
    if (this.text.length > most) {
      this.text = this.text.slice(-most / 2);
      this.late = true;
    }
    this.thought = '';
  }

  /**
   * Takes the text of a record out of what is live: it is final. What goes on behind it stays.
   * @param {string} text
   */
  wrote(text) {
    this.thought = '';
    this.tokens = 0;
    if (this.text.startsWith(text)) this.text = this.text.slice(text.length);
    else if (text.startsWith(this.text)) this.text = '';
    else this.text = this.late ? this.text.slice(overlap(text, this.text)) : '';
    this.late = false;
    this.running = '';
    this.text = this.text.replace(/^\n+/, '');
  }

  /** A complete thought, or the use of a tool, ends what is thought. */
  thoughtOver() {
    this.thought = '';
  }

  /**
   * Ends with its turn.
   * @param {string} turn
   */
  turnOver(turn) {
    if (this.turn === turn || this.turn === '') this.clear();
    if (this.running === turn) this.running = '';
  }
}

/**
 * The length of the longest end of before that next begins with.
 * @param {string} before
 * @param {string} next
 */
export function overlap(before, next) {
  // The border of next + before at its end, as Knuth, Morris and Pratt find it: a text can be long.
  const tail = before.slice(-next.length);
  const border = new Int32Array(next.length);
  for (let i = 1, k = 0; i < next.length; i++) {
    while (k > 0 && next[i] !== next[k]) k = border[k - 1];
    if (next[i] === next[k]) k++;
    border[i] = k;
  }
  let k = 0;
  for (let i = 0; i < tail.length; i++) {
    while (k > 0 && (k === next.length || tail[i] !== next[k])) k = border[k - 1];
    if (tail[i] === next[k]) k++;
  }
  return k;
}
