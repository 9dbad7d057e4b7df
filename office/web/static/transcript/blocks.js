// This module makes the element of a block. Everything in a block is untrusted: it becomes text.

import { h, link } from '../dom.js';
import { clock, fullTime, oneLine, plural, span } from '../format.js';
import { pretty } from '../json.js';
import { parts } from './markdown.js';

/** The most characters of one text that are shown at once. */
const mostText = 20_000;

/** @type {Record<string, (block: any) => HTMLElement>} */
const makers = {
  message, turn, 'turn-end': turnEnd, text, thinking, tool, step, ready, output, note, limit, unknown, gap, told,
};

/**
 * @param {import('./fold.js').Block} block
 * @returns {HTMLElement}
 */
export function element(block) {
  const made = makers[block.kind](block);
  made.classList.add('block', `block-${block.kind}`);
  if (block.sub) made.classList.add('sub');
  made.dataset.key = block.key;
  return made;
}

const time = (at) => h('time', { datetime: at, title: fullTime(at) }, clock(at));

/** A text as it is, cut where it is very long, with a way to see the rest. */
function pre(content, name) {
  const shown = h('pre', { class: name || null, tabindex: '0' }, content.length > mostText ? content.slice(0, mostText) : content);
  if (content.length <= mostText) return shown;
  const more = h('button', { type: 'button', class: 'quiet', onclick: () => { shown.textContent = content; more.remove(); } },
    `Show all ${plural(content.length, 'character')}`);
  return h('div', null, shown, more);
}

/** What folds: what it holds is made when it is opened first. */
function folded(summary, content, open) {
  const details = h('details', open ? { open: true } : null, h('summary', null, summary));
  const fill = () => {
    if (details.open && details.childElementCount === 1) details.append(...[content()].flat());
  };
  details.addEventListener('toggle', fill);
  fill();
  return details;
}

const spanElements = {
  plain: (s) => document.createTextNode(s.text),
  code: (s) => h('code', null, s.text),
  bold: (s) => h('strong', null, s.text),
  link: (s) => link(s.href, s.text),
};

const spansOf = (spans) => spans.map((s) => spanElements[s.kind](s));

/**
 * A text of a runtime, with the little of Markdown that it has.
 * @param {string} content
 */
export function prose(content) {
  const cut = content.length > 5 * mostText ? content.slice(0, 5 * mostText) : content;
  const box = h('div', { class: 'prose' }, parts(cut).map((p) => {
    switch (p.kind) {
      case 'code':
        return h('pre', { tabindex: '0' }, p.text);
      case 'list':
        return h(p.ordered ? 'ol' : 'ul', null, p.items.map((item) => h('li', null, spansOf(item))));
      case 'heading':
        return h('p', { class: 'heading' }, spansOf(p.spans));
    }
    return h('p', null, spansOf(p.spans));
  }));
  if (cut !== content) box.append(folded(`${plural(content.length, 'character')} in all`, () => pre(content)));
  return box;
}

function message(b) {
  return h('section', { 'aria-label': `Message of ${oneLine(b.who, 60)}` },
    h('header', null, h('span', { class: 'who' }, oneLine(b.who, 80)), b.last && h('span', { class: 'tag' }, 'last message'), time(b.at)),
    h('div', { class: 'said' }, b.text.length > mostText ? pre(b.text) : b.text));
}

function turn(b) {
  return h('h2', null, h('span', null, `Turn ${b.index + 1}`),
    b.askers.length > 0 && h('span', { class: 'by' }, `asked by ${oneLine(b.askers.join(', '), 80)}`), time(b.at));
}

const endings = { completed: 'good', stopped: 'warn', cancelled: 'warn' };

function turnEnd(b) {
  const words = [`Turn ${b.index + 1} ${oneLine(b.status, 40) || 'ended'}`];
  if (b.reason) words.push(`(${oneLine(b.reason, 80)})`);
  if (b.ms !== null) words.push(`after ${span(b.ms)}`);
  return h('div', { class: `tone-${endings[b.status] || 'bad'}` }, h('p', null, words.join(' ')), b.detail && h('div', { class: 'said' }, b.detail));
}

function text(b) {
  return h('div', null, prose(b.text));
}

function thinking(b) {
  const first = b.text.trim().split('\n')[0].replace(/^[*#\s]+|[*\s]+$/g, '');
  if (b.text.trim() === first || b.text.trim() === `**${first}**`) {
    return h('div', { class: 'flat' }, h('span', { class: 'mark', 'aria-hidden': 'true' }, '∴'), h('span', { class: 'step-title' }, oneLine(first, 300)));
  }
  return h('div', null, folded([h('span', { class: 'mark', 'aria-hidden': 'true' }, '∴'), h('span', { class: 'step-title' }, oneLine(first, 160))],
    () => h('div', { class: 'said' }, b.text)));
}

function tool(b) {
  const state = !b.result ? 'running' : b.result.failed ? 'failed' : 'done';
  const mark = { running: '…', failed: '✗', done: '✓' }[state];
  const outcome = !b.result ? 'runs' : b.result.why || (b.result.failed ? 'failed' : summaryOf(b.result.text));
  const box = folded([
    h('span', { class: `mark mark-${state}`, 'aria-hidden': 'true' }, mark),
    h('span', { class: 'tool-name' }, oneLine(b.name, 60)),
    h('code', { class: 'argument' }, oneLine(b.argument, 200)),
    h('span', { class: `outcome outcome-${state}` }, oneLine(outcome, 60)),
  ], () => [
    b.argument && h('div', { class: 'label' }, 'Asked'), b.argument && pre(inputOf(b)),
    b.result && h('div', { class: 'label' }, b.took >= 1000 ? `Gave, after ${span(b.took)}` : 'Gave'),
    b.result && (b.result.text ? pre(b.result.text, b.result.failed ? 'failed' : '') : h('p', { class: 'dim' }, 'nothing')),
  ].filter(Boolean));
  return h('div', null, box);
}

/** What a tool was asked, whole: its input where that is more than the one argument that stands above. */
function inputOf(b) {
  const fields = b.input && typeof b.input === 'object' ? Object.keys(b.input) : [];
  return fields.length > 1 ? pretty(b.input) : b.argument;
}

function summaryOf(result) {
  const trimmed = result.trimEnd();
  if (!trimmed) return 'nothing';
  const rows = trimmed.split('\n').length;
  return rows === 1 && trimmed.length <= 40 ? trimmed : plural(rows, 'line');
}

const lineElements = (b) => {
  const rows = b.lines.map((l) => h('span', { class: l.stream === 'stderr' ? 'stderr' : null }, `${l.text}\n`));
  if (b.more) rows.splice(rows.length / 2, 0, h('span', { class: 'dim' }, `… ${plural(b.more, 'line')} left out …\n`));
  return h('pre', { tabindex: '0' }, rows);
};

function step(b) {
  const state = { started: 'running', failed: 'failed' }[b.status] || 'done';
  const printed = b.lines.length ? plural(b.lines.length + b.more, 'line') : '';
  const outcome = [state === 'done' ? '' : b.status, b.ms !== null ? span(b.ms) : '', printed].filter(Boolean).join(' · ');
  const words = [
    h('span', { class: `mark mark-${state}`, 'aria-hidden': 'true' }, { running: '…', failed: '✗', done: '✓' }[state]),
    h('span', { class: 'step-title' }, oneLine(b.title, 120)),
    h('span', { class: `outcome outcome-${state}` }, oneLine(outcome, 80)),
  ];
  if (!b.lines.length && !b.detail) return h('div', { class: 'flat' }, words);
  const content = () => [b.detail && h('p', { class: 'said dim' }, b.detail), b.lines.length > 0 && lineElements(b)].filter(Boolean);
  return h('div', null, folded(words, content, b.status === 'failed'));
}

function ready(b) {
  return h('p', null, ['The environment is ready', b.ms !== null && `after ${span(b.ms)}`, b.repositories.length > 0 && `with ${b.repositories.join(', ')}`]
    .filter(Boolean).join(' '));
}

function output(b) {
  return h('div', null, lineElements(b));
}

function note(b) {
  return h('div', { class: `tone-${b.tone}` }, h('p', null, b.text), b.more && folded('More', () => pre(b.more), b.tone === 'bad'));
}

function limit(b) {
  const words = [`Rate limit ${oneLine(b.name, 40)}`];
  if (b.used !== null) words.push(`${Math.round(b.used * 100)} % used`);
  if (b.state === 'refused') words.push('no more is allowed');
  if (b.state === 'fine') words.push('allows again');
  if (b.resets !== null && b.state !== 'fine') words.push(`resets at ${clock(new Date(b.resets * 1000))}`);
  return h('p', { class: `tone-${{ refused: 'bad', near: 'warn', fine: 'dim' }[b.state]}` }, words.join(' · '));
}

function unknown(b) {
  return h('div', null, folded([h('span', { class: 'step-title' }, oneLine(`${b.source} · ${b.type}`, 120))], () => pre(pretty(b.payload))));
}

function gap(b) {
  return h('p', { class: 'tone-warn' }, b.from === b.to ? `Record ${b.from} is no longer kept.` : `Records ${b.from} to ${b.to} are no longer kept.`);
}

function told(b) {
  return h('div', null, folded(['▷ ', oneLine(b.text, 160)], () => pre(b.text)));
}
