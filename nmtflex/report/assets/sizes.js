// How large the cells and labels of a matrix are, for the room there is.
nmtflex.sizes = (() => {
  "use strict";

  const COLUMN = { least: 13, most: 34 }; // pixels, as everything here
  const ROW = { least: 14, most: 24 };
  const TALL = 560; // that all rows like to keep within
  const LABEL = { row: 130, column: 110 }; // that the longest label takes at most
  const HEADING = 40; // that the headings of the small charts need
  const FONT = { least: 10, most: 13 };
  const PAD = { row: 14, column: 12 };

  const ruler = document.createElement("canvas").getContext("2d");

  function clamp(value, { least, most }) {
    return Math.max(least, Math.min(most, Math.floor(value)));
  }

  function longest(labels, size) {
    ruler.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
    return labels.reduce((most, { text }) => Math.max(most, ruler.measureText(text).width), 0);
  }

  /** Return the sizes of a view in so many pixels of width. */
  function sizesOf(view, width) {
    const row = clamp(TALL / view.rows.length, ROW);
    const rowFont = clamp(row - 4, FONT);
    const labels = Math.ceil(Math.min(LABEL.row, longest(view.rows, rowFont) + PAD.row));
    const room = width - labels - nmtflex.sides.widthOf(view.sides);
    const column = clamp(room / view.columns.length, COLUMN);
    const columnFont = clamp(column - 3, FONT);
    const height = Math.max(HEADING, longest(view.columns, columnFont) + PAD.column);
    const heading = Math.ceil(Math.min(LABEL.column, height));
    return { row, rowFont, labels, column, columnFont, heading };
  }

  return { sizesOf };
})();
