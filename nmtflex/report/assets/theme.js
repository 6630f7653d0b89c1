// Light or dark. It stands in the page's head, so that a stored choice holds before the first paint.
nmtflex.theme = (() => {
  "use strict";

  const KEY = "nmtflex-report-theme";
  const CHOICES = ["auto", "light", "dark"];
  const root = document.documentElement;
  const listeners = [];

  // A page opened from a file may be denied storage: then a choice lasts as long as the page.
  function recall() {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null;
    }
  }

  function remember(choice) {
    try {
      localStorage.setItem(KEY, choice);
    } catch {
      // Nothing to do: the page has the choice.
    }
  }

  function choose(choice) {
    chosen = choice;
    remember(choice);
    show(choice);
  }

  function show(theme) {
    root.dataset.theme = theme;
    tell();
  }

  function tell() {
    for (const listener of listeners) listener();
  }

  function current() {
    return chosen;
  }

  /** Call a function whenever the colours have changed. */
  function onChange(listener) {
    listeners.push(listener);
  }

  const recalled = recall();
  let chosen = CHOICES.includes(recalled) ? recalled : "auto";
  root.dataset.theme = chosen;
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", tell);
  addEventListener("beforeprint", () => show("light")); // paper is white
  addEventListener("afterprint", () => show(chosen));

  return { CHOICES, choose, current, onChange };
})();
