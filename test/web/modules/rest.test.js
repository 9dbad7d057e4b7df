// This module tests the other modules of the page that need no office.

import { board, mostDone } from '/assets/board.js';
import { age, cost, count, oneLine, span } from '/assets/format.js';
import { parse, pretty } from '/assets/json.js';
import { subprotocol, verdicts, wait } from '/assets/stream.js';
import { tail } from '/assets/tail.js';
import { parts, spans } from '/assets/transcript/markdown.js';
import { Transcript } from '/assets/transcript/fold.js';
import { TranscriptView } from '/assets/transcript/view.js';
import { cleanToken } from '/assets/account.js';
import { same, test } from './check.js';

test('counts, costs and times are short', () => {
  same([0, 950, 1000, 12_345, 999_999, 4_500_000, -1, NaN].map(count), ['0', '950', '1k', '12.3k', '1M', '4.5M', '0', '0']);
  same([0, 1, 4200, 25_000, 1_234_500].map(cost), ['–', '$0.0000', '$0.0420', '$0.25', '$12.35']);
  same([340, 4200, 190_000, 7_500_000, -1].map(span), ['340 ms', '4.2 s', '3 min 10 s', '2 h 5 min', '']);
  const now = Date.parse('2027-01-03T00:00:00Z');
  same(['2027-01-02T23:59:52Z', '2027-01-02T23:40:00Z', '2027-01-02T12:00:00Z', '2026-12-20T00:00:00Z', '2027-02-01T00:00:00Z', 'x'].map((t) => age(t, now)),
    ['8s', '20m', '12h', '14d', '0s', '']);
  same([oneLine(' a\n b ', 10), oneLine('abcdef', 4), oneLine('😀😀😀', 2)], ['a b', 'abc…', '😀…']);
});

test('integers that no JavaScript number holds keep their digits', () => {
  same(pretty(parse('{"n":123456789012345678901,"s":"12345678901234567890","f":1.5,"z":[-98765432109876543210]}')).replace(/\s/g, ''),
    '{"n":123456789012345678901,"s":"12345678901234567890","f":1.5,"z":[-98765432109876543210]}');
});

test('a token travels as its subprotocol', () => {
  same(subprotocol('a?b>c'), 'base64url.bearer.authorization.k8s.io.YT9iPmM');
  same([cleanToken(' Bearer abc.def\n'), cleanToken('abc\ndef')], ['abc.def', 'abcdef']);
});

test('waits grow, are bounded, and differ', () => {
  same([wait(0, 1), wait(3, 1), wait(50, 1), wait(50, 0)], [400, 3200, 15_000, 7500]);
  same([1000, 1002, 1003, 1008, 1011, 1013, 1006, 1012].map((c) => verdicts[c] ?? 'again'), ['over', 'outdated', 'outdated', 'denied', 'again', 'again', 'again', 'again']);
});

test('the end of a feed is found with few questions', async () => {
  for (const length of [0, 5, 1999, 2001, 3000, 100_000, 12_345_678]) {
    let asked = 0;
    const from = await tail(async (after) => { asked++; return after < length; }, 1000);
    const got = length - from;
    if (from < 0 || (length > 2000 && (got < 1000 || got > 2000)) || (length <= 2000 && from !== 0) || asked > 40) {
      throw new Error(`of ${length} records it reads ${got}, after ${asked} questions`);
    }
  }
});

test('Markdown is read, and what is none stays', () => {
  same(parts('# T\nab\ncd\n\n- x\n- y\n1. z\n```go\n<b>\n```').map((p) => p.kind), ['heading', 'paragraph', 'list', 'list', 'code']);
  same(spans('a **b** `c**d**` https://e.example/f?g=1. [h](javascript:i) [j](https://k.example)').map((s) => [s.kind, s.text]), [
    ['plain', 'a '], ['bold', 'b'], ['plain', ' '], ['code', 'c**d**'], ['plain', ' '], ['link', 'https://e.example/f?g=1'],
    ['plain', '. [h](javascript:i) '], ['link', 'j']]);
  same(parts('```\nopen'), [{ kind: 'code', text: 'open' }]);
});

test('the board has each item once, where it stands, and few that are done', () => {
  const session = (item, person, state) => ({ id: `s-${item}`, metadata: { work_item_id: item, person, state } });
  const rows = board([
    session('a', 'bob', 'active'), session('b', 'ada', 'waiting'), session('b', 'ada', 'done'), session('c', 'ada', 'blocked'), session('d', '', 'queued'),
    ...Array.from({ length: mostDone + 3 }, (_, i) => session(`x${i}`, 'ada', 'done')), session('z', 'eve', 'dreaming')]);
  same(rows.map((r) => [r.person, r.cells.map((c) => c.length), r.hidden]), [['bob', [1, 0, 0, 0], 0], ['ada', [0, 2, 0, mostDone], 3], ['', [0, 0, 1, 0], 0]]);
});

test('what is no longer kept is said, above and between', () => {
  const t = new Transcript();
  const record = (place) => ({ source: 'moon', record_type: 'x', feed_seq: place, created_at: '2027-01-01T00:00:00Z', payload: {} });
  t.frame({ type: 'snapshot', session: {}, earliest_feed_seq: 11, messages: [] }, 10);
  t.frame({ type: 'records_append', records: [record(11), record(12)] }, 10);
  const view = new TranscriptView(t, async () => {});
  document.body.append(view.root);
  view.show();
  same([view.before.textContent, view.log.childElementCount], ['10 earlier records are no longer kept.', 2]);
  t.frame({ type: 'snapshot', session: {}, earliest_feed_seq: 21, messages: [] }, 10);
  t.frame({ type: 'records_append', records: [record(21)] }, 10);
  view.show();
  same([...view.log.children].map((e) => e.textContent).slice(2, 3), ['Records 13 to 20 are no longer kept.']);
  view.root.remove();
});
