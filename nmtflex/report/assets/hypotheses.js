// A sentence as text: source, reference, and what each run made of it.
nmtflex.hypotheses = (() => {
  "use strict";

  const { element } = nmtflex.dom;
  const { fixed } = nmtflex.text;
  const { runName } = nmtflex.controls;

  function passage(text, language) {
    const empty = text.trim() === "";
    return element(
      "p",
      { class: empty ? "none" : "passage", dir: "auto", lang: empty ? null : language },
      empty ? "(empty)" : text,
    );
  }

  function part(heading, ...content) {
    return element("div", {}, element("h4", {}, heading), ...content);
  }

  function measures({ bleu, chrf, score }) {
    const facts = [`BLEU ${fixed(bleu, 1)}`, `chrF ${fixed(chrf, 1)}`, `score ${fixed(score, 3)}`];
    const kept = facts.map((fact) => fact.replace(" ", "\u00a0")); // a line breaks between them
    return element("p", { class: "measures" }, kept.join(" · "));
  }

  /** Return the texts of a sentence side by side. */
  function show(sentence, runs, languages) {
    return [
      element(
        "div",
        { class: "side-by-side given" },
        part("Source", passage(sentence.source, languages.source)),
        part("Reference", passage(sentence.reference, languages.target)),
      ),
      element(
        "div",
        { class: "side-by-side" },
        ...sentence.hypotheses.map((one, number) =>
          part(
            runName(number, runs[number].name),
            passage(one.text, languages.target),
            measures(one),
          ),
        ),
      ),
    ];
  }

  return { show };
})();
