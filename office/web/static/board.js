// This module sorts sessions into the board of work items. It is pure.

/** The columns of the board, with the states that belong there. */
export const columns = [
  { name: 'Running', states: ['active'] },
  { name: 'Waiting', states: ['waiting', 'blocked'] },
  { name: 'Queued', states: ['queued'] },
  { name: 'Done', states: ['done', 'canceled'] },
];

/** How many finished items of a person are shown. */
export const mostDone = 8;

/**
 * Sorts sessions, the latest first, by person and column. An item that had several sessions is shown once, by its latest. People who run
 * something come first, then by name; what nobody has comes last.
 * @param {any[]} sessions
 * @returns {{person: string, cells: any[][], hidden: number}[]}
 */
export function board(sessions) {
  const people = new Map();
  const seen = new Set();
  for (const session of sessions) {
    const m = session.metadata || {};
    const item = m.work_item_id || session.id;
    if (seen.has(item)) continue;
    seen.add(item);
    const column = columns.findIndex((c) => c.states.includes(m.state));
    if (column < 0) continue;
    const person = m.person || '';
    if (!people.has(person)) people.set(person, { person, cells: columns.map(() => []), hidden: 0 });
    const row = people.get(person);
    if (column === 3 && row.cells[3].length >= mostDone) row.hidden++;
    else row.cells[column].push(session);
  }
  return [...people.values()].sort((a, b) => Number(a.person === '') - Number(b.person === '') ||
    Number(b.cells[0].length > 0) - Number(a.cells[0].length > 0) || (a.person < b.person ? -1 : 1));
}
