// This module reads and writes JSON without a change: integers that a JavaScript number cannot hold keep their digits where the browser can
// do that. It is pure.

const long = /[-:[,\s]\d{16,}/;

/**
 * Reads JSON.
 * @param {string} text
 * @returns {any}
 */
export function parse(text) {
  if (!long.test(text) || typeof JSON.rawJSON !== 'function') return JSON.parse(text);
  return JSON.parse(text, (_key, value, context) =>
    typeof value === 'number' && context && context.source && /^-?\d+$/.test(context.source) && !Number.isSafeInteger(value)
      ? JSON.rawJSON(context.source)
      : value);
}

/**
 * Writes JSON for people.
 * @param {any} value
 */
export function pretty(value) {
  return JSON.stringify(value, null, 2) ?? '';
}
