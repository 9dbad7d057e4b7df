// This module asks the office. What goes wrong becomes a Problem, with the office's own words where it has any.

import { token } from './account.js';
import { parse } from './json.js';

/** An answer that is none: what is wrong, in words for people. status is 0 where the office could not be reached. */
export class Problem extends Error {
  /**
   * @param {number} status
   * @param {string} detail
   * @param {Record<string, any>} [more]
   */
  constructor(status, detail, more) {
    super(detail);
    this.status = status;
    this.more = more || {};
  }
}

/**
 * Asks the office and gives the answer as it was read.
 * @param {string} method
 * @param {string} path
 * @param {{body?: any, signal?: AbortSignal, token?: string}} [options]
 * @returns {Promise<any>}
 */
export async function ask(method, path, options = {}) {
  /** @type {Record<string, string>} */
  const headers = { Authorization: `Bearer ${options.token ?? token()}` };
  if (options.body !== undefined) headers['Content-Type'] = 'application/json';
  let response, text;
  try {
    response = await fetch(path, {
      method, headers, signal: options.signal, cache: 'no-store', credentials: 'same-origin',
      body: options.body === undefined ? undefined : JSON.stringify(options.body),
    });
    text = await response.text();
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new Problem(0, 'The office cannot be reached. It is tried again by itself.');
  }
  let answer;
  try {
    answer = parse(text);
  } catch {
    answer = {};
  }
  if (!response.ok) throw new Problem(response.status, String(answer.detail || `The office answered ${response.status}.`), answer);
  return answer;
}

/**
 * A path of a session.
 * @param {string} id
 * @param {string} [rest]
 */
export const sessionPath = (id, rest = '') => `/v1/sessions/${encodeURIComponent(id)}${rest}`;

/**
 * A query string of what is not empty.
 * @param {Record<string, string | number | undefined>} values
 */
export function query(values) {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value !== '' && value !== undefined) q.set(name, String(value));
  const text = q.toString();
  return text ? `?${text}` : '';
}
