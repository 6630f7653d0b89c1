// BLEU by length of the source, and where the time of decoding goes.
nmtflex.lengths = (() => {
  "use strict";

  const { note, table } = nmtflex.dom;
  const { count, fixed } = nmtflex.text;
  const { chart, plain, runStyle } = nmtflex.charts;

  const BAR = 44; // pixels of height a run
  const ATTENTION = { property: "--accent", pattern: "" };
  // What is not attention, which all of this is about, is grey; patterns tell it apart.
  const OTHERS = [
    { property: "--part-0", pattern: "/" },
    { property: "--part-1", pattern: "" },
    { property: "--part-2", pattern: "." },
    { property: "--part-3", pattern: "\\" },
  ];

  function bucketsOf(runs) {
    const sentences = new Map();
    for (const { lengths } of runs) {
      for (const bucket of lengths) sentences.set(bucket.label, bucket.sentences);
    }
    return [...sentences].filter(([, n]) => n > 0).map(([label, n]) => ({ label, n }));
  }

  function bleuOf(run, label) {
    return run.lengths.find((bucket) => bucket.label === label)?.bleu ?? null;
  }

  function byLength(runs) {
    const buckets = bucketsOf(runs);
    const places = buckets.map(({ label, n }) => `${plain(label)}<br>n = ${count(n)}`);
    return chart({
      title: () => "BLEU by length of the source; n: sentences",
      height: 340,
      figure: () => ({
        traces: runs.map((run, number) => ({
          ...runStyle(number),
          x: places,
          y: buckets.map(({ label }) => bleuOf(run, label)),
          name: plain(run.name),
          mode: "lines+markers",
          hovertemplate: "BLEU %{y:.2f}<br>%{x}",
        })),
        layout: {
          xaxis: { type: "category", title: { text: "source length, tokens" } },
          yaxis: { title: { text: "BLEU" }, rangemode: "tozero" },
        },
      }),
      table: () =>
        table({
          head: ["Source length", "Sentences", ...runs.map((run) => run.name)],
          rows: buckets.map(({ label, n }) => [
            label,
            count(n),
            ...runs.map((run) => fixed(bleuOf(run, label), 2)),
          ]),
        }),
    });
  }

  function styleOf(part, parts) {
    const others = parts.filter((one) => one !== "attention");
    return part === "attention" ? ATTENTION : OTHERS[others.indexOf(part) % OTHERS.length];
  }

  function partsOf(runs) {
    return [...new Set(runs.flatMap((run) => run.time.map((one) => one.part)))];
  }

  function secondsOf(run, part) {
    return run.time.find((one) => one.part === part)?.seconds ?? 0;
  }

  function byPart(runs) {
    const parts = partsOf(runs);
    const wholes = runs.map((run) => run.time.reduce((sum, one) => sum + one.seconds, 0));
    return chart({
      title: () => "Where the seconds of decoding go",
      height: 120 + BAR * runs.length,
      figure: ({ surface }) => ({
        traces: parts.map((part) => {
          const { property, pattern } = styleOf(part, parts);
          return {
            type: "bar",
            orientation: "h",
            x: runs.map((run) => secondsOf(run, part)),
            y: runs.map((run) => plain(run.name)),
            name: plain(part),
            marker: {
              color: nmtflex.colours.resolve(property),
              pattern: { shape: pattern, fillmode: "overlay", fgcolor: surface, size: 6 },
              line: { color: surface, width: 1 },
            },
            customdata: runs.map((run, place) =>
              fixed((100 * secondsOf(run, part)) / (wholes[place] || 1), 1),
            ),
            hovertemplate: `${plain(part)}<br>%{x:.2f} s, %{customdata} %<extra></extra>`,
          };
        }),
        layout: {
          barmode: "stack",
          bargap: 0.35,
          legend: { traceorder: "normal" },
          xaxis: { title: { text: "seconds" } },
          yaxis: { autorange: "reversed", showgrid: false },
        },
      }),
      table: () =>
        table({
          head: ["Run", ...parts.map((part) => `${part}, s`), "Sum, s"],
          rows: runs.map((run, place) => [
            run.name,
            ...parts.map((part) => fixed(secondsOf(run, part), 2)),
            fixed(wholes[place], 2),
          ]),
        }),
    });
  }

  function show(section, { runs }) {
    if (bucketsOf(runs).length) section.append(byLength(runs).node);
    const timed = runs.filter((run) => run.time.length);
    if (timed.length) section.append(byPart(timed).node);
    if (section.childElementCount === 1) section.append(note("The runs have no such numbers."));
  }

  return { show };
})();
