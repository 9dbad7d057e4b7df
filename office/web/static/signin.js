// This module asks for a token. It stays in this tab's session storage, and goes to this office only.

import * as account from './account.js';
import { ask, query } from './api.js';
import { h } from './dom.js';

/**
 * @param {string} reason why one has to sign in again, or empty
 * @param {() => void} done
 * @returns {HTMLElement}
 */
export function signInForm(reason, done) {
  const error = h('p', { class: 'problem', role: 'alert', id: 'sign-in-problem', hidden: reason === '' }, reason);
  const input = h('input', {
    id: 'token', name: 'token', type: 'password', required: true, autocomplete: 'off', spellcheck: 'false', 'aria-describedby': 'token-help sign-in-problem',
  });
  const button = h('button', { type: 'submit', class: 'primary' }, 'Sign in');
  const fail = (text) => {
    error.textContent = text;
    error.hidden = false;
    input.focus();
  };
  const submit = async (event) => {
    event.preventDefault();
    const token = account.cleanToken(input.value);
    if (!/^[\x21-\x7e]+$/.test(token)) {
      fail('A token is one line of letters, digits, dots, dashes and underscores. Paste it whole.');
      return;
    }
    button.disabled = true;
    try {
      await ask('GET', `/v1/sessions${query({ namespace: account.namespace(), limit: 1 })}`, { token });
    } catch (problem) {
      button.disabled = false;
      if (problem.status === 401) {
        fail('The cluster does not know this token. It may have expired: make a new one.');
        return;
      }
      if (problem.status !== 403 && problem.status !== 400) {
        fail(problem.message);
        return;
      }
      // Who may not list this namespace may list another one.
    }
    account.signIn(token);
    done();
  };
  return h('section', { class: 'sign-in', 'aria-labelledby': 'sign-in-title' },
    h('h1', { id: 'sign-in-title' }, 'Watch your agents work'),
    h('p', null, 'Sign in with a token of your cluster. The office asks Kubernetes what you may see and do.'),
    h('form', { onsubmit: submit },
      h('label', { for: 'token' }, 'Kubernetes bearer token'), input, error, button),
    h('div', { class: 'dim', id: 'token-help' },
      h('p', null, 'Make one for a service account that may ', h('code', null, 'get'), ' and ', h('code', null, 'list'), ' ',
        h('code', null, 'workitems/session'), ':'),
      h('pre', { tabindex: '0' }, 'kubectl create token NAME -n NAMESPACE'),
      h('p', null, 'It is kept in this tab until you sign out or close it, and never becomes part of an address.')));
}
