// The buttons that go through the steps of decoding, and the clock that plays them.
nmtflex.StepButtons = (() => {
  "use strict";

  const { element, shape } = nmtflex.dom;

  const PACE = 700; // milliseconds a step
  const CALM_PACE = 1500; // for who asked for less motion
  const ICONS = {
    Home: "M3 3h2v10H3zM13 3v10L6 8z",
    ArrowLeft: "M12 3v10L4 8z",
    ArrowRight: "M4 3v10l8-5z",
    End: "M11 3h2v10h-2zM3 3v10l7-5z",
    play: "M4 2v12l10-6z",
    pause: "M3 2h4v12H3zM9 2h4v12H9z",
  };

  function icon(name) {
    const path = shape("path", { d: ICONS[name] });
    return shape("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, path);
  }

  function button(name, label, click) {
    const node = element("button", { type: "button", click });
    relabel(node, name, label);
    return node;
  }

  function relabel(node, name, label) {
    node.replaceChildren(icon(name));
    node.setAttribute("aria-label", label);
    node.title = label;
  }

  class StepButtons {
    #step = 0;
    #count = 0;
    #clock = null;
    #onStep;
    #onPlay;
    #play;
    #back;
    #forth;

    /** `onStep` takes the number of a step from 0, `onPlay` whether the steps play. */
    constructor({ onStep, onPlay }) {
      this.#onStep = onStep;
      this.#onPlay = onPlay;
      const walking = (key, label) => button(key, label, () => this.go(key));
      this.#play = button("play", "Play", () => this.#toggle());
      this.#back = [walking("Home", "First step"), walking("ArrowLeft", "Previous step")];
      this.#forth = [walking("ArrowRight", "Next step"), walking("End", "Last step")];
      this.node = element(
        "div",
        { class: "step-buttons", role: "group", "aria-label": "Steps of decoding" },
        ...this.#back,
        this.#play,
        ...this.#forth,
      );
    }

    /** Show where one is. Not by "disabled", which would take the focus from who holds a key. */
    show(step, count) {
      this.#step = step;
      this.#count = count;
      const atStart = String(step === 0);
      const atEnd = String(step >= count - 1);
      for (const node of this.#back) node.setAttribute("aria-disabled", atStart);
      for (const node of this.#forth) node.setAttribute("aria-disabled", atEnd);
    }

    /** Go where a key of the keyboard goes; false if it is none of the steps'. */
    go(key) {
      const places = {
        Home: 0,
        ArrowLeft: this.#step - 1,
        ArrowRight: this.#step + 1,
        End: this.#count - 1,
      };
      if (!(key in places)) return false;
      this.pause();
      this.#move(places[key]);
      return true;
    }

    pause() {
      if (this.#clock === null) return;
      clearInterval(this.#clock);
      this.#clock = null;
      relabel(this.#play, "play", "Play");
      this.#onPlay(false);
    }

    #move(wanted) {
      const next = Math.min(this.#count - 1, Math.max(0, wanted));
      if (next !== this.#step) this.#onStep(next);
    }

    #toggle() {
      if (this.#clock !== null) {
        this.pause();
        return;
      }
      this.#onPlay(true);
      relabel(this.#play, "pause", "Pause");
      const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
      this.#clock = setInterval(() => this.#tick(), calm ? CALM_PACE : PACE);
      if (this.#step === this.#count - 1) this.#move(0);
    }

    #tick() {
      this.#move(this.#step + 1);
      if (this.#step === this.#count - 1) this.pause();
    }
  }

  return StepButtons;
})();
