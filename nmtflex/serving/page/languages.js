/** The choice of languages. */

import { find, make, recall, remember } from "./dom.js";

export const AUTO = "auto";

const source = find("source");
const target = find("target");
const swap = find("swap");
const detect = make("option", { value: AUTO, textContent: "Detect language" });

let known = []; // of the server: code, name, targets
let detected = null;

const nameOf = (code) => known.find((one) => one.code === code)?.name ?? code;
const targetsOf = (code) => {
  const from = known.filter((one) => code === AUTO || one.code === code);
  const found = new Set(from.flatMap((one) => one.targets.filter((other) => other !== one.code)));
  return known.map((one) => one.code).filter((other) => found.has(other));
};

/** The languages chosen. */
export const chosen = () => ({ source: source.value, target: target.value });

/** The language of the text: the chosen one, or the one that was found; null if it is not known. */
export const spoken = () => (source.value === AUTO ? detected : source.value);

/**
 * Fill both lists, and choose what was chosen last, or else what fits the reader.
 *
 * @param {object[]} served Languages of the server.
 * @param {string} usual Target to offer first.
 * @param {() => void} changed Called after each choice of the reader.
 */
export function start(served, usual, changed) {
  known = served;
  const sources = known.filter((one) => targetsOf(one.code).length);
  source.append(detect, ...sources.map((one) => option(one.code)));
  const first = sources.length === 1 ? sources[0].code : AUTO;
  choose(source, recall("source"), first);
  fillTargets([recall("target"), ...navigator.languages.map((tag) => tag.split("-")[0]), usual]);
  source.addEventListener("change", () => {
    setDetected(null);
    fillTargets([target.value]);
    keep(changed);
  });
  target.addEventListener("change", () => keep(changed));
}

/** Show which language was found, or that none is known. */
export function setDetected(code) {
  detected = code;
  detect.textContent = code ? `${nameOf(code)} (detected)` : "Detect language";
  showSwap();
}

/** Exchange the languages. Call it where ``swap`` is not disabled. */
export function exchange(changed) {
  const from = spoken();
  choose(source, target.value, AUTO);
  setDetected(null);
  fillTargets([from]);
  keep(changed);
}

function keep(changed) {
  remember("source", source.value);
  remember("target", target.value);
  showSwap();
  changed();
}

function option(code) {
  return make("option", { value: code, textContent: nameOf(code) });
}

function choose(list, ...wanted) {
  const offered = [...list.options].map((one) => one.value);
  list.value = wanted.find((code) => offered.includes(code)) ?? offered[0] ?? "";
}

function fillTargets(wanted) {
  target.replaceChildren(...targetsOf(source.value).map(option));
  choose(target, ...wanted);
  showSwap();
}

function showSwap() {
  const from = spoken();
  swap.disabled = !from || !targetsOf(target.value).includes(from);
}
