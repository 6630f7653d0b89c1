/** The threshold of flexible attention, and what it costs and saves. */

import { find } from "./dom.js";

// The last place is no threshold.
const TAUS = [0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.2, 1.4, 1.7, 2, 2.5, 3, 4, 6, Infinity];
const PAUSE = 150; // milliseconds

const section = find("threshold");
const slider = find("tau");

let times = new Map(); // of the present text, by threshold, in milliseconds
let touched = false;

slider.max = TAUS.length - 1;
slider.value = TAUS.length - 1;

const inWords = (tau) => (Number.isFinite(tau) ? `${tau}` : "none");

function showTau() {
  const tau = TAUS[slider.value];
  find("tau-shown").textContent = inWords(tau);
  slider.setAttribute("aria-valuetext", Number.isFinite(tau) ? `${tau}` : "no threshold");
}

/** The threshold to ask for; undefined for the server's own. */
export function asked() {
  if (section.hidden || !touched) return undefined;
  const tau = TAUS[slider.value];
  return Number.isFinite(tau) ? tau : "inf";
}

/** Call a function when the reader has chosen another threshold. */
export function onChange(changed) {
  let timer = 0;
  slider.addEventListener("input", () => {
    touched = true;
    showTau();
    clearTimeout(timer);
    timer = setTimeout(changed, PAUSE);
  });
}

/** Forget the times: the text is another one. */
export function forget() {
  times = new Map();
}

/** Hide the threshold: the languages may have another model. */
export function hide() {
  section.hidden = true;
}

/** Show what an answer of /explain cost. */
export function show(answer) {
  section.hidden = !answer.thresholds || !answer.units.length;
  if (section.hidden) return;
  const used = answer.tau ?? Infinity;
  if (!touched) slider.value = nearest(used);
  showTau();
  const mean = (name) => answer.units.reduce((sum, unit) => sum + unit[name], 0) / answer.units.length;
  const time = answer.units.reduce((sum, unit) => sum + unit.milliseconds, 0);
  times.set(used, time);
  const before = times.get(Infinity);
  const saved = Number.isFinite(used);
  find("cps").textContent = mean("cps").toFixed(1);
  find("cps-of").textContent = saved ? `of ${mean("positions").toFixed(1)}` : "";
  find("time").textContent = milliseconds(time);
  find("time-of").textContent = saved && before !== undefined ? `without: ${milliseconds(before)}` : "";
}

function nearest(tau) {
  const far = (place) => Math.abs(TAUS[place] - tau) || 0;
  if (!Number.isFinite(tau)) return TAUS.length - 1;
  return [...TAUS.keys()].reduce((one, other) => (far(other) < far(one) ? other : one));
}

const milliseconds = (time) => `${time < 10 ? time.toFixed(1) : Math.round(time)} ms`;

showTau();
