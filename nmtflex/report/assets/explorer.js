// The sentences: one list, one chosen sentence, one run of several, one step.
nmtflex.explorer = (() => {
  "use strict";

  const { element, note } = nmtflex.dom;
  const { guessLanguage } = nmtflex.text;
  const { permalink } = nmtflex;

  function languagesOf({ sentences, source_lang: source, target_lang: target }) {
    return {
      source: source ?? guessLanguage(sentences.map((one) => one.source)),
      target: target ?? guessLanguage(sentences.map((one) => one.reference)),
    };
  }

  class Explorer {
    #runs;
    #sentences;
    #languages;
    #place = null;
    #run = 0;
    #step = 0;
    #traces = [];
    #heading = element("h3", { id: "sentence-heading" });
    #texts = element("div");
    #list;
    #panel;
    #tabs = null;

    constructor(report) {
      this.#runs = report.runs;
      this.#sentences = report.sentences;
      this.#languages = languagesOf(report);
      this.#panel = new nmtflex.Panel({
        id: "sentence-panel",
        languages: this.#languages,
        onStep: (step) => this.#byHand(() => this.#goToStep(step)),
        onSentence: (steps) => this.#list.move(steps),
      });
      this.#list = new nmtflex.SentenceList({
        sentences: this.#sentences,
        runs: this.#runs,
        language: this.#languages.source,
        onChoose: (place) => this.#byHand(() => this.#goTo(place, this.#run, 0)),
      });
      if (this.#runs.length > 1) this.#tabs = this.#buildTabs();
      this.node = this.#build();
    }

    /** Show the first sentence, or that of the address; the node must be in the page by now. */
    start() {
      if (!this.#followAddress()) this.#goTo(0, 0, 0);
      permalink.onChange(() => this.#followAddress());
      nmtflex.theme.onChange(() => this.#panel.redraw());
    }

    #build() {
      return element(
        "div",
        { class: "explorer" },
        this.#list.node,
        element(
          "article",
          { class: "sentence", "aria-labelledby": this.#heading.id },
          this.#heading,
          this.#texts,
          this.#tabs?.node,
          this.#panel.node,
        ),
      );
    }

    #buildTabs() {
      return nmtflex.controls.tabs({
        label: "Run",
        labels: this.#runs.map((run, number) => nmtflex.controls.runName(number, run.name)),
        panel: this.#panel.node,
        onChoose: (run) => this.#byHand(() => this.#goTo(this.#place, run, this.#step)),
        onClick: () => this.#panel.focus(),
      });
    }

    /** Do what a person asked for, and keep the address up to date. */
    #byHand(action) {
      action();
      const { index } = this.#sentences[this.#place];
      permalink.write({ index, run: this.#run, step: this.#step });
    }

    #goTo(place, run, step) {
      if (place !== this.#place) this.#showSentence(place);
      const trace = this.#traces[run] ?? null;
      this.#run = run;
      this.#step = trace ? Math.min(step, trace.target.length - 1) : 0;
      this.#tabs?.mark(run);
      this.#panel.show(trace, this.#step);
    }

    #goToStep(step) {
      this.#step = step;
      this.#panel.select(step);
    }

    #showSentence(place) {
      const sentence = this.#sentences[place];
      this.#place = place;
      this.#traces = nmtflex.trace.tracesOf(place);
      this.#heading.textContent = `Sentence ${sentence.index}`;
      this.#texts.replaceChildren(
        ...nmtflex.hypotheses.show(sentence, this.#runs, this.#languages),
      );
      this.#list.mark(place);
    }

    /** Go where the address says; false where it names no sentence of the page. */
    #followAddress() {
      const wanted = permalink.read();
      const place = this.#sentences.findIndex((one) => one.index === wanted?.index);
      if (place < 0) return false;
      this.#goTo(place, Math.min(wanted.run, this.#runs.length - 1), wanted.step);
      return true;
    }
  }

  /** Show the sentences when they come into view, or at once where the address names one. */
  function show(section, report) {
    const { sentences, split, split_sentences: all } = report;
    if (!sentences.length) {
      section.append(note("The page was made without sentences."));
      return;
    }
    if (sentences.length < all) {
      section.append(note(`The first ${sentences.length} of the ${all} sentences of ${split}.`));
    }
    let built = false;
    const build = () => {
      if (built) return;
      built = true;
      const explorer = new Explorer(report);
      section.append(explorer.node);
      explorer.start();
    };
    addEventListener("beforeprint", build); // on paper nothing comes into view
    if (permalink.read()) {
      build();
      section.scrollIntoView();
    } else {
      nmtflex.dom.whenSeen(section, build);
    }
  }

  return { show };
})();
