// Small charts beside a matrix, one row a row of it: gate, window and focus, computed scores.
nmtflex.sides = (() => {
  "use strict";

  const { element, shape } = nmtflex.dom;
  const { fixed } = nmtflex.text;

  const WIDTHS = { bar: 72, window: 96, count: 64 }; // pixels
  const PAD = 6; // at either end of a side
  const THICK = 0.6; // share of a row

  function bar({ values, top }, height) {
    const width = WIDTHS.bar - 2 * PAD;
    return values.map((value, row) =>
      shape("rect", {
        class: "bar",
        x: PAD,
        y: (row + (1 - THICK) / 2) * height,
        width: Math.max(0.5, (width * value) / top),
        height: THICK * height,
      }),
    );
  }

  function windowAndFocus({ start, stop, focus, size }, height) {
    const scale = (WIDTHS.window - 2 * PAD) / size;
    const x = (place) => PAD + place * scale;
    const rows = (start ?? focus).keys();
    return [...rows].flatMap((row) => {
      const y = (row + 0.5) * height;
      const radius = Math.min(3.5, height / 4);
      return [
        shape("line", { class: "track", x1: x(0), x2: x(size), y1: y, y2: y }),
        start && stop
          ? shape("line", { class: "window", x1: x(start[row]), x2: x(stop[row]), y1: y, y2: y })
          : null,
        focus
          ? shape("circle", { class: "focus", cx: x(focus[row] + 0.5), cy: y, r: radius })
          : null,
      ].filter(Boolean);
    });
  }

  function count({ values }, height) {
    return values.map((value, row) =>
      shape(
        "text",
        { x: WIDTHS.count - PAD, y: (row + 0.5) * height, "text-anchor": "end" },
        Number.isInteger(value) ? String(value) : fixed(value, 2),
      ),
    );
  }

  const DRAWINGS = { bar, window: windowAndFocus, count };

  /** Return the pixels that some sides take. */
  function widthOf(sides) {
    return sides.reduce((sum, side) => sum + WIDTHS[side.kind], 0);
  }

  /** Return each side with its heading above it. */
  function draw(sides, rows, height) {
    return sides.map((side) =>
      element(
        "div",
        { class: "side" },
        element("div", { class: "side-heading" }, side.title),
        shape(
          "svg",
          { width: WIDTHS[side.kind], height: rows * height },
          ...DRAWINGS[side.kind](side, height),
        ),
      ),
    );
  }

  return { draw, widthOf };
})();
