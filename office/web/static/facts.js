// This module shows what is known of a session beside its records: who, with what, how far, at what cost, and what became of it in git.

import { h, link } from './dom.js';
import { age, cost, count, fullTime, oneLine, plural } from './format.js';
import { about, badge } from './list.js';

/**
 * The runtime and the model of a session.
 * @param {any} session
 */
export function runtimeOf(session) {
  const notes = session.agent?.config?.ellipsis?.metadata?.annotations || {};
  const runtime = session.claude_code ? 'Claude Code' : session.codex ? 'Codex' : notes['bullpen.dev/runtime'] || 'command';
  const model = session.turn?.tokens?.model || session.tokens?.model || session.claude_code?.model || session.codex?.model || '';
  return { runtime, model };
}

/**
 * The facts as a list of terms.
 * @param {any} session
 * @returns {HTMLElement[]}
 */
export function facts(session) {
  const a = about(session);
  const { runtime, model } = runtimeOf(session);
  const t = session.tokens || {};
  const turn = session.turn;
  const fact = (name, ...value) => h('div', { class: 'fact' }, h('dt', null, name), h('dd', null, ...value));
  return [
    fact('Person', a.person || 'nobody yet'),
    fact('Runtime', runtime, model && h('span', { class: 'dim' }, ` ${oneLine(model, 60)}`)),
    turn && fact('Turn', `${turn.index + 1} `, badge(turn.status), turn.reason && h('span', { class: 'dim' }, ` ${turn.reason}`)),
    fact('Cost', cost(session.cost?.total)),
    fact('Tokens', h('span', {
      title: `input ${t.input || 0}, output ${t.output || 0}, cache read ${t.cache_read || 0}, cache written ${t.cache_creation || 0}`,
    },
      count(t.total || 0), t.output > 0 && h('span', { class: 'dim' }, ` ${count(t.output)} out`))),
    fact('Begun', h('time', { datetime: session.created_at, title: fullTime(session.created_at) }, `${age(session.created_at, Date.now())} ago`)),
  ].filter(Boolean);
}

/**
 * What the session did to git.
 * @param {any} session
 * @returns {HTMLElement[]}
 */
export function git(session) {
  return (session.git?.repos || []).map((repo) => {
    const unpushed = repo.commits.filter((c) => !c.pushed).length;
    const dirty = repo.local_uncommitted_files.length;
    const words = [plural(repo.commits_total, 'commit'), unpushed ? `${unpushed} not pushed` : '', dirty ? `${plural(dirty, 'file')} uncommitted` : ''];
    return h('section', { class: 'repo', 'aria-label': `Repository ${repo.full_name}` },
      h('h2', null, repo.full_name),
      h('p', null, h('code', { class: 'branch' }, repo.remote_branch || 'no branch at the remote'), ' ',
        h('span', { class: 'dim' }, words.filter(Boolean).join(' · '))),
      repo.commits.length > 0 && h('ol', { class: 'commits' }, repo.commits.slice(0, 8).map((c) =>
        h('li', null, h('code', null, c.sha.slice(0, 7)), ' ', oneLine(c.subject, 120), !c.pushed && h('span', { class: 'tag' }, 'not pushed')))),
      repo.prs.map((pr) => h('p', null, link(pr.url, `#${pr.number} ${oneLine(pr.title || '', 100)}`))));
  });
}
