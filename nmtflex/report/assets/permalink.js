// The address of what is looked at: #sentence=17&run=2&step=3, sentences counted from 0 as
// everywhere in nmtflex, runs and steps from 1.
nmtflex.permalink = (() => {
  "use strict";

  function whole(text) {
    return /^\d{1,9}$/.test(text ?? "") ? Number(text) : null;
  }

  /** Read the address: null where it names no sentence; run and step from 0. */
  function read() {
    const parts = new URLSearchParams(location.hash.slice(1));
    const index = whole(parts.get("sentence"));
    if (index === null) return null;
    const fromOne = (name) => Math.max(0, (whole(parts.get(name)) ?? 1) - 1);
    return { index, run: fromOne("run"), step: fromOne("step") };
  }

  function write({ index, run, step }) {
    const hash = `#sentence=${index}&run=${run + 1}&step=${step + 1}`;
    if (hash === location.hash) return;
    try {
      history.replaceState(null, "", hash);
    } catch {
      // Some browsers forbid it to pages from a file, or many in a short time; the page goes on.
    }
  }

  /** Call a function when the address is changed by hand. */
  function onChange(listener) {
    addEventListener("hashchange", () => {
      const wanted = read();
      if (wanted) listener(wanted);
    });
  }

  return { onChange, read, write };
})();
