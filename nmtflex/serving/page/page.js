/** The page: translates while the reader types. */

import { length } from "./characters.js";
import * as client from "./client.js";
import { find, make, recall, remember } from "./dom.js";
import * as languages from "./languages.js";
import * as threshold from "./threshold.js";
import * as words from "./words.js";

const PAUSE = 400; // milliseconds after the last key
const SLOW = 300; // milliseconds before the page says that it waits
const ALTERNATIVES = 3;

const text = find("text");
const translation = find("translation");
const key = find("api-key");

let settings = null;
let request = null; // AbortController of the one that runs
let timer = 0;
let slow = 0;
let translated = ""; // the translation that is shown

function say(message) {
  find("status").textContent = message;
  find("status").classList.remove("refused");
  find("again").hidden = true;
}

/** Say what went wrong, and offer another try where it may help. */
function regret(message, again = false) {
  say(message);
  find("status").classList.add("refused");
  find("again").hidden = !again;
}

/** Forget the request that runs; its answer is no longer wanted. */
function cancel() {
  clearTimeout(timer);
  clearTimeout(slow);
  request?.abort();
  request = null;
  translation.classList.remove("old");
}

function showCount() {
  const count = length(text.value);
  const limit = settings?.charLimit ?? -1;
  const shown = (number) => number.toLocaleString("en");
  find("count").textContent = limit < 0 ? shown(count) : `${shown(count)} / ${shown(limit)}`;
  find("clear").hidden = !text.value;
  const long = limit >= 0 && count > limit;
  find("count").classList.toggle("refused", long);
  if (long) {
    regret(`The text has ${shown(count)} characters; this server takes ${shown(limit)} at once.`);
  }
  return { count, long };
}

function showNothing() {
  translated = "";
  words.plain("");
  showOthers([]);
  threshold.hide();
  find("copy").hidden = true;
  say("");
}

/** Translate soon, when the reader rests. */
function soon(pause = PAUSE) {
  cancel();
  timer = setTimeout(translate, pause);
}

async function translate() {
  cancel();
  const q = text.value;
  if (!q.trim()) return showNothing();
  const { count, long } = showCount();
  if (long || !settings || !languages.chosen().target) return;
  if (settings.keyRequired && !key.value) {
    find("key").open = true;
    return regret("This server wants an API key; enter it below.");
  }
  const explain = count <= settings.explainLimit;
  const own = (request = new AbortController());
  slow = setTimeout(() => {
    translation.classList.add("old");
    say("Translating…");
  }, SLOW);
  try {
    const answer = await client.send(explain ? "explain" : "translate", fields(q, explain), own.signal);
    if (own === request) show(q, answer, explain);
  } catch (error) {
    if (own !== request) return;
    if (!(error instanceof client.Refused)) throw error;
    regret(error.message, error.passing);
    if (error.status === 403) find("key").open = true;
  } finally {
    if (own === request) cancel();
  }
}

function fields(q, explain) {
  const found = { q, ...languages.chosen() };
  found.alternatives = Math.min(ALTERNATIVES, settings.alternativesLimit);
  if (explain && threshold.asked() !== undefined) found.tau = threshold.asked();
  if (key.value) found.api_key = key.value;
  return found;
}

function show(q, answer, explain) {
  translated = answer.translatedText;
  languages.setDetected(answer.detectedLanguage?.language ?? null);
  text.lang = languages.spoken() ?? "";
  translation.lang = languages.chosen().target;
  if (explain) {
    words.explained(q, answer);
    threshold.show(answer);
  } else {
    words.plain(translated);
    threshold.hide();
  }
  showOthers(answer.alternatives ?? []);
  find("copy").hidden = !translated;
  say("Translated");
}

function showOthers(texts) {
  const lang = languages.chosen().target;
  const items = texts.map((one) => make("li", { textContent: one, lang, dir: "auto" }));
  find("alternatives").replaceChildren(...items);
  find("others").hidden = !texts.length;
}

function onInput(event) {
  words.plainSource(text.value);
  words.plain(translated); // places in the old text say nothing of the new one
  threshold.forget();
  say("");
  showCount();
  if (!event?.isComposing) soon();
}

async function copy() {
  try {
    await navigator.clipboard.writeText(translated);
  } catch {
    const range = document.createRange(); // where the page is not from a safe origin
    range.selectNodeContents(translation);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    document.execCommand("copy");
  }
  say("Copied");
}

function swap() {
  text.value = translated || text.value;
  languages.exchange(anew);
}

/** Translate with other languages: nothing that is shown holds for them. */
function anew() {
  threshold.hide();
  onInput();
  soon(0);
}

async function start() {
  words.plainSource(text.value);
  let served;
  try {
    [settings, served] = await Promise.all([client.settings(), client.languages()]);
  } catch (error) {
    if (!(error instanceof client.Refused)) throw error;
    return regret(error.message, true);
  }
  languages.start(served, settings.language.target.code, anew);
  key.value = (settings.apiKeys && recall("key", "sessionStorage")) || "";
  find("key").hidden = !settings.apiKeys;
  find("key").open = settings.keyRequired && !key.value;
  say("");
  showCount();
  if (text.value) onInput();
}

text.addEventListener("input", onInput);
text.addEventListener("compositionend", () => soon());
find("clear").addEventListener("click", () => {
  text.value = "";
  onInput();
  translate();
  text.focus();
});
find("again").addEventListener("click", () => (settings ? translate() : start()));
find("copy").addEventListener("click", copy);
find("swap").addEventListener("click", swap);
threshold.onChange(translate);
key.addEventListener("change", () => {
  remember("key", key.value, "sessionStorage");
  soon(0);
});
start();
