// What a run did with a sentence: its steps, what each looked at, and the matrix of it all.
nmtflex.Panel = (() => {
  "use strict";

  const { details, element, note, scrollBox } = nmtflex.dom;
  const { numbers, tell } = nmtflex.stepinfo;
  const { viewsOf } = nmtflex.views;

  const NOTHING = "The source is empty: nothing was decoded.";
  const NO_WEIGHTS = "This run has no attention: no step looks back at the source.";
  const NUMBERS = "Numbers of all steps";

  class Panel {
    #languages;
    #onSentence;
    #steps;
    #strip;
    #matrix;
    #readout = element("p", { class: "readout", role: "status", "aria-live": "polite" });
    #message = note();
    #viewChoice = element("div", { class: "choices" });
    #numbers = element("div");
    #control;
    #trace = null;
    #step = 0;
    #viewName = "weights";

    /** `onStep` takes a step from 0, `onSentence` how far to go in the list of sentences. */
    constructor({ id, languages, onStep, onSentence }) {
      const byHand = (step) => {
        this.pause();
        onStep(step);
      };
      this.#languages = languages;
      this.#onSentence = onSentence;
      this.#steps = new nmtflex.StepButtons({ onStep, onPlay: (plays) => this.#hush(plays) });
      this.#strip = new nmtflex.Strip({ onStep: byHand });
      this.#matrix = new nmtflex.Matrix({ onStep: byHand });
      this.node = this.#build(id);
    }

    #build(id) {
      this.#control = element(
        "div",
        { class: "step-control", tabindex: "-1", keydown: (event) => this.#walk(event) },
        element("div", { class: "step-bar" }, this.#steps.node, this.#readout),
        this.#strip.node,
        element("p", { class: "hint" }, "← → Home End: steps. ↑ ↓: sentences."),
      );
      return element(
        "div",
        { class: "panel", id },
        this.#message,
        this.#control,
        this.#viewChoice,
        this.#matrix.node,
        this.#numbers,
      );
    }

    /** Show a trace, from one of its steps on; null where nothing was decoded. */
    show(trace, step) {
      this.pause();
      this.#trace = trace;
      const views = viewsOf(trace);
      if (!views.some((view) => view.value === this.#viewName)) this.#viewName = "weights";
      this.#control.hidden = !trace;
      this.#matrix.node.hidden = !views.length;
      this.#message.hidden = views.length > 0;
      this.#message.textContent = trace ? NO_WEIGHTS : NOTHING;
      this.#viewChoice.replaceChildren(...this.#chooserOf(views));
      this.#numbers.replaceChildren();
      if (!trace) return;
      this.#numbers.append(details(NUMBERS, () => scrollBox(NUMBERS, numbers(trace))));
      this.#strip.show(trace, this.#languages);
      this.#selectStep(step);
      this.#strip.draw();
      this.#showView();
    }

    /** Go to a step of the trace. */
    select(step) {
      if (!this.#trace) return;
      this.#selectStep(step);
      // The view of the slots shows beside them what the step reads of each.
      if (this.#viewName === "alpha") this.#showView();
      else this.#matrix.select(step);
    }

    /** Draw again, in the colours of another theme. */
    redraw() {
      if (!this.#trace) return;
      this.#selectStep(this.#step);
      this.#showView();
    }

    pause() {
      this.#steps.pause();
    }

    /** Let the arrow keys go through the steps. */
    focus() {
      this.#control.focus({ preventScroll: true });
    }

    #selectStep(step) {
      this.#step = step;
      this.#readout.replaceChildren(
        ...tell(this.#trace, step).map((fact) => element("span", {}, fact)),
      );
      this.#steps.show(step, this.#trace.target.length);
      this.#strip.select(step);
    }

    #showView() {
      const view = viewsOf(this.#trace).find((one) => one.value === this.#viewName);
      if (!view) return;
      this.#matrix.show(view.build(this.#trace, this.#languages, this.#step));
      this.#matrix.select(this.#step);
    }

    #chooserOf(views) {
      if (views.length < 2) return [];
      const onChange = (name) => {
        this.#viewName = name;
        this.#showView();
      };
      const value = this.#viewName;
      return [nmtflex.controls.choice({ legend: "Matrix", options: views, value, onChange })];
    }

    // Step by step is told; what plays would be told faster than anyone can listen.
    #hush(plays) {
      this.#readout.setAttribute("aria-live", plays ? "off" : "polite");
    }

    #walk(event) {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      const sentences = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (sentences) this.#onSentence(sentences);
      else if (!this.#steps.go(event.key)) return;
      event.preventDefault();
    }
  }

  return Panel;
})();
