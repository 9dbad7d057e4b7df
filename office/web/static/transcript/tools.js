// This module says in a few words what a tool was asked, and what it gave. It is pure.

import { list, str } from './fold.js';
import { pretty } from '../json.js';

/** The arguments that say most about a call, the best first. */
const telling = [
  'command', 'file_path', 'notebook_path', 'pattern', 'query', 'url', 'path', 'description', 'title', 'prompt', 'skill', 'name', 'message',
];

/**
 * The argument of a call that says most, empty where there is none.
 * @param {any} input
 */
export function argumentOf(input) {
  if (typeof input === 'string') return input;
  if (!input || typeof input !== 'object') return '';
  for (const name of telling) if (typeof input[name] === 'string' && input[name]) return input[name];
  const first = Object.values(input).find((v) => typeof v === 'string' && v);
  return str(first);
}

/**
 * The text of a tool's result: the string that it is, or the texts in it, one a line.
 * @param {any} content
 */
export function resultText(content) {
  if (typeof content === 'string') return content;
  return list(content)
    .map((part) => {
      if (typeof part === 'string') return part;
      if (typeof part?.text === 'string') return part.text;
      return part?.type === 'image' ? '[image]' : pretty(part);
    })
    .join('\n');
}
