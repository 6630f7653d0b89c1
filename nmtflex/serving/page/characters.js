/**
 * The server counts characters (code points), JavaScript counts units of 16 bits.
 */

/** How many characters a text has. */
export function length(text) {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

/**
 * Cut a text at spans.
 *
 * @param {string} text
 * @param {[number, number][]} spans Of characters, in any order; those that are empty or overlap an
 *   earlier one are left out.
 * @returns {{text: string, span: number | null}[]} All of the text in order, and which span a part is.
 */
export function cut(text, spans) {
  const characters = Array.from(text);
  const order = [...spans.keys()].sort((one, other) => spans[one][0] - spans[other][0]);
  const parts = [];
  let place = 0;
  const add = (end, span) => {
    if (end > place) parts.push({ text: characters.slice(place, end).join(""), span });
    place = Math.max(place, end);
  };
  for (const number of order) {
    const [start, end] = spans[number];
    if (start < place || end <= start) continue;
    add(start, null);
    add(end, number);
  }
  add(characters.length, null);
  return parts;
}
