// What a threshold costs and saves: BLEU against computations per step.
nmtflex.tradeoff = (() => {
  "use strict";

  const { element, note, table } = nmtflex.dom;
  const { counted, fixed, threshold } = nmtflex.text;
  const { chart, plain, runStyle } = nmtflex.charts;
  const { choice } = nmtflex.controls;

  /** Return every sweep of a split, with its run, the points from cheap to dear. */
  function sweepsOf(runs, split) {
    return runs.flatMap((run, number) =>
      run.sweeps
        .filter((sweep) => sweep.split === split)
        .map((sweep) => ({
          run,
          number,
          beam: sweep.beam,
          points: sweep.points.toSorted((one, other) => one.cps - other.cps),
        })),
    );
  }

  /** Return the runs that have one place only: no sweep, but BLEU and CPS of the same split. */
  function singlesOf(report, split) {
    if (split !== report.split) return [];
    return report.runs.flatMap((run, number) => {
      const bleu = run.scores.find((one) => one.metric === "BLEU");
      const swept = run.sweeps.some((sweep) => sweep.split === split);
      if (swept || !bleu || run.cost.cps === null || run.cost.cps === undefined) return [];
      return [
        { run, number, bleu: bleu.value, cps: run.cost.cps, seconds: run.cost.decoding_seconds },
      ];
    });
  }

  // In turn above and below the line, and to the side from which the line does not come: labels of
  // near points then do not write over it or each other.
  function labelPlace(points, place) {
    const before = points[place - 1] ?? points[place];
    const after = points[place + 1] ?? points[place];
    const isAbove = (points.length - place) % 2 === 1;
    const isRising = after.bleu >= before.bleu;
    return `${isAbove ? "top" : "bottom"} ${isAbove === isRising ? "left" : "right"}`;
  }

  function curve({ run, number, beam, points }) {
    const hover = points.map(
      (point) =>
        `${threshold(point.tau)}<br>${fixed(point.seconds, 1)} s for ` +
        counted(point.sentences, "sentence"),
    );
    return {
      ...runStyle(number),
      x: points.map((point) => point.cps),
      y: points.map((point) => point.bleu),
      name: plain(`${run.name}, ${beam}`),
      mode: "lines+markers+text",
      text: points.map((point) => threshold(point.tau)),
      textposition: points.map((_, place) => labelPlace(points, place)),
      textfont: { size: 11 },
      cliponaxis: false,
      customdata: hover,
      hovertemplate: "BLEU %{y:.2f}, CPS %{x:.2f}<br>%{customdata}",
    };
  }

  function single({ run, number, bleu, cps, seconds }, ink) {
    const { marker } = runStyle(number);
    return {
      x: [cps],
      y: [bleu],
      name: plain(run.name),
      mode: "markers",
      marker: { ...marker, size: 12, line: { color: ink, width: 1.5 } },
      customdata: [`${fixed(seconds, 1)} s`],
      hovertemplate: "BLEU %{y:.2f}, CPS %{x:.2f}<br>%{customdata}",
    };
  }

  function numbers(sweeps, singles) {
    const hasRibes = sweeps.some(({ points }) => points.some((point) => point.ribes !== null));
    const ribes = (value) => (hasRibes ? [fixed(value, 4)] : []);
    const ofSweeps = sweeps.flatMap(({ run, beam, points }) =>
      points.map((point) => [
        run.name,
        beam,
        threshold(point.tau),
        fixed(point.cps, 2),
        fixed(point.bleu, 2),
        ...ribes(point.ribes),
        fixed(point.seconds, 1),
      ]),
    );
    const ofSingles = singles.map((one) => [
      one.run.name,
      "–",
      threshold(null),
      fixed(one.cps, 2),
      fixed(one.bleu, 2),
      ...ribes(null),
      fixed(one.seconds, 1),
    ]);
    const head = [
      "Run",
      "Beam",
      "Threshold",
      "CPS",
      "BLEU",
      ...(hasRibes ? ["RIBES"] : []),
      "Seconds",
    ];
    return table({ head, rows: [...ofSweeps, ...ofSingles] });
  }

  function show(section, report) {
    const splits = [...new Set(report.runs.flatMap((run) => run.sweeps.map((one) => one.split)))];
    if (!splits.length) {
      section.append(
        note(
          "No thresholds have been tried yet: ",
          element("code", {}, "nmtflex sweep RUN"),
          " does, and leaves what this section shows in the run’s folder.",
        ),
      );
      return;
    }
    let split = splits.includes(report.split) ? report.split : splits[0];
    const curves = chart({
      title: () => `BLEU against computations per step, ${split}`,
      height: 420,
      figure: ({ ink }) => ({
        traces: [
          ...sweepsOf(report.runs, split).map(curve),
          ...singlesOf(report, split).map((one) => single(one, ink)),
        ],
        layout: {
          xaxis: { title: { text: "CPS, computations per step" } },
          yaxis: { title: { text: "BLEU" } },
        },
      }),
      table: () => numbers(sweepsOf(report.runs, split), singlesOf(report, split)),
    });
    if (splits.length > 1) {
      const options = splits.map((value) => ({ value, label: value }));
      const onChange = (value) => {
        split = value;
        curves.redraw();
      };
      section.append(
        element(
          "div",
          { class: "choices" },
          choice({ legend: "Split", options, value: split, onChange }),
        ),
      );
    }
    section.append(curves.node);
  }

  return { show };
})();
