// This module keeps who is signed in: a bearer token, for as long as the tab lives, and nowhere else.

const key = 'bullpen.token';
const namespaceKey = 'bullpen.namespace';

/** The token, empty while nobody is signed in. */
export const token = () => sessionStorage.getItem(key) || '';

/** @param {string} value */
export const signIn = (value) => sessionStorage.setItem(key, value);

export const signOut = () => sessionStorage.removeItem(key);

/** The namespace that was looked at last; empty means all. */
export const namespace = () => localStorage.getItem(namespaceKey) ?? 'default';

/** @param {string} value */
export const setNamespace = (value) => localStorage.setItem(namespaceKey, value);

/**
 * A token as people paste it, without what often comes along.
 * @param {string} pasted
 */
export const cleanToken = (pasted) => pasted.replace(/^\s*bearer\s+/i, '').replace(/\s+/g, '');
