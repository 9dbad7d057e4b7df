// This module does something again and again, as long as the tab is looked at.

/** Every five seconds is often enough for a list, and cheap for the office. */
const every = 5000;

/** Calls a function now and then every few seconds; one call at a time, and none while the tab is hidden. */
export class Poll {
  /** @param {(signal: AbortSignal) => Promise<void>} act may fail: it is tried again */
  constructor(act) {
    this.act = act;
    this.abort = new AbortController();
    this.visible = () => { if (!document.hidden) this.now(); };
    document.addEventListener('visibilitychange', this.visible);
    this.now();
  }

  /** Does it at once, or again after the call that runs. */
  now() {
    clearTimeout(this.timer);
    if (this.running) this.again = true;
    else this.run();
  }

  async run() {
    this.running = true;
    try {
      await this.act(this.abort.signal);
    } finally {
      this.running = false;
      if (!this.abort.signal.aborted) this.plan();
    }
  }

  plan() {
    if (this.again) {
      this.again = false;
      this.run();
    } else if (!document.hidden) {
      this.timer = setTimeout(() => this.now(), every);
    }
  }

  close() {
    clearTimeout(this.timer);
    this.abort.abort();
    document.removeEventListener('visibilitychange', this.visible);
  }
}
