// This module tests what becomes of records.

import { Transcript, limits } from '/assets/transcript/fold.js';
import { same, test } from './check.js';

let place = 0;

/** A transcript of records, which are a source, a type and a payload each. */
function transcript(...records) {
  const t = new Transcript();
  place = 0;
  t.append(records.map((r) => record(...r)), 100);
  return t;
}

const formats = { lifecycle: 'ellipsis_lifecycle@1', claude_code: 'claude_jsonl@1', codex: 'codex_app_server@1', command: 'bullpen_command@1' };

function record(source, type, payload, more) {
  place++;
  const at = new Date(Date.UTC(2027, 2, 4, 5, 6, place)).toISOString();
  return { source, record_type: type, record_format: formats[source] || 'x@1', feed_seq: place, created_at: at, message_id: null, payload, ...more };
}

const kinds = (t) => t.blocks.map((b) => b.kind);
const assistant = (...content) => ['claude_code', 'assistant', { type: 'assistant', message: { role: 'assistant', content } }];
const user = (...content) => ['claude_code', 'user', { type: 'user', message: { role: 'user', content } }];
const item = (method, i) => ['codex', method, { method, params: { item: i } }];

test('a turn has its messages, who asked, and how it ended', () => {
  const t = transcript(
    ['lifecycle', 'message_received', { message_id: 'm1', turn_id: 't0', body: 'Paint it.', author: 'grace' }],
    ['lifecycle', 'turn_started', { turn_id: 't0', turn_index: 0 }],
    ['lifecycle', 'message_delivered', { message_id: 'm1', turn_id: 't0' }],
    ['lifecycle', 'turn_ended', { turn_id: 't0', turn_index: 0, status: 'failed', reason: 'blocked', detail: 'no paint', duration_ms: 1500 }],
    ['lifecycle', 'session_closed', {}]);
  same(kinds(t), ['message', 'turn', 'turn-end', 'note']);
  same([t.blocks[0].who, t.blocks[1].askers, t.blocks[2].reason, t.blocks[2].ms], ['grace', ['grace'], 'blocked', 1500]);
});

test('an echo of a message that stands above is not shown again, what a runtime was told else is', () => {
  const t = transcript(
    ['lifecycle', 'message_received', { message_id: 'm1', body: 'Paint it.' }],
    [...user({ type: 'text', text: 'Paint it.' }), { message_id: 'm1' }],
    user({ type: 'text', text: 'a reminder' }));
  same(kinds(t), ['message', 'told']);
});

test('a tool call has its result, also where it comes later', () => {
  const t = transcript(
    assistant({ type: 'text', text: 'I look.' }, { type: 'tool_use', id: 'a', name: 'Bash', input: { command: 'ls' } }, { type: 'tool_use', id: 'b', name: 'Read', input: { file_path: '/x' } }),
    user({ type: 'tool_result', tool_use_id: 'b', content: [{ type: 'text', text: 'one' }, { type: 'text', text: 'two' }] }),
    user({ type: 'tool_result', tool_use_id: 'a', content: 'gone', is_error: true }));
  same(kinds(t), ['text', 'tool', 'tool']);
  same([t.blocks[1].argument, t.blocks[1].result, t.blocks[1].took], ['ls', { text: 'gone', failed: true }, 2000]);
  same(t.blocks[2].result, { text: 'one\ntwo', failed: false });
});

test('a result whose call is not there stands alone, until the call is', () => {
  const t = new Transcript();
  place = 10;
  t.cursor = 10;
  t.append([record(...user({ type: 'tool_result', tool_use_id: 'a', content: 'x' }))], 10);
  same([kinds(t), t.blocks[0].name], [['tool'], 'Result']);
  place = 9;
  t.prepend([record(...assistant({ type: 'tool_use', id: 'a', name: 'Bash', input: { command: 'ls' } }))], 10);
  same([kinds(t), t.blocks[0].name, t.blocks[0].result.text, t.first], [['tool'], 'Bash', 'x', 10]);
});

test('a command of Codex is one block from its start to its end', () => {
  const t = transcript(
    item('item/started', { type: 'commandExecution', id: 'c', command: 'make', status: 'inProgress' }),
    item('item/completed', { type: 'commandExecution', id: 'c', command: 'make', status: 'failed', exitCode: 2, aggregatedOutput: 'no rule' }),
    item('item/completed', { type: 'fileChange', id: 'f', status: 'completed', changes: [{ path: 'a.go', diff: '+x' }] }),
    item('item/completed', { type: 'agentMessage', id: 'm', text: 'Done.' }),
    ['codex', 'error', { method: 'error', params: { error: { message: 'busy' }, willRetry: true } }]);
  same(kinds(t), ['tool', 'tool', 'text', 'note']);
  same([t.blocks[0].result.why, t.blocks[1].argument, t.blocks[3].tone], ['exit code 2', 'a.go', 'warn']);
});

test('records of older sessions read like those of today', () => {
  const t = transcript(
    ['claude_code', 'assistant', { kind: 'assistant', content: [{ type: 'text', text: 'old' }] }, { record_format: 'claude_sdk@1' }],
    ['codex', 'item.completed', { type: 'item.completed', item: { type: 'command_execution', id: 'c', command: 'ls', exit_code: 0, aggregated_output: 'x' } }, { record_format: 'codex_jsonl@1' }]);
  same([kinds(t), t.blocks[1].result.text], [['text', 'tool'], 'x']);
});

test('a step of the environment has its output, and ends with what follows', () => {
  const t = transcript(
    ['lifecycle', 'environment_phase', { phase: 'setup', step: 'build_base', status: 'started' }],
    ['lifecycle', 'environment_output', { phase: 'setup', step: 'build_base', stream: 'stdout', chunk: 0, lines: ['a', 'b'] }],
    ['lifecycle', 'environment_output', { phase: 'setup', step: 'build_base', stream: 'stderr', chunk: 1, lines: ['c'] }],
    ['lifecycle', 'environment_phase', { phase: 'setup', step: 'build_base', status: 'completed', duration_ms: 900 }],
    ['lifecycle', 'environment_phase', { phase: 'hooks', status: 'started' }],
    ['lifecycle', 'environment_ready', { repositories: ['acme/lamp'], duration_ms: 950 }]);
  same(kinds(t), ['step', 'step', 'ready']);
  same([t.blocks[0].lines.map((l) => l.text), t.blocks[0].status, t.blocks[1].status], [['a', 'b', 'c'], 'completed', 'ended']);
});

test('output of a program is one block, bounded', () => {
  const t = transcript(...Array.from({ length: 30 }, (_, i) => ['command', i % 2 ? 'stderr' : 'stdout', { lines: Array.from({ length: 50 }, (_, n) => `${i}.${n}`) }]));
  same([kinds(t), t.blocks[0].lines.length], [['output'], 1500]);
});

test('a rate limit is told once for each way that it stands', () => {
  const limit = (status, utilization) => ['claude_code', 'rate_limit', { type: 'rate_limit_event', rate_limit_info: { status, rateLimitType: 'five_hour', utilization } }];
  const t = transcript(limit('allowed', 0.1), limit('allowed_warning', 0.85), limit('allowed_warning', 0.9), limit('rejected', 1), limit('allowed', 0));
  same(t.blocks.map((b) => b.state), ['near', 'refused', 'fine']);
});

test('what nobody knows keeps its place, whatever it has', () => {
  const t = transcript(
    ['moon', 'phase', { full: true }], ['lifecycle', 'constructor', { a: 1 }], ['lifecycle', 'message_received', null],
    ['claude_code', 'assistant', { type: 'assistant', message: { content: [null, { type: 'hologram' }] } }], ['codex', 'item/completed', { params: null }]);
  same(kinds(t), ['unknown', 'unknown', 'message', 'unknown', 'unknown', 'unknown']);
});

test('a record that was seen is not shown again, and a gap is said', () => {
  const t = transcript(['moon', 'a', {}], ['moon', 'b', {}]);
  place = 1;
  t.append([record('moon', 'b', {}), record('moon', 'c', {})], 10);
  same(t.blocks.map((b) => b.type), ['a', 'b', 'c']);
  place = 7;
  t.append([record('moon', 'd', {})], 10);
  same([kinds(t).slice(3), t.blocks[3].from, t.blocks[3].to, t.cursor], [['gap', 'unknown'], 4, 7, 8]);
});

test('a long session lets its beginning go, and can have it back', () => {
  const t = new Transcript();
  place = 0;
  const all = Array.from({ length: limits.records + 10 }, () => record('moon', 'x', {}));
  t.append(all, all.length * 10);
  same([t.trim(), t.records.length, t.first], [true, limits.trimTo, all.length - limits.trimTo + 1]);
  same(t.trim(), false);
  t.prepend(all.slice(0, all.length - limits.trimTo), 10_000);
  same([t.first, t.blocks.length, t.cursor], [1, all.length, all.length]);
});

test('making the blocks anew leaves what is live alone', () => {
  const t = transcript(assistant({ type: 'text', text: 'one' }));
  t.frame({ type: 'delta', kind: 'text', turn_id: 't0', text: 'two', output_tokens: 3 }, 10);
  t.again();
  same([t.live.text, t.live.tokens], ['two', 3]);
  t.frame({ type: 'session', session: { turn: { id: 't0', status: 'completed' } } }, 10);
  same(t.live.text, '');
});

test('frames that nobody knows are passed over', () => {
  const t = transcript(['moon', 'a', {}]);
  t.frame({ type: 'fireworks' }, 10);
  t.frame({ type: 'heartbeat', ts: '' }, 10);
  same(t.cursor, 1);
});
