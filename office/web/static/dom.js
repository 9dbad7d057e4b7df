// This module makes elements. Whatever comes from an agent or a user becomes text, never markup.

/**
 * Makes an element. Children that are strings or numbers become text, null and false are left out.
 * @param {string} tag
 * @param {Record<string, any> | null} [props] class, dataset, on… listeners, and attributes; true is an empty attribute, null and false none
 * @param {...any} children
 * @returns {HTMLElement}
 */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'class') element.className = value;
    else if (name === 'dataset') Object.assign(element.dataset, value);
    else if (name.startsWith('on') && typeof value === 'function') element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false).map((c) => (c instanceof Node ? c : String(c))));
  return element;
}

/**
 * A link to a web address, or plain text where the address is none of http or https.
 * @param {string} address
 * @param {string} [text]
 * @returns {Node}
 */
export function link(address, text) {
  const shown = text || address;
  let url;
  try {
    url = new URL(address);
  } catch {
    return document.createTextNode(shown);
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return document.createTextNode(shown);
  return h('a', { href: url.href, target: '_blank', rel: 'noopener noreferrer' }, shown);
}

/**
 * Sets the text of an element where it differs, so that screen readers and selections are left alone.
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Says something to those who use a screen reader.
 * @param {string} text
 */
export function announce(text) {
  const status = document.getElementById('status');
  if (status) setText(status, text);
}
