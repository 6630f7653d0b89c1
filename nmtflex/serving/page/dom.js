/** Elements, and what lasts longer than the page. */

export const find = (id) => document.getElementById(id);

/** Make an element with properties and children. */
export function make(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

/** A value of an earlier visit, or null; storage may be denied. */
export function recall(name, storage = "localStorage") {
  try {
    return window[storage].getItem(`nmtflex-${name}`);
  } catch {
    return null;
  }
}

export function remember(name, value, storage = "localStorage") {
  try {
    window[storage].setItem(`nmtflex-${name}`, value);
  } catch {
    // The page has the value as long as it is open.
  }
}
