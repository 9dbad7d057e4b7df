// This module follows the stream of a session: it connects, tells of each frame, and connects again where that helps, from the cursor.

import { parse } from './json.js';

/** How the office closes: what it means for those who watch. */
export const verdicts = { 1000: 'over', 1002: 'outdated', 1003: 'outdated', 1008: 'denied' };

/** A stream says something at least every 20 s; one that is silent for longer is dead. */
const silence = 50_000;
const firstWait = 400;
const longestWait = 15_000;

/**
 * How long to wait before the next try: longer each time, and not the same for everybody.
 * @param {number} failures
 * @param {number} random from 0 to 1
 */
export function wait(failures, random) {
  return Math.min(longestWait, firstWait * 2 ** Math.min(failures, 10)) * (0.5 + random / 2);
}

/**
 * A token as the WebSocket subprotocol that carries it.
 * @param {string} token
 */
export function subprotocol(token) {
  const bytes = new TextEncoder().encode(token);
  const encoded = btoa(String.fromCharCode(...bytes)).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
  return `base64url.bearer.authorization.k8s.io.${encoded}`;
}

/**
 * @typedef {object} Listener
 * @property {() => number} cursor the place of the last record that is known
 * @property {(frame: any, size: number) => void} frame takes a frame, and how many characters it had
 * @property {(state: 'connecting' | 'live' | 'waiting', until?: number) => void} state tells of the connection
 * @property {(verdict: 'over' | 'outdated' | 'denied', reason: string) => void} end says that it does not connect again by itself
 */

/** A stream that lasts until close is called, or the office says that it is over. */
export class Stream {
  /**
   * @param {string} path of the stream, without its query
   * @param {string} token
   * @param {Listener} listener
   */
  constructor(path, token, listener) {
    this.path = path;
    this.token = token;
    this.listener = listener;
    this.failures = 0;
    this.closed = false;
    this.message = '';
    this.hurry = () => { if (this.retry) this.connect(); };
    window.addEventListener('online', this.hurry);
    this.connect();
  }

  connect() {
    clearTimeout(this.retry);
    this.retry = undefined;
    this.message = '';
    this.listener.state('connecting');
    const url = new URL(this.path, location.href);
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    url.search = new URLSearchParams({ protocol: '6', after_seq: String(this.listener.cursor()) }).toString();
    const socket = new WebSocket(url, ['v6.stream.bullpen.dev', subprotocol(this.token)]);
    this.socket = socket;
    this.listen();
    socket.onmessage = (event) => { if (socket === this.socket) this.take(event.data); };
    socket.onclose = (event) => { if (socket === this.socket) this.ended(event.code, event.reason); };
  }

  /** Waits for the next sign of life. */
  listen() {
    clearTimeout(this.watch);
    this.watch = setTimeout(() => this.lost(), silence);
  }

  /** Gives a dead connection up: its close could take minutes. */
  lost() {
    const socket = this.socket;
    this.socket = undefined;
    socket?.close();
    this.ended(1006, 'the office was silent');
  }

  /** @param {string} data */
  take(data) {
    this.listen();
    const frame = parse(data);
    if (frame.type === 'error') this.message = String(frame.message || '');
    if (frame.type === 'snapshot') {
      this.failures = 0;
      this.listener.state('live');
    }
    this.listener.frame(frame, data.length);
  }

  /**
   * @param {number} code
   * @param {string} reason
   */
  ended(code, reason) {
    clearTimeout(this.watch);
    this.socket = undefined;
    if (this.closed) return;
    const verdict = verdicts[code];
    if (verdict) {
      this.close();
      this.listener.end(verdict, this.message || reason);
      return;
    }
    const ms = wait(this.failures++, Math.random());
    this.listener.state('waiting', Date.now() + ms);
    this.retry = setTimeout(() => this.connect(), ms);
  }

  close() {
    this.closed = true;
    clearTimeout(this.retry);
    clearTimeout(this.watch);
    window.removeEventListener('online', this.hurry);
    this.socket?.close();
    this.socket = undefined;
  }
}
