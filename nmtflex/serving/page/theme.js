// Light or dark. A script of the page's head, so that a stored choice holds before the first paint.
(() => {
  "use strict";

  const KEY = "nmtflex-theme";
  const CHOICES = ["auto", "light", "dark"];
  const NAMES = { auto: "automatic", light: "light", dark: "dark" };
  const root = document.documentElement;

  // Storage may be denied: then a choice lasts as long as the page.
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
      // The page has the choice.
    }
  }

  const recalled = recall();
  root.dataset.theme = CHOICES.includes(recalled) ? recalled : "auto";

  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const show = () => {
      button.textContent = `Theme: ${NAMES[root.dataset.theme]}`;
    };
    button.addEventListener("click", () => {
      const next = CHOICES[(CHOICES.indexOf(root.dataset.theme) + 1) % CHOICES.length];
      root.dataset.theme = next;
      remember(next);
      show();
    });
    show();
  });
})();
