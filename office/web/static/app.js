// This module is the page: it signs people in, and shows what the address names.

import * as account from './account.js';
import { h } from './dom.js';
import { SessionsPage } from './sessions.js';
import { WorkPage } from './work.js';
import { SessionPage } from './session.js';
import { signInForm } from './signin.js';

/** What is shown now; close ends what it does in the background. */
let page = { close() {} };

const byId = (id) => document.getElementById(id);

/** The address: a page, what it shows, and its filters. It never has a token in it. */
export function address() {
  const [path, search] = location.hash.replace(/^#/, '').split('?');
  const [, name = '', id = ''] = path.split('/');
  let session = '';
  try {
    session = decodeURIComponent(id);
  } catch {
    // An address that somebody broke names nothing.
  }
  return { name, id: session, filters: new URLSearchParams(search || '') };
}

/** Shows what the address names, or the form where nobody is signed in. */
function show() {
  page.close();
  const { name, id, filters } = address();
  const main = byId('main');
  const signedIn = account.token() !== '';
  for (const part of ['pages', 'namespace-form', 'sign-out']) byId(part).hidden = !signedIn;
  document.body.classList.toggle('at-session', signedIn && name === 's');
  for (const [nav, names] of [['nav-sessions', ['', 'sessions', 's']], ['nav-work', ['work']]]) {
    if (names.includes(name)) byId(nav).setAttribute('aria-current', 'page');
    else byId(nav).removeAttribute('aria-current');
  }
  if (!signedIn) {
    leave('');
    return;
  }
  byId('namespace').value = account.namespace();
  const Page = { s: SessionPage, work: WorkPage }[name] || SessionsPage;
  page = new Page({ id, filters, namespace: account.namespace(), denied });
  main.replaceChildren(page.root);
}

/** Ends what is shown, and asks for a token, with the reason. */
function leave(reason) {
  page.close();
  page = { close() {} };
  account.signOut();
  for (const part of ['pages', 'namespace-form', 'sign-out']) byId(part).hidden = true;
  document.body.classList.remove('at-session');
  document.title = 'Bullpen';
  const form = signInForm(reason, show);
  byId('main').replaceChildren(form);
  form.querySelector('input')?.focus();
}

/** The office does not know the token, or not any more. */
function denied(reason) {
  leave(reason || 'The office does not accept this token any more: sign in again.');
}

byId('sign-out').addEventListener('click', () => leave(''));
byId('namespace-form').addEventListener('submit', (event) => {
  event.preventDefault();
  account.setNamespace(byId('namespace').value.trim());
  if (address().name === 's') location.hash = '#/sessions';
  else show();
});
byId('namespace').addEventListener('change', () => byId('namespace-form').requestSubmit());
byId('skip').addEventListener('click', (event) => {
  event.preventDefault();
  byId('main').focus();
});
window.addEventListener('hashchange', () => {
  show();
  byId('main').focus({ preventScroll: true });
});
byId('main').replaceChildren(h('p', { class: 'dim' }, 'Loading…'));
show();
