// This module reads the notifications of Codex, of today (codex_app_server@1) and of older sessions (codex_jsonl@1). It is pure.

import { list, num, str } from './fold.js';
import { unknown } from './other.js';
import { echo } from './claude.js';
import { argumentOf, resultText } from './tools.js';

/** Notifications that say nothing to people which others do not say. */
const quiet = new Set(['turn/started', 'thread/tokenUsage/updated', 'item/updated']);

/**
 * @param {import('./fold.js').Transcript} t
 * @param {any} record
 * @param {any} payload
 */
export function codex(t, record, payload) {
  const n = record.record_format === 'codex_jsonl@1' ? ofToday(payload) : payload;
  const params = n.params || {};
  switch (n.method) {
    case 'thread/started':
      return t.note('dim', ['Codex starts', str(params.thread?.cliVersion), str(params.thread?.cwd) && `in ${params.thread.cwd}`].filter(Boolean).join(' '));
    case 'item/started':
      return started(t, params.item);
    case 'item/completed':
      return completed(t, record, params.item || {});
    case 'error':
      return failed(t, params);
    case 'turn/completed':
      if (params.turn?.error) t.note('bad', `Codex failed: ${str(params.turn.error.message)}`);
      return;
    case 'account/rateLimits/updated':
      return rateLimits(t, params.rateLimits || {});
  }
  if (!quiet.has(n.method)) unknown(t, record);
}

/** The words of older sessions in those of today. */
const words = {
  'thread.started': 'thread/started', 'turn.started': 'turn/started', 'turn.completed': 'turn/completed', 'turn.failed': 'turn/completed',
  'item.started': 'item/started', 'item.updated': 'item/updated', 'item.completed': 'item/completed', error: 'error',
};
const items = {
  agent_message: 'agentMessage', command_execution: 'commandExecution', file_change: 'fileChange', mcp_tool_call: 'mcpToolCall',
  web_search: 'webSearch', reasoning: 'reasoning',
};

/** Gives a message of older sessions the form of today's. */
function ofToday(m) {
  const item = m.item && {
    ...m.item, type: items[m.item.type] || m.item.type, aggregatedOutput: m.item.aggregated_output, exitCode: m.item.exit_code,
    summary: m.item.type === 'reasoning' ? [m.item.text] : undefined,
  };
  return { method: words[m.type] || m.type, params: { item, turn: m, error: { message: m.message }, thread: {} } };
}

/** The use of a tool that an item is; null where it is none. */
function callOf(i) {
  switch (i?.type) {
    case 'commandExecution':
      return { name: 'Bash', argument: str(i.command), input: i.cwd ? { command: i.command, cwd: i.cwd } : { command: i.command } };
    case 'fileChange':
      return { name: 'Edit', argument: list(i.changes).map((c) => str(c?.path)).join(', '), input: undefined };
    case 'webSearch':
      return { name: 'WebSearch', argument: str(i.query), input: undefined };
    case 'mcpToolCall':
      return { name: `${str(i.server)}.${str(i.tool)}`, argument: argumentOf(i.arguments), input: i.arguments };
  }
  return null;
}

function started(t, i) {
  const call = callOf(i);
  if (call) t.used(str(i.id), call, false);
}

function completed(t, record, i) {
  const call = callOf(i);
  if (call) {
    const id = str(i.id) || `#${t.now.seq}`;
    const block = t.calls.get(id);
    if (block) Object.assign(block, call);
    else t.used(id, call, false);
    return t.came(id, resultOf(i), false);
  }
  switch (i.type) {
    case 'agentMessage':
      return t.said(str(i.text), false);
    case 'userMessage':
      return echo(t, record, list(i.content).map((c) => str(c?.text)).filter(Boolean).join('\n'));
    case 'reasoning':
      return t.thinks(list(i.summary).map(str).join('\n\n'), false);
    case 'plan':
      return t.note('dim', 'Codex plans', str(i.text));
    case 'contextCompaction':
      return t.note('dim', 'The conversation was shortened to its essence.');
    case 'error':
      return t.note('bad', `Codex: ${str(i.text) || str(i.message)}`);
  }
  return unknown(t, record);
}

/** What came of an item that is the use of a tool. */
function resultOf(i) {
  const result = { text: str(i.aggregatedOutput), failed: i.status === 'failed', why: '' };
  if (i.status === 'declined') Object.assign(result, { failed: true, why: 'not allowed' });
  else if (num(i.exitCode)) Object.assign(result, { failed: true, why: `exit code ${i.exitCode}` });
  else if (i.error) Object.assign(result, { failed: true, why: str(i.error.message) });
  for (const change of list(i.changes)) if (str(change?.diff)) result.text += `${str(change.path)}\n${change.diff.trimEnd()}\n`;
  if (i.result) result.text += resultText(i.result.content);
  return result;
}

function failed(t, params) {
  const text = [`Codex: ${str(params.error?.message)}`, str(params.error?.additionalDetails)].filter(Boolean).join(' – ');
  t.note(params.willRetry === true ? 'warn' : 'bad', params.willRetry === true ? `${text}; it tries again` : text);
}

function rateLimits(t, both) {
  for (const name of ['primary', 'secondary']) {
    const w = both[name];
    const percent = num(w?.usedPercent);
    if (percent === null) continue;
    const minutes = num(w.windowDurationMins);
    t.limit({
      name: minutes ? `${Math.round(minutes / 60)} h` : name, status: percent >= 100 ? 'rejected' : 'allowed', used: percent / 100, resets: num(w.resetsAt),
    });
  }
}
