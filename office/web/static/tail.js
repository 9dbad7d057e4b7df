// This module finds the end of a feed without reading it all. It is pure but for the question that it is given.

/**
 * Finds a place from which a reader gets the last records of a feed, and not many more: at most twice as many as wanted, unless the feed
 * grows meanwhile. It asks once where the feed is short, and a few times more for each time that it is twice as long.
 * @param {(after: number) => Promise<boolean>} hasMore whether there is a record after a place
 * @param {number} wanted how many records are wanted
 * @returns {Promise<number>} the place after which to read; 0 for all of the feed
 */
export async function tail(hasMore, wanted) {
  let low = 0; // there are records after low
  let high = wanted * 2;
  while (high < Number.MAX_SAFE_INTEGER / 4 && (await hasMore(high))) {
    low = high;
    high *= 2;
  }
  if (low === 0) return 0;
  while (high - low > wanted) {
    const middle = Math.floor((low + high) / 2);
    if (await hasMore(middle)) low = middle;
    else high = middle;
  }
  return Math.max(0, low - wanted);
}
