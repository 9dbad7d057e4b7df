// This module tests what is shown of a text while it is written.

import { Live, overlap } from '/assets/transcript/live.js';
import { same, test } from './check.js';

const text = (value, turn = 't0') => ({ type: 'delta', kind: 'text', turn_id: turn, text: value, output_tokens: null });
const thinking = (value, turn = 't0') => ({ type: 'delta', kind: 'thinking', turn_id: turn, text: value, output_tokens: null });
const live = (...deltas) => {
  const l = new Live();
  for (const d of deltas) l.write(d);
  return l;
};

test('fragments of a text go on, and its record ends it', () => {
  const l = live(text('one '), text('two'));
  same(l.text, 'one two');
  l.wrote('one two');
  same(l.text, '');
});

test('what goes on behind a record stays', () => {
  const l = live(text('one two\nthree'));
  l.wrote('one two');
  same(l.text, 'three');
});

test('a record that has more than was seen takes its place', () => {
  const l = live(text('one'));
  l.wrote('one two three');
  same(l.text, '');
});

test('a watcher who came in the middle of a text does not see its end twice', () => {
  const l = new Live();
  l.join({ turn: { id: 't0', status: 'running' } });
  l.write(text('two three'));
  l.write(text(' four, and what comes next'));
  same(l.late, true);
  l.wrote('one two three four');
  same(l.text, ', and what comes next');
  same(l.late, false);
});

test('a text that the record has otherwise is dropped', () => {
  const l = live(text('one twe'));
  l.wrote('one two');
  same(l.text, '');
});

test('a thought takes the place of the one before, null leaves it and an empty one clears it', () => {
  const l = live(thinking('first'), thinking('second'));
  same(l.thought, 'second');
  l.write(thinking(null));
  same(l.thought, 'second');
  l.write(thinking(''));
  same(l.thought, '');
});

test('a thought ends when the answer begins, with its turn, and with a new snapshot', () => {
  const l = live(thinking('hm'), text('so'));
  same([l.thought, l.text], ['', 'so']);
  l.write(thinking('hm again'));
  l.turnOver('t0');
  same([l.thought, l.text], ['', '']);
  l.write(thinking('once more'));
  l.join({ turn: null });
  same(l.thought, '');
});

test('only texts count tokens', () => {
  const l = live({ kind: 'text', turn_id: 't0', text: null, output_tokens: 12 }, { kind: 'thinking', turn_id: 't0', text: 'x', output_tokens: 99 });
  same(l.tokens, 12);
});

test('kinds that nobody knows are passed over', () => {
  const l = live(text('a'), { kind: 'smell', turn_id: 't9', text: 'b', output_tokens: 3 });
  same([l.text, l.tokens], ['a', 0]);
});

test('a text without a record stays bounded', () => {
  const l = live(text('x'.repeat(900_000)), text('y'.repeat(900_000)));
  same([l.text.length <= 1 << 20, l.late], [true, true]);
});

test('the overlap is the longest end of one that begins the other', () => {
  for (const [before, next, want] of [['abcab', 'abx', 2], ['aaa', 'aa', 2], ['abc', 'xyz', 0], ['', 'a', 0], ['a', '', 0], ['ababab', 'abab', 4]]) {
    same([before, next, overlap(before, next)], [before, next, want]);
  }
  const long = 'ab'.repeat(200_000);
  same(overlap(long, `${long}c`), long.length);
});
