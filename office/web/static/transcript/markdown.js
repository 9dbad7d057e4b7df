// This module reads the little of Markdown that agents write most: code, lists, headings, bold, links. It is pure, and makes plain data; what
// it does not know stays as it was written.

/**
 * @typedef {{kind: 'code', text: string} | {kind: 'list', ordered: boolean, items: Span[][]} | {kind: 'heading' | 'paragraph', spans: Span[]}} Part
 * @typedef {{kind: 'plain' | 'code' | 'bold' | 'link', text: string, href?: string}} Span
 */

/**
 * @param {string} text
 * @returns {Part[]}
 */
export function parts(text) {
  const out = [];
  const rows = text.replace(/\r\n?/g, '\n').split('\n');
  for (let i = 0; i < rows.length; i++) {
    const fence = /^\s*(```+|~~~+)/.exec(rows[i]);
    if (fence) {
      const code = [];
      for (i++; i < rows.length && !rows[i].trim().startsWith(fence[1]); i++) code.push(rows[i]);
      out.push({ kind: 'code', text: code.join('\n') });
      continue;
    }
    const heading = /^#{1,6}\s+(.+)$/.exec(rows[i]);
    const item = /^\s*(?:[-*]|(\d+)[.)])\s+(.+)$/.exec(rows[i]);
    const before = out[out.length - 1];
    if (heading) out.push({ kind: 'heading', spans: spans(heading[1]) });
    else if (item) {
      const ordered = item[1] !== undefined;
      if (before?.kind === 'list' && before.ordered === ordered && !before.closed) before.items.push(spans(item[2]));
      else out.push({ kind: 'list', ordered, items: [spans(item[2])], closed: false });
    } else if (!rows[i].trim()) {
      out.push({ kind: 'break' });
    } else if (before?.kind === 'paragraph') {
      before.spans.push({ kind: 'plain', text: '\n' }, ...spans(rows[i]));
    } else {
      out.push({ kind: 'paragraph', spans: spans(rows[i]) });
    }
  }
  return out.filter((p) => p.kind !== 'break');
}

const inline = /(`+)([^`]+?)\1(?!`)|\*\*([^*\n]+)\*\*|\[([^\]\n]+)\]\((https?:\/\/[^\s)]+)\)|(https?:\/\/[^\s<>"'`]+[^\s<>"'`.,;:!?)\]])/g;

/**
 * @param {string} text one line
 * @returns {Span[]}
 */
export function spans(text) {
  const out = [];
  let at = 0;
  for (const m of text.matchAll(inline)) {
    if (m.index > at) out.push({ kind: 'plain', text: text.slice(at, m.index) });
    if (m[2] !== undefined) out.push({ kind: 'code', text: m[2] });
    else if (m[3] !== undefined) out.push({ kind: 'bold', text: m[3] });
    else if (m[4] !== undefined) out.push({ kind: 'link', text: m[4], href: m[5] });
    else out.push({ kind: 'link', text: m[6], href: m[6] });
    at = m.index + m[0].length;
  }
  if (at < text.length) out.push({ kind: 'plain', text: text.slice(at) });
  return out;
}
