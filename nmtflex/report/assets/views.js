// What a matrix can show of a trace: each view says what its rows, columns and cells are.
nmtflex.views = (() => {
  "use strict";

  const { fixed, isUpright, visible } = nmtflex.text;
  const { isComputed } = nmtflex.trace;

  function tokens(list, language) {
    return list.map((token) => ({
      text: visible(token),
      language,
      stands: isUpright(token) ? "upright" : "turned",
    }));
  }

  function slots(trace) {
    const count = trace.beta[0].length;
    const stands = count < 100 ? "level" : "turned";
    return Array.from({ length: count }, (_, slot) => ({ text: String(slot + 1), stands }));
  }

  function largest(rows) {
    return rows.reduce((most, row) => row.reduce((a, b) => Math.max(a, b), most), 1) / 1000;
  }

  function quoted(token) {
    return `“${visible(token)}”`;
  }

  function gateOf(trace, step) {
    return trace.gate ? `, gate ${fixed(trace.gate[step], 2)}` : "";
  }

  /** Return what is drawn beside the rows of the steps. */
  function sidesOfSteps(trace) {
    const window = { start: trace.window_start, stop: trace.window_stop, focus: trace.focus };
    const sides = [];
    if (trace.gate) {
      sides.push({ kind: "bar", title: "gate", values: trace.gate, top: 1 });
    }
    if (window.start || window.focus) {
      sides.push({ kind: "window", title: "window, focus", size: trace.source.length, ...window });
    }
    sides.push({ kind: "count", title: "computed", values: trace.computed });
    return sides;
  }

  function weights(trace, languages) {
    return {
      label: "Attention weights, steps by source",
      unit: trace.beta ? "weight: Σ α β over the slots" : "weight",
      rows: tokens(trace.target, languages.target),
      columns: tokens(trace.source, languages.source),
      value: (step, place) => trace.weights[step][place] / 1000,
      top: largest(trace.weights),
      outside:
        trace.window_start && trace.window_stop
          ? (step, place) => !isComputed(trace, step, place)
          : null,
      window: (step) => [trace.window_start[step], trace.window_stop[step]],
      focus: trace.focus ? (step) => trace.focus[step] : null,
      sides: sidesOfSteps(trace),
      rowsAreSteps: true,
      describe(step, place) {
        const number = isComputed(trace, step, place)
          ? fixed(trace.weights[step][place] / 1000, 3)
          : "not computed";
        const pair = `${quoted(trace.source[place])} → ${visible(trace.target[step])}`;
        return `${pair}: ${number}, step ${step + 1}${gateOf(trace, step)}`;
      },
    };
  }

  function alpha(trace, languages, step) {
    return {
      label: "α, slots by source",
      unit: "α: what of each source position fills a slot",
      rows: slots(trace),
      columns: tokens(trace.source, languages.source),
      value: (slot, place) => trace.alpha[place][slot] / 1000,
      top: largest(trace.alpha),
      sides: [
        {
          kind: "bar",
          title: "β of the step",
          values: trace.beta[step].map((share) => share / 1000),
          top: largest(trace.beta),
        },
      ],
      rowsAreSteps: false,
      describe: (slot, place) =>
        `${quoted(trace.source[place])} → slot ${slot + 1}: ` +
        `${fixed(trace.alpha[place][slot] / 1000, 3)}, ` +
        `of which step ${step + 1} reads ${fixed(trace.beta[step][slot] / 1000, 3)}`,
    };
  }

  function beta(trace, languages) {
    return {
      label: "β, steps by slots",
      unit: "β: what a step reads of each slot",
      rows: tokens(trace.target, languages.target),
      columns: slots(trace),
      value: (step, slot) => trace.beta[step][slot] / 1000,
      top: largest(trace.beta),
      sides: [{ kind: "count", title: "computed", values: trace.computed }],
      rowsAreSteps: true,
      describe: (step, slot) =>
        `slot ${slot + 1} → ${visible(trace.target[step])}: ` +
        `${fixed(trace.beta[step][slot] / 1000, 3)}, step ${step + 1}`,
    };
  }

  const VIEWS = [
    {
      value: "weights",
      label: "Weights",
      build: weights,
      exists: (trace) => trace.weights !== null,
    },
    { value: "alpha", label: "α: slots × source", build: alpha, exists: hasMemory },
    { value: "beta", label: "β: steps × slots", build: beta, exists: hasMemory },
  ];

  function hasMemory(trace) {
    return Boolean(trace.alpha && trace.beta?.length);
  }

  /** Return the views that a trace has. */
  function viewsOf(trace) {
    return trace && trace.source.length ? VIEWS.filter((view) => view.exists(trace)) : [];
  }

  return { viewsOf };
})();
