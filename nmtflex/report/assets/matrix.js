// A matrix of attention: tokens at both axes, cells that tell their number, charts beside the rows.
nmtflex.Matrix = (() => {
  "use strict";

  const { element, setStyle, shape } = nmtflex.dom;
  const { legend, marks, paint, stretch } = nmtflex.cells;

  const GAP = 6; // pixels between a cell and its tip

  function labelsOf(name, labels) {
    return labels.map(({ text, language, stands }) =>
      element(
        "div",
        { class: `${name} ${stands}`, dir: "auto", lang: language, title: text },
        text,
      ),
    );
  }

  function within(value, count) {
    return Math.max(0, Math.min(count - 1, value));
  }

  /** Return the scroll offset that shows a stretch of a box: the same, or with it in the middle. */
  function scrolledTo(offset, room, start, length) {
    const isSeen = offset <= start && start + length <= offset + room;
    return isSeen ? offset : start + (length - room) / 2;
  }

  /** Return the column of the largest value in a row. */
  function peak(view, row) {
    let most = 0;
    view.columns.forEach((_, column) => {
      if (view.value(row, column) > view.value(row, most)) most = column;
    });
    return most;
  }

  class Matrix {
    #canvas = element("canvas", { "aria-hidden": "true" });
    #overlay = shape("svg", { "aria-hidden": "true" });
    #cursor = element("div", { class: "cursor", role: "gridcell", id: "matrix-cell" });
    #cursorRow = element("div", { role: "row" }, this.#cursor);
    #cells = element("div", { class: "cells" }, this.#canvas, this.#overlay, this.#cursorRow);
    #columnLabels = element("div", { class: "column-labels", "aria-hidden": "true" });
    #rowLabels = element("div", { class: "row-labels", "aria-hidden": "true" });
    #sides = element("div", { class: "sides", "aria-hidden": "true" });
    #band = element("div", { class: "band", "aria-hidden": "true" });
    #tip = element("div", { class: "tip", "aria-hidden": "true", hidden: "" });
    #legend = element("p", { class: "legend" });
    #plane;
    #grid;
    #onStep;
    #view = null;
    #size = null;
    #at = { row: 0, column: 0 }; // the cursor
    #step = 0;

    /** `onStep` takes the number of the step whose row is chosen. */
    constructor({ onStep }) {
      this.#onStep = onStep;
      this.#plane = element(
        "div",
        { class: "plane" },
        element("div", { class: "corner" }),
        this.#columnLabels,
        this.#rowLabels,
        this.#cells,
        this.#sides,
        this.#band,
      );
      // Only the cursor's row and cell exist for a reader of the screen; their numbers tell where
      // they lie in the whole.
      this.#grid = element(
        "div",
        {
          class: "matrix-scroll",
          role: "grid",
          tabindex: "0",
          "aria-activedescendant": this.#cursor.id,
        },
        this.#plane,
      );
      this.node = element("div", { class: "matrix" }, this.#grid, this.#tip, this.#legend);
      this.#listen();
      new ResizeObserver(() => this.#draw()).observe(this.node);
    }

    #listen() {
      const hide = () => (this.#tip.hidden = true);
      this.#grid.addEventListener("keydown", (event) => this.#walk(event));
      this.#grid.addEventListener("blur", hide);
      this.#grid.addEventListener("scroll", hide);
      this.#cells.addEventListener("pointermove", (event) => this.#point(event));
      this.#cells.addEventListener("pointerleave", hide);
      this.#plane.addEventListener("click", (event) => this.#chooseStep(this.#cellAt(event).row));
    }

    /** Show a view; the cursor stays where it is if there is such a cell. */
    show(view) {
      this.#view = view;
      this.#at = {
        row: within(this.#at.row, view.rows.length),
        column: within(this.#at.column, view.columns.length),
      };
      this.#grid.setAttribute("aria-label", view.label);
      this.#grid.setAttribute("aria-rowcount", view.rows.length);
      this.#grid.setAttribute("aria-colcount", view.columns.length);
      this.#columnLabels.replaceChildren(...labelsOf("column-label", view.columns));
      this.#rowLabels.replaceChildren(...labelsOf("row-label", view.rows));
      this.#band.hidden = !view.rowsAreSteps;
      this.#tip.hidden = true;
      this.#draw();
    }

    /** Mark the row of a step, and bring it into the box with what it looks at. */
    select(step) {
      this.#rowLabels.children[this.#step]?.classList.remove("current");
      this.#step = step;
      if (!this.#view?.rowsAreSteps) return;
      this.#rowLabels.children[step].classList.add("current");
      setStyle(this.#band, { "--at": String(step) });
      if (this.#at.row === step) return; // the cursor led here
      this.#goTo({ row: step, column: peak(this.#view, step) });
      this.#reveal();
    }

    #draw() {
      const view = this.#view;
      if (!view || !this.node.clientWidth) return;
      const size = nmtflex.sizes.sizesOf(view, this.node.clientWidth);
      this.#size = size;
      setStyle(this.#plane, {
        "--row": `${size.row}px`,
        "--row-font": `${size.rowFont}px`,
        "--labels": `${size.labels}px`,
        "--column": `${size.column}px`,
        "--column-font": `${size.columnFont}px`,
        "--heading": `${size.heading}px`,
      });
      paint(this.#canvas, view);
      this.#overlay.replaceChildren(...marks(view, size));
      stretch([this.#canvas, this.#overlay], view, size);
      this.#sides.replaceChildren(...nmtflex.sides.draw(view.sides, view.rows.length, size.row));
      this.#legend.replaceChildren(...legend(view));
      this.#goTo(this.#at);
      this.#reveal();
    }

    // Not scrollIntoView, which would scroll the page too and know nothing of the labels that stay.
    #reveal() {
      const { heading, labels, row: height, column: width } = this.#size ?? {};
      if (!height) return; // not laid out yet
      const grid = this.#grid;
      const { row, column } = this.#at;
      const [tall, wide] = [grid.clientHeight - heading, grid.clientWidth - labels];
      grid.scrollTop = scrolledTo(grid.scrollTop, tall, row * height, height);
      grid.scrollLeft = scrolledTo(grid.scrollLeft, wide, column * width, width);
    }

    /** Put the cursor on a cell. */
    #goTo({ row, column }) {
      this.#at = { row, column };
      this.#tip.hidden = true;
      this.#cursorRow.setAttribute("aria-rowindex", row + 1);
      this.#cursor.setAttribute("aria-colindex", column + 1);
      this.#cursor.setAttribute("aria-label", this.#view.describe(row, column));
      setStyle(this.#cursor, { "--row-at": String(row), "--column-at": String(column) });
    }

    /** Tell the number of the cursor's cell above it, or below it where there is no room. */
    #tell() {
      const tip = this.#tip;
      tip.textContent = this.#view.describe(this.#at.row, this.#at.column);
      tip.hidden = false;
      const cell = this.#cursor.getBoundingClientRect();
      const whole = this.node.getBoundingClientRect();
      const left = cell.left - whole.left + cell.width / 2 - tip.offsetWidth / 2;
      const above = cell.top - whole.top - tip.offsetHeight - GAP;
      setStyle(tip, {
        left: `${Math.max(0, Math.min(left, whole.width - tip.offsetWidth))}px`,
        top: `${above < 0 ? cell.bottom - whole.top + GAP : above}px`,
      });
    }

    #cellAt({ clientX, clientY }) {
      const box = this.#cells.getBoundingClientRect();
      return {
        row: Math.floor((clientY - box.top) / this.#size.row),
        column: Math.floor((clientX - box.left) / this.#size.column),
      };
    }

    #point(event) {
      const { row, column } = this.#cellAt(event);
      if (!this.#view.rows[row] || !this.#view.columns[column]) return;
      this.#goTo({ row, column });
      this.#tell();
    }

    #chooseStep(row) {
      const isStep = this.#view.rowsAreSteps && this.#view.rows[row];
      if (isStep && row !== this.#step) this.#onStep(row);
    }

    #walk(event) {
      if (event.key === "Escape") this.#tip.hidden = true;
      const { row, column } = this.#at;
      const last = this.#view.columns.length - 1;
      const places = {
        ArrowUp: [row - 1, column],
        ArrowDown: [row + 1, column],
        ArrowLeft: [row, column - 1],
        ArrowRight: [row, column + 1],
        Home: [row, 0],
        End: [row, last],
      };
      if (!(event.key in places)) return;
      event.preventDefault();
      const [nextRow, nextColumn] = places[event.key];
      this.#goTo({
        row: within(nextRow, this.#view.rows.length),
        column: within(nextColumn, last + 1),
      });
      this.#chooseStep(this.#at.row);
      this.#reveal();
      this.#tell();
    }
  }

  return Matrix;
})();
