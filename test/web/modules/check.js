// This module has what the tests of the page's pure modules need: a place to put them, and a way to compare.

/** The tests that there are, by their names. */
export const tests = new Map();

/**
 * Adds a test.
 * @param {string} name a sentence
 * @param {() => void | Promise<void>} run
 */
export const test = (name, run) => tests.set(name, run);

/**
 * Fails unless two values are the same as JSON.
 * @param {any} got
 * @param {any} want
 */
export function same(got, want) {
  const [a, b] = [JSON.stringify(got), JSON.stringify(want)];
  if (a !== b) throw new Error(`it is ${a}, not ${b}`);
}

/** Runs all tests and gives the failures, by their names. */
export async function run() {
  const failures = {};
  for (const [name, one] of tests) {
    try {
      await one();
    } catch (error) {
      failures[name] = String(error.stack || error);
    }
  }
  return { count: tests.size, failures };
}
