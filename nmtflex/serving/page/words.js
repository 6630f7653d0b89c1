/** The translation word by word, and the shades of the source words that a word comes from. */

import { cut } from "./characters.js";
import { find, make } from "./dom.js";

const MOST = 4; // source words that are named
const LEAST = 0.03; // of the weights of a word that is named
const UNSURE = 0.5; // confidence below which a word is marked

const translation = find("translation");
const shades = find("shades");
const about = find("about");
const hint = find("hint");

let words = []; // of the translation: element, unit, word
let units = []; // each with the elements and texts of its source words
let shown = null; // the word whose sources are shown
let kept = -1; // place of the word that was chosen last: it stays shown
let text = ""; // the text that was translated

/** Show the source without shades: the text behind the text area, which gives it its height. */
export function plainSource(text) {
  shades.replaceChildren(`${text} `);
}

/** Show a translation that nothing is known about. */
export function plain(translated) {
  words = [];
  units = [];
  unmark();
  translation.replaceChildren(translated);
  translation.removeAttribute("role");
  translation.removeAttribute("aria-label");
  translation.removeAttribute("aria-describedby");
  hint.hidden = about.hidden = true;
}

/**
 * Show a translation whose words can be looked at.
 *
 * @param {string} source The text that was translated.
 * @param {object} answer Of /explain.
 */
export function explained(source, answer) {
  plain(answer.translatedText);
  if (!answer.units.some((unit) => unit.targetWords.length)) return;
  units = answer.units.map((unit) => ({ ...unit, parts: [] }));
  if (source !== text) kept = -1;
  text = source;
  shadeSource();
  const spans = units.flatMap((unit) => unit.targetWords.map((word) => ({ unit, word })));
  const parts = cut(answer.translatedText, spans.map(({ word }) => word.span));
  translation.replaceChildren(...parts.map((part) => {
    if (part.span === null) return part.text;
    const { word } = spans[part.span];
    const element = make("span", { className: "word", textContent: part.text, tabIndex: -1 });
    element.classList.toggle("unsure", word.confidence !== null && word.confidence < UNSURE);
    words.push({ element, text: part.text, ...spans[part.span] });
    return element;
  }));
  if (!words.length) return;
  (words[kept] ?? words[0]).element.tabIndex = 0;
  translation.setAttribute("role", "group");
  translation.setAttribute("aria-label", "Translation, word by word");
  translation.setAttribute("aria-describedby", "hint");
  hint.hidden = false;
  show(words[kept] ?? null);
}

function shadeSource() {
  const spans = units.flatMap((unit) => unit.sourceWords.map((span, place) => ({ unit, span, place })));
  const parts = cut(text, spans.map(({ span }) => span));
  shades.replaceChildren(...parts.map((part) => {
    if (part.span === null) return part.text;
    const element = make("span", { className: "shade", textContent: part.text });
    const { unit, place } = spans[part.span];
    unit.parts[place] = { element, text: part.text };
    return element;
  }), " ");
}

function unmark() {
  if (shown) shown.element.classList.remove("shown");
  shown?.element.removeAttribute("aria-describedby");
  for (const element of shades.querySelectorAll(".shade")) {
    element.classList.remove("looked", "skipped");
  }
  shown = null;
}

/** Show where a word comes from; null for none. */
function show(word) {
  if (word === shown) return;
  unmark();
  shown = word;
  about.hidden = !word;
  hint.hidden = Boolean(word) || !words.length;
  if (!word) return;
  word.element.classList.add("shown");
  word.unit.parts.forEach((part, place) => { // those that were not found are left out
    part.element.style.setProperty("--share", Math.max(0, word.word.weights?.[place] ?? 0));
    part.element.classList.toggle("looked", (word.word.weights?.[place] ?? 0) > 0);
    part.element.classList.toggle("skipped", Boolean(word.word.skipped?.[place]));
  });
  about.replaceChildren(...described(word));
  word.element.setAttribute("aria-describedby", "about");
}

const percent = (share) => `${Math.round(100 * share)} %`;

function* described({ text: own, unit, word }) {
  yield make("strong", { textContent: own });
  if (word.weights) {
    yield make("span", { className: "from", textContent: " comes from " });
    yield make("span", { className: "sources" }, ...sources(unit, word.weights));
  } else {
    yield make("span", { className: "from", textContent: " has no known source." });
  }
  const facts = [];
  if (word.confidence !== null) facts.push(`Confidence ${percent(word.confidence)}.`);
  const out = word.skipped?.filter(Boolean).length;
  if (out) facts.push(`The threshold left out ${out} of ${word.skipped.length} words.`);
  if (facts.length) yield make("span", { className: "facts", textContent: facts.join(" ") });
}

function sources(unit, weights) {
  const order = [...weights.keys()].sort((one, other) => weights[other] - weights[one]);
  const named = order.filter((place, rank) => unit.parts[place] && (!rank || weights[place] >= LEAST));
  return named.slice(0, MOST).map((place) => {
    const share = make("span", { className: "share", textContent: ` ${percent(weights[place])}` });
    const element = make("span", { className: "source" }, unit.parts[place].text, share, " ");
    element.style.setProperty("--share", Math.max(0, weights[place]));
    return element;
  });
}

const wordOf = (element) => words.find((word) => word.element === element) ?? null;

function go(word) {
  for (const { element } of words) element.tabIndex = element === word.element ? 0 : -1;
  word.element.focus();
}

translation.addEventListener("pointerover", (event) => {
  if (event.target.classList.contains("word")) show(wordOf(event.target));
});
translation.addEventListener("pointerleave", (event) => {
  if (event.pointerType === "mouse") show(words[kept] ?? null);
});
translation.addEventListener("focusin", (event) => {
  kept = words.indexOf(wordOf(event.target));
  show(words[kept] ?? null);
});
translation.addEventListener("click", (event) => {
  const word = wordOf(event.target);
  if (word && getSelection().isCollapsed) go(word);
});
translation.addEventListener("keydown", (event) => {
  const place = words.indexOf(wordOf(document.activeElement));
  if (place < 0) return;
  const back = getComputedStyle(translation).direction === "rtl" ? 1 : -1;
  const last = words.length - 1;
  const next = {
    ArrowLeft: place + back, ArrowRight: place - back, Home: 0, End: last,
  }[event.key];
  if (event.key === "Escape") {
    kept = -1;
    show(null);
  }
  if (next === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  go(words[Math.min(last, Math.max(0, next))]);
});
