// The cells of a matrix: a pixel each on a canvas that is stretched, and marks drawn over them.
nmtflex.cells = (() => {
  "use strict";

  const { element, setStyle, shape } = nmtflex.dom;
  const { shade } = nmtflex.colours;

  const HATCH = 7; // pixels between two lines of the hatching
  let drawings = 0;

  /** Paint a matrix a pixel a cell, however large it is shown. */
  function paint(canvas, view) {
    const [width, height] = [view.columns.length, view.rows.length];
    canvas.width = width;
    canvas.height = height;
    const context = canvas.getContext("2d");
    const image = context.createImageData(width, height);
    for (let row = 0, byte = 0; row < height; row++) {
      for (let column = 0; column < width; column++, byte += 4) {
        image.data.set(shade(view.value(row, column) / view.top), byte);
        image.data[byte + 3] = 255;
      }
    }
    context.putImageData(image, 0, 0);
  }

  function hatchPattern(id) {
    return shape(
      "pattern",
      {
        id,
        width: HATCH,
        height: HATCH,
        patternUnits: "userSpaceOnUse",
        patternTransform: "rotate(45)",
      },
      shape("rect", { class: "hatch-ground", width: HATCH, height: HATCH }),
      shape("line", { class: "hatch-line", x1: 0, y1: 0, x2: 0, y2: HATCH }),
    );
  }

  /** Hatch what lies before and after the window of each row. */
  function hatching(view, size, id) {
    return view.rows.flatMap((_, row) => {
      const [start, stop] = view.window(row);
      const gaps = [
        [0, start],
        [stop, view.columns.length],
      ];
      return gaps
        .filter(([from, to]) => to > from)
        .map(([from, to]) =>
          shape("rect", {
            class: "not-computed",
            x: from * size.column,
            y: row * size.row,
            width: (to - from) * size.column,
            height: size.row,
            fill: `url(#${id})`,
          }),
        );
    });
  }

  function focusMarks(view, size) {
    const radius = Math.max(2, 0.22 * Math.min(size.row, size.column));
    return view.rows.map((_, row) =>
      shape("circle", {
        class: "focus-mark",
        cx: (view.focus(row) + 0.5) * size.column,
        cy: (row + 0.5) * size.row,
        r: radius,
      }),
    );
  }

  /** Return the marks of a view: hatching and focus. */
  function marks(view, size) {
    const id = `hatch-${drawings++}`;
    return [
      view.outside ? shape("defs", {}, hatchPattern(id)) : null,
      ...(view.outside ? hatching(view, size, id) : []),
      ...(view.focus ? focusMarks(view, size) : []),
    ].filter(Boolean);
  }

  function swatch(name, text) {
    return element("span", { class: "key" }, element("span", { class: `swatch ${name}` }), text);
  }

  /** Say what colours and marks mean. */
  function legend(view) {
    const ramp = element("canvas", { class: "ramp", "aria-hidden": "true" });
    const steps = nmtflex.colours.STEPS;
    paint(ramp, {
      rows: [null],
      columns: { length: steps },
      value: (_, step) => step / (steps - 1),
      top: 1,
    });
    return [
      element("span", { class: "key" }, "0", ramp, nmtflex.text.fixed(view.top, 3)),
      element("span", { class: "key" }, view.unit),
      view.outside ? swatch("hatched", "not computed") : null,
      view.focus ? swatch("ring", "focus") : null,
    ].filter(Boolean);
  }

  /** Stretch what `paint` and `marks` drew to the size of the cells. */
  function stretch(nodes, view, size) {
    const pixels = {
      width: `${view.columns.length * size.column}px`,
      height: `${view.rows.length * size.row}px`,
    };
    for (const node of nodes) setStyle(node, pixels);
  }

  return { legend, marks, paint, stretch };
})();
