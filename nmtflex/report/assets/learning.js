// Learning curves: a metric of training and validation, by updates or by time.
nmtflex.learning = (() => {
  "use strict";

  const { element, note, table } = nmtflex.dom;
  const { count, fixed } = nmtflex.text;
  const { chart, plain, runStyle } = nmtflex.charts;
  const { choice } = nmtflex.controls;

  const METRICS = [
    { name: "loss", label: "Loss", digits: 3 },
    { name: "perplexity", label: "Perplexity", digits: 2, scale: "log" },
    { name: "bleu", label: "BLEU", digits: 2 },
    { name: "gate_mean", label: "Gate", axis: "mean gate", digits: 3 },
    { name: "cps", label: "CPS", axis: "CPS, computations per step", digits: 2 },
  ];
  const AXES = {
    updates: { label: "updates", of: (row) => row.update, shown: count },
    minutes: {
      label: "minutes of training",
      of: (row) => row.seconds / 60,
      shown: (value) => fixed(value, 1),
    },
  };
  const SPLITS = { valid: "validation", train: "training" };

  function has(row, metric) {
    return row[metric.name] !== undefined && row[metric.name] !== null;
  }

  function rowsOf(run, metric, split) {
    return run.learning.filter((row) => row.split === split && has(row, metric));
  }

  function splitsOf(runs, metric) {
    return Object.keys(SPLITS).filter((split) =>
      runs.some((run) => rowsOf(run, metric, split).length),
    );
  }

  function trace(run, number, metric, split, axis) {
    const rows = rowsOf(run, metric, split);
    const { line, marker } = runStyle(number);
    const isBold = split === "valid";
    return {
      x: rows.map(axis.of),
      y: rows.map((row) => row[metric.name]),
      name: plain(run.name),
      legendgroup: String(number),
      mode: isBold ? "lines+markers" : "lines",
      line: { ...line, width: isBold ? 2.5 : 1 },
      marker: { ...marker, size: 6 },
      opacity: isBold ? 1 : 0.75,
      text: rows.map((row) => `update ${count(row.update)}, ${fixed(row.seconds / 60, 1)} min`),
      hovertemplate: `${SPLITS[split]}: %{y:.${metric.digits}f}<br>%{text}`,
    };
  }

  function traces(runs, metric, axis) {
    const splits = splitsOf(runs, metric);
    const named = new Set(); // the title says which lines are of which split
    return runs
      .flatMap((run, number) => splits.map((split) => trace(run, number, metric, split, axis)))
      .filter((one) => one.x.length)
      .map((one) => {
        const showlegend = !named.has(one.legendgroup);
        named.add(one.legendgroup);
        return { ...one, showlegend };
      });
  }

  function titleOf(runs, metric, axis) {
    const splits = splitsOf(runs, metric);
    const what = splits.length > 1 ? "bold: validation, thin: training" : SPLITS[splits[0]];
    return `${metric.label} by ${axis.label}; ${what}`;
  }

  function numbers(runs, metric) {
    const rows = runs.flatMap((run) =>
      Object.keys(SPLITS).flatMap((split) =>
        rowsOf(run, metric, split).map((row) => [
          run.name,
          SPLITS[split],
          count(row.update),
          fixed(row.seconds / 60, 1),
          fixed(row[metric.name], metric.digits),
        ]),
      ),
    );
    return table({ head: ["Run", "Split", "Update", "Minutes", metric.label], rows });
  }

  function show(section, { runs }) {
    const metrics = METRICS.filter((metric) =>
      runs.some((run) => run.learning.some((row) => has(row, metric))),
    );
    if (!metrics.length) {
      section.append(note("None of the runs has a file of metrics."));
      return;
    }
    const chosen = {
      metric: metrics.find((one) => one.name === "bleu") ?? metrics[0],
      axis: AXES.updates,
    };
    const curves = chart({
      title: () => titleOf(runs, chosen.metric, chosen.axis),
      height: 380,
      figure: () => ({
        traces: traces(runs, chosen.metric, chosen.axis),
        layout: {
          xaxis: { title: { text: chosen.axis.label } },
          yaxis: {
            title: { text: chosen.metric.axis ?? chosen.metric.label },
            type: chosen.metric.scale ?? "linear",
          },
        },
      }),
      table: () => numbers(runs, chosen.metric),
    });
    const choose = (part) => {
      Object.assign(chosen, part);
      curves.redraw();
    };
    section.append(
      element(
        "div",
        { class: "choices" },
        choice({
          legend: "Metric",
          options: metrics.map((one) => ({ value: one.name, label: one.label })),
          value: chosen.metric.name,
          onChange: (name) => choose({ metric: metrics.find((one) => one.name === name) }),
        }),
        choice({
          legend: "By",
          options: Object.keys(AXES).map((name) => ({ value: name, label: name })),
          value: "updates",
          onChange: (name) => choose({ axis: AXES[name] }),
        }),
      ),
      curves.node,
    );
  }

  return { show };
})();
