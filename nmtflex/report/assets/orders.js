// Orders in which sentences can be listed, each with the number that it goes by.
nmtflex.orders = (() => {
  "use strict";

  const { count, fixed } = nmtflex.text;

  function spread({ hypotheses }) {
    const bleus = hypotheses.map((one) => one.bleu);
    return Math.max(...bleus) - Math.min(...bleus);
  }

  /** Return every order there is for some runs: `of` gives a sentence's number, small ones first. */
  function ordersOf(runs) {
    const length = (sentence) => sentence.source.length;
    return [
      { group: "Place", label: "as in the split", of: (one) => one.index, shown: () => "" },
      { group: "Source", label: "shortest first", of: length, shown: count },
      {
        group: "Source",
        label: "longest first",
        of: (one) => -length(one),
        shown: (n) => count(-n),
      },
      ...runs.map((run, number) => ({
        group: "BLEU, lowest first",
        label: run.name,
        of: (one) => one.hypotheses[number].bleu,
        shown: (bleu) => fixed(bleu, 1),
      })),
      ...(runs.length > 1
        ? [
            {
              group: "BLEU",
              label: "greatest difference between runs",
              of: (one) => -spread(one),
              shown: (difference) => `Δ ${fixed(-difference, 1)}`,
            },
          ]
        : []),
    ];
  }

  /** Return the sentences' places in an order; equal ones stay as they are in the split. */
  function sorted(sentences, order) {
    const keys = sentences.map(order.of);
    return [...sentences.keys()].sort((one, other) => keys[one] - keys[other] || one - other);
  }

  return { ordersOf, sorted };
})();
