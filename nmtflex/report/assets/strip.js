// Source and translation as running words, with lines between them: what each step looked at.
nmtflex.Strip = (() => {
  "use strict";

  const { element, setStyle, shape } = nmtflex.dom;
  const { visible } = nmtflex.text;
  const { shade, textOn } = nmtflex.colours;
  const { isComputed } = nmtflex.trace;

  const FAINT = 0.1; // least weight whose line is drawn at a step that is not the current one
  const CLEAR = 0.01; // and at the current one

  const SHADED = "Source, shaded by the weights of the step";

  function optionId(step) {
    return `step-${step}`;
  }

  function word(token, attributes) {
    return element("span", { class: "word", dir: "auto", ...attributes }, visible(token));
  }

  function setLanguage(node, language) {
    if (language) node.lang = language;
    else node.removeAttribute("lang");
  }

  /** Return where lines leave the words of the source and reach those of the target. */
  function endsOf(source, target) {
    const middle = (node) => node.offsetLeft + node.offsetWidth / 2;
    return {
      from: [...source.children].map((node) => [middle(node), node.offsetTop + node.offsetHeight]),
      to: [...target.children].map((node) => [middle(node), node.offsetTop]),
    };
  }

  function curves(weights, step, { from, to }, least) {
    const [x2, y2] = to[step];
    return weights.flatMap((thousandths, place) => {
      const weight = thousandths / 1000;
      if (weight < least) return [];
      const [x1, y1] = from[place];
      const half = (y1 + y2) / 2;
      const d = `M${x1} ${y1}C${x1} ${half} ${x2} ${half} ${x2} ${y2}`;
      return [shape("path", { d, "stroke-opacity": Math.min(1, weight).toFixed(3) })];
    });
  }

  class Strip {
    #faint = shape("g", { class: "faint" });
    #clear = shape("g", { class: "clear" });
    #label = element("p", { class: "label" });
    #source = element("p", { class: "words source", dir: "auto" });
    #target;
    #trace = null;
    #step = 0;
    #ends = null; // read when the words have moved, for reading lays out the page

    /** `onStep` takes the number of the step that is clicked. */
    constructor({ onStep }) {
      this.#target = element("div", {
        class: "words target",
        role: "listbox",
        tabindex: "0",
        dir: "auto",
        "aria-orientation": "horizontal",
        "aria-label": "Steps: the tokens of the translation",
        click: (event) => {
          const option = event.target.closest("[role=option]");
          if (option) onStep([...this.#target.children].indexOf(option));
        },
      });
      this.node = element(
        "div",
        { class: "strip" },
        shape("svg", { class: "lines", "aria-hidden": "true" }, this.#faint, this.#clear),
        this.#label,
        this.#source,
        this.#target,
        element("p", { class: "label" }, "Translation, a token a step"),
      );
      new ResizeObserver(() => this.draw()).observe(this.node);
    }

    show(trace, languages) {
      this.#trace = trace;
      this.#step = 0;
      this.#ends = null;
      this.#label.textContent = trace.weights ? SHADED : "Source";
      setLanguage(this.#source, languages.source);
      setLanguage(this.#target, languages.target);
      this.#source.replaceChildren(...trace.source.flatMap((token) => [word(token), " "]));
      this.#target.replaceChildren(
        ...trace.target.map((token, step) =>
          word(token, { role: "option", id: optionId(step), "aria-selected": "false" }),
        ),
      );
    }

    select(step) {
      const options = this.#target.children;
      options[this.#step].setAttribute("aria-selected", "false");
      options[step].setAttribute("aria-selected", "true");
      this.#target.setAttribute("aria-activedescendant", optionId(step));
      this.#step = step;
      this.#paint();
      this.#drawStep();
    }

    /** Draw all lines, when words or theme are new. */
    draw() {
      if (!this.#trace || !this.node.clientWidth) return;
      const rows = this.#trace.weights ?? [];
      this.#ends = endsOf(this.#source, this.#target);
      this.#faint.replaceChildren(
        ...rows.flatMap((weights, step) => curves(weights, step, this.#ends, FAINT)),
      );
      this.#drawStep();
    }

    #paint() {
      const weights = this.#trace.weights?.[this.#step];
      [...this.#source.children].forEach((node, place) => {
        const inside = isComputed(this.#trace, this.#step, place);
        const shaded = weights && inside ? shade(weights[place] / 1000) : null;
        node.classList.toggle("outside", !inside);
        setStyle(node, {
          "background-color": shaded ? `rgb(${shaded})` : "",
          color: shaded ? textOn(shaded) : "",
        });
      });
    }

    #drawStep() {
      const weights = this.#trace.weights?.[this.#step];
      const drawn = weights && this.#ends ? curves(weights, this.#step, this.#ends, CLEAR) : [];
      this.#clear.replaceChildren(...drawn);
    }
  }

  return Strip;
})();
