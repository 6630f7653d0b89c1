// What attention looked at: a line of JSON a sentence, parsed when the sentence is chosen.
nmtflex.trace = (() => {
  "use strict";

  let lines = null;

  /** Return the traces of the sentence at a place, one a run; null where nothing was computed. */
  function tracesOf(place) {
    lines ??= document.getElementById("traces").textContent.split("\n");
    return lines[place] ? JSON.parse(lines[place]) : [];
  }

  /** Tell whether a step computed a score for a source position. */
  function isComputed({ window_start: start, window_stop: stop }, step, place) {
    return !start || !stop || (start[step] <= place && place < stop[step]);
  }

  return { isComputed, tracesOf };
})();
