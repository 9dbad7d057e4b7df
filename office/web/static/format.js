// This module writes numbers and times for people. It is pure.

/**
 * A count, short: 950, 12.3k, 4.5M.
 * @param {number} n
 */
export function count(n) {
  if (!Number.isFinite(n) || n < 0) return '0';
  if (n < 1000) return String(Math.round(n));
  const [unit, size] = n < 999_950 ? ['k', 1e3] : n < 999_950_000 ? ['M', 1e6] : ['G', 1e9];
  const value = n / size;
  return (value < 100 ? value.toFixed(1).replace(/\.0$/, '') : String(Math.round(value))) + unit;
}

/**
 * A cost that is given in millicents, thousandths of a US cent. Nothing is a dash: it may be that nobody knows a price.
 * @param {number} millicents
 */
export function cost(millicents) {
  if (!Number.isFinite(millicents) || millicents <= 0) return '–';
  const dollars = millicents / 100_000;
  return '$' + (dollars < 0.1 ? dollars.toFixed(4) : dollars.toFixed(2));
}

/**
 * A time span in milliseconds: 340 ms, 4.2 s, 3 min 10 s, 2 h 5 min.
 * @param {number} ms
 */
export function span(ms) {
  if (!Number.isFinite(ms) || ms < 0) return '';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 9950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

/**
 * How long ago something was: 8s, 14m, 3h, 12d.
 * @param {string} time as in RFC 3339
 * @param {number} now in milliseconds since 1970
 */
export function age(time, now) {
  const seconds = Math.max(0, Math.floor((now - Date.parse(time)) / 1000));
  if (!Number.isFinite(seconds)) return '';
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86_400)}d`;
}

/**
 * The time of day of a record.
 * @param {string} time as in RFC 3339
 */
export function clock(time) {
  const at = new Date(time);
  return Number.isNaN(at.getTime()) ? '' : at.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false });
}

/**
 * A time in full, for those who point at one.
 * @param {string} time as in RFC 3339
 */
export function fullTime(time) {
  const at = new Date(time);
  return Number.isNaN(at.getTime()) ? '' : at.toLocaleString();
}

/**
 * A text in one line of at most so many characters.
 * @param {string} text
 * @param {number} most
 */
export function oneLine(text, most) {
  const line = text.slice(0, most * 8 + 64).replace(/\s+/g, ' ').trim();
  const characters = Array.from(line);
  return characters.length > most ? characters.slice(0, most - 1).join('') + '…' : line;
}

/**
 * "1 record", "2 records".
 * @param {number} n
 * @param {string} word
 */
export function plural(n, word) {
  return `${n.toLocaleString('en')} ${word}${n === 1 ? '' : 's'}`;
}
