// This module reads the messages of Claude Code, of today (claude_jsonl@1) and of older sessions (claude_sdk@1). It is pure.

import { list, num, str } from './fold.js';
import { unknown } from './other.js';
import { argumentOf, resultText } from './tools.js';

/**
 * @param {import('./fold.js').Transcript} t
 * @param {any} record
 * @param {any} payload
 */
export function claude(t, record, payload) {
  const m = record.record_format === 'claude_sdk@1' ? ofToday(payload) : payload;
  switch (m.type) {
    case 'assistant':
      return assistant(t, record, m);
    case 'user':
      return user(t, record, m);
    case 'result':
      return result(t, m);
    case 'rate_limit_event': {
      const l = m.rate_limit_info || {};
      return t.limit({ name: str(l.rateLimitType) || 'usage', status: str(l.status), used: num(l.utilization), resets: num(l.resetsAt) });
    }
    case 'system':
      return system(t, record, m);
    case 'conversation_reset':
      return t.note('dim', 'Claude began a new conversation of its own.');
  }
  return unknown(t, record);
}

/** Gives a message of older sessions the form of today's. */
function ofToday(m) {
  switch (m.kind) {
    case 'rate_limit':
      return {
        type: 'rate_limit_event',
        rate_limit_info: { status: m.status, rateLimitType: m.rate_limit_type, utilization: m.utilization, resetsAt: m.resets_at },
      };
    case 'assistant':
    case 'user':
      return { ...m, type: m.kind, message: { content: m.content, model: m.model } };
  }
  return { ...m, type: m.kind };
}

/** The blocks of a message, whose content may be a text. */
const blocksOf = (m) => (typeof m.message?.content === 'string' ? [{ type: 'text', text: m.message.content }] : list(m.message?.content));

const isSub = (m) => typeof m.parent_tool_use_id === 'string';

function assistant(t, record, m) {
  const sub = isSub(m);
  for (const b of blocksOf(m)) {
    switch (b?.type) {
      case 'text':
        t.said(str(b.text), sub);
        break;
      case 'thinking':
        t.thinks(str(b.thinking), sub);
        break;
      case 'redacted_thinking':
        break;
      case 'tool_use':
      case 'server_tool_use':
        t.used(str(b.id), { name: str(b.name) || 'Tool', argument: argumentOf(b.input), input: b.input }, sub);
        break;
      case 'tool_result':
      case 'server_tool_result':
        t.came(str(b.tool_use_id), { text: resultText(b.content), failed: b.is_error === true }, sub);
        break;
      default:
        t.add('unknown', { source: str(record.source), type: `${str(m.type)} · ${str(b?.type)}`, payload: b });
    }
  }
  if (str(m.error)) t.note('bad', `Claude: ${m.error}`);
}

function user(t, record, m) {
  const texts = [];
  for (const b of blocksOf(m)) {
    if (b?.type === 'tool_result' || b?.type === 'server_tool_result') {
      t.came(str(b.tool_use_id), { text: resultText(b.content), failed: b.is_error === true }, isSub(m));
    } else if (b?.type === 'text') {
      texts.push(str(b.text));
    }
  }
  echo(t, record, texts.join('\n'));
}

/**
 * Shows what a runtime was told, unless it repeats a message that stands above.
 * @param {import('./fold.js').Transcript} t
 * @param {any} record
 * @param {string} text
 */
export function echo(t, record, text) {
  const id = str(record.message_id);
  if (!text.trim() || (id && t.told.has(id))) return;
  if (id) {
    t.told.set(id, 'somebody');
    t.add('message', { who: 'somebody', text, last: false });
    return;
  }
  t.add('told', { text });
}

function result(t, m) {
  if (m.is_error !== true && m.subtype === 'success') return; // its text was the last message, its cost comes with the session
  const details = list(m.errors).map(str);
  if (m.is_error === true && str(m.result)) details.unshift(m.result);
  t.note('bad', `Claude ended with ${str(m.subtype) || 'an error'}`, details.join('\n'));
}

function system(t, record, m) {
  switch (m.subtype) {
    case 'init':
      return t.note('dim', ['Claude starts', str(m.model) || str(m.data?.model), str(m.cwd) && `in ${m.cwd}`].filter(Boolean).join(' '));
    case 'compact_boundary':
      return t.note('dim', 'The conversation was shortened to its essence.');
    case 'vcs_state_changed':
      return t.note('dim', `git ${str(m.kind)}`.trim());
    case 'task_started':
      return t.note('dim', `A task began in the background: ${str(m.description)}`);
  }
  return t.add('unknown', { source: str(record.source), type: `system · ${str(m.subtype)}`, payload: m });
}
