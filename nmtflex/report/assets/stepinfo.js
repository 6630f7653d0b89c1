// A step of decoding in words and numbers.
nmtflex.stepinfo = (() => {
  "use strict";

  const { table } = nmtflex.dom;
  const { counted, fixed, visible } = nmtflex.text;
  const { isComputed } = nmtflex.trace;

  /** Tell what a step did, fact by fact. */
  function tell(trace, step) {
    const { focus, gate, source, target, weights, window_start: start, window_stop: stop } = trace;
    return [
      `Step ${step + 1} of ${target.length}: ${visible(target[step])}`,
      weights ? tellMost(source, weights[step]) : null,
      tellComputed(trace, step),
      gate ? `gate ${fixed(gate[step], 2)}` : null,
      focus ? `focus ${fixed(focus[step], 2)}` : null,
      start && stop ? `window ${start[step]} to ${stop[step] - 1}` : null,
    ].filter(Boolean);
  }

  function tellMost(source, weights) {
    const most = weights.reduce((a, b) => Math.max(a, b));
    const token = visible(source[weights.indexOf(most)]);
    return `looks most at “${token}”, ${fixed(most / 1000, 3)}`;
  }

  function tellComputed({ beta, computed, heads, source, weights }, step) {
    if (!weights) return null;
    if (heads > 1) return `${fixed(computed[step], 2)} scores computed, the mean of ${heads} heads`;
    return beta
      ? `${counted(computed[step], "score")} computed, one a slot`
      : `${computed[step]} of ${source.length} scores computed`;
  }

  /** Return a table of all steps. */
  function numbers(trace) {
    const columns = [
      ["Computed", trace.computed, trace.heads > 1 ? (mean) => fixed(mean, 2) : String],
      ["Gate", trace.gate, (gate) => fixed(gate, 3)],
      ["Focus", trace.focus, (focus) => fixed(focus, 2)],
      ["Window from", trace.window_start, String],
      ["Window to", trace.window_stop, (stop) => String(stop - 1)],
    ].filter(([, values]) => values);
    const looked = trace.weights ? trace.source : [];
    const weight = (step, place) =>
      isComputed(trace, step, place) ? fixed(trace.weights[step][place] / 1000, 3) : "–";
    return table({
      head: ["Step", "Token", ...columns.map(([name]) => name), ...looked.map(visible)],
      rows: trace.target.map((token, step) => [
        String(step + 1),
        visible(token),
        ...columns.map(([, values, shown]) => shown(values[step])),
        ...looked.map((_, place) => weight(step, place)),
      ]),
    });
  }

  return { numbers, tell };
})();
