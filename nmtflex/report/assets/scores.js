// Scores and costs of the runs: a table whose cells draw their own interval.
nmtflex.scores = (() => {
  "use strict";

  const { element, note, scrollBox, shape, table } = nmtflex.dom;
  const { count, counted, fixed, score } = nmtflex.text;

  function metricsOf(runs) {
    return [...new Set(runs.flatMap((run) => run.scores.map((one) => one.metric)))];
  }

  function scoreOf(run, metric) {
    return run.scores.find((one) => one.metric === metric) ?? null;
  }

  /** Return a function from a score to its place in percent, the same for all runs. */
  function scaleOf(runs, metric) {
    const ends = runs.flatMap((run) => {
      const one = scoreOf(run, metric);
      return one ? [one.value, ...(one.interval ?? [])] : [];
    });
    const low = Math.min(...ends);
    const width = Math.max(...ends) - low || 1;
    return (value) => `${4 + (92 * (value - low)) / width}%`;
  }

  /** Draw a score as a dot on the line of its interval. */
  function drawInterval(one, place, number) {
    const colour = { style: { color: `var(${nmtflex.colours.ofRun(number).property})` } };
    const y = 6;
    return shape(
      "svg",
      { class: "interval", "aria-hidden": "true", ...colour },
      shape("line", { class: "track", x1: "0%", x2: "100%", y1: y, y2: y }),
      one.interval
        ? shape("line", { x1: place(one.interval[0]), x2: place(one.interval[1]), y1: y, y2: y })
        : null,
      shape("circle", { cx: place(one.value), cy: y, r: 4 }),
    );
  }

  function scoreCell(run, metric, place, number) {
    const one = scoreOf(run, metric);
    if (!one) return score(metric, null);
    const range = one.interval?.map((end) => score(metric, end)).join(" – ");
    return element(
      "div",
      { class: "score" },
      element("strong", {}, score(metric, one.value)),
      range ? element("small", {}, range) : null,
      drawInterval(one, place, number),
    );
  }

  function allHeads(total) {
    return `all heads: ${fixed(total, 2)}`;
  }

  function costCells(run, hasEncoding) {
    const { cps, cps_total: total, decoding_seconds: seconds, sentences } = run.cost;
    const encoding = run.cost.encoding_computations;
    const rate = seconds > 0 ? `${fixed(sentences / seconds, 1)} sentences/s` : "";
    return [
      total > cps
        ? element("div", { class: "score" }, fixed(cps, 2), element("small", {}, allHeads(total)))
        : fixed(cps, 2),
      ...(hasEncoding ? [fixed(encoding, 1)] : []),
      element("div", { class: "score" }, fixed(seconds, 1), element("small", {}, rate)),
      count(run.parameters),
    ];
  }

  function runCell(run, number) {
    return element(
      "div",
      { class: "run" },
      nmtflex.controls.runName(number, run.name),
      element("small", {}, run.description),
    );
  }

  function scoreTable(runs, split) {
    const metrics = metricsOf(runs);
    const scales = new Map(metrics.map((metric) => [metric, scaleOf(runs, metric)]));
    const hasEncoding = runs.some((run) => run.cost.encoding_computations > 0);
    return table({
      name: "numbers scores",
      label: `Scores of ${split}`,
      head: [
        "Run",
        ...metrics,
        "CPS",
        ...(hasEncoding ? ["Encoding"] : []),
        "Seconds",
        "Parameters",
      ],
      rows: runs.map((run, number) => [
        runCell(run, number),
        ...metrics.map((metric) => scoreCell(run, metric, scales.get(metric), number)),
        ...costCells(run, hasEncoding),
      ]),
    });
  }

  function explanation({ runs, split }) {
    const [{ cost }] = runs;
    const facts = [
      `Scores of ${split} with 95 % intervals, drawn on a scale of each column’s own.`,
      "CPS, computations per step: attention scores computed at a decoding step.",
    ];
    if (runs.some((run) => run.cost.cps_total > run.cost.cps)) {
      facts.push("Of several heads and layers it is the mean, and below it the sum.");
    }
    if (runs.some((run) => run.cost.encoding_computations > 0)) {
      facts.push("Encoding: scores computed once a sentence to read the source.");
    }
    facts.push(
      `Seconds: decoding ${counted(cost.sentences, "sentence")} ` +
        `of ${fixed(cost.source_tokens, 1)} source tokens on average.`,
    );
    return note(facts.join(" "));
  }

  function signatures(runs) {
    const rows = runs.flatMap((run) =>
      run.scores.map((one) => [run.name, one.metric, element("code", {}, one.signature ?? "")]),
    );
    return element(
      "details",
      {},
      element("summary", {}, "Signatures"),
      note("Only numbers under the same signature can be compared."),
      scrollBox("Signatures", table({ name: "texts", head: ["Run", "Metric", "Signature"], rows })),
    );
  }

  function show(section, report) {
    section.append(
      scrollBox("Scores", scoreTable(report.runs, report.split)),
      explanation(report),
      signatures(report.runs),
    );
  }

  return { show };
})();
