// Colours that drawings need as numbers: the style sheet has them, a theme changes them.
nmtflex.colours = (() => {
  "use strict";

  const STEPS = 256;
  const RAMP = ["--ramp-0", "--ramp-1", "--ramp-2", "--ramp-3", "--ramp-4"];
  const LINES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
  const MARKERS = ["circle", "square", "diamond", "triangle-up", "cross", "x", "star"];
  const RUN_COLOURS = 6;

  const probe = nmtflex.dom.element("span", { hidden: "" });
  let ramp = null;

  /** Return a colour of the style sheet as the theme in force has it: "rgb(0, 114, 178)". */
  function resolve(property) {
    if (!probe.isConnected) document.body.append(probe);
    probe.style.color = `var(${property})`;
    return getComputedStyle(probe).color;
  }

  function channels(colour) {
    return colour
      .match(/[\d.]+/g)
      .slice(0, 3)
      .map(Number);
  }

  /** Return how the n-th run is told apart: by colour, and without it by line and marker. */
  function ofRun(number) {
    return {
      property: `--run-${number % RUN_COLOURS}`,
      dash: LINES[number % LINES.length],
      marker: MARKERS[number % MARKERS.length],
    };
  }

  function buildRamp() {
    const stops = RAMP.map((property) => channels(resolve(property)));
    return Array.from({ length: STEPS }, (_, step) => {
      const place = (step / (STEPS - 1)) * (stops.length - 1);
      const low = Math.min(Math.floor(place), stops.length - 2);
      return stops[low].map((from, channel) =>
        Math.round(from + (stops[low + 1][channel] - from) * (place - low)),
      );
    });
  }

  /** Return red, green and blue of a share between 0 and 1. */
  function shade(share) {
    ramp ??= buildRamp();
    const step = Math.round(Math.min(1, Math.max(0, share)) * (STEPS - 1));
    return ramp[step];
  }

  /** Return "black" or "white", whichever is read better on a colour; the worse case is 4.5 : 1. */
  function textOn(rgb) {
    const [red, green, blue] = rgb.map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "black" : "white";
  }

  nmtflex.theme.onChange(() => {
    ramp = null;
  });

  return { STEPS, ofRun, resolve, shade, textOn };
})();
