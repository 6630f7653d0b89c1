// Controls that several parts of the page use.
nmtflex.controls = (() => {
  "use strict";

  const { element, shape } = nmtflex.dom;
  let groups = 0;

  // Points of a marker in a box of 12 by 12; the circle is drawn as one.
  const MARKER_POINTS = {
    square: "2,2 10,2 10,10 2,10",
    diamond: "6,0.5 11.5,6 6,11.5 0.5,6",
    "triangle-up": "6,1 11.5,10.5 0.5,10.5",
    cross: "4,1 8,1 8,4 11,4 11,8 8,8 8,11 4,11 4,8 1,8 1,4 4,4",
    x: "3,1 6,4 9,1 11,3 8,6 11,9 9,11 6,8 3,11 1,9 4,6 1,3",
    star: "6,0.5 7.5,4.3 11.6,4.5 8.4,7 9.5,11 6,8.7 2.5,11 3.6,7 0.4,4.5 4.5,4.3",
  };

  /** Make a choice of one among a few: radio buttons that look like one bar. */
  function choice({ legend, options, value, onChange, hideLegend = false }) {
    const name = `choice-${groups++}`;
    return element(
      "fieldset",
      { class: "choice" },
      element("legend", { class: hideLegend ? "hidden" : null }, legend),
      ...options.map((option) =>
        element(
          "label",
          {},
          element("input", {
            type: "radio",
            name,
            value: option.value,
            checked: option.value === value ? "" : null,
            change: () => onChange(option.value),
          }),
          element("span", {}, option.label),
        ),
      ),
    );
  }

  /** Draw the marker that a run has in every chart. */
  function marker(number) {
    const style = nmtflex.colours.ofRun(number);
    const points = MARKER_POINTS[style.marker];
    return shape(
      "svg",
      { class: "marker", viewBox: "0 0 12 12", "aria-hidden": "true" },
      points
        ? shape("polygon", { points, style: { fill: `var(${style.property})` } })
        : shape("circle", { cx: 6, cy: 6, r: 5, style: { fill: `var(${style.property})` } }),
    );
  }

  /** Write a run's name after its marker. */
  function runName(number, name) {
    return element("span", { class: "run-name" }, marker(number), element("bdi", {}, name));
  }

  /**
   * Make tabs, one a label, that share a panel.
   *
   * The arrow keys walk through them and choose, as in any list of tabs. After a click of the mouse
   * they belong to what was chosen, to which `onClick` takes the focus.
   */
  function tabs({ label, labels, panel, onChoose, onClick }) {
    panel.setAttribute("role", "tabpanel");
    const buttons = labels.map((content, number) =>
      element(
        "button",
        { type: "button", role: "tab", id: `tab-${number}`, "aria-controls": panel.id },
        content,
      ),
    );
    const list = element(
      "div",
      { role: "tablist", class: "tabs", "aria-label": label },
      ...buttons,
    );
    const places = { ArrowRight: 1, ArrowLeft: -1 };

    function mark(chosen) {
      buttons.forEach((button, number) => {
        button.setAttribute("aria-selected", String(number === chosen));
        button.tabIndex = number === chosen ? 0 : -1;
      });
      panel.setAttribute("aria-labelledby", `tab-${chosen}`);
    }

    list.addEventListener("click", (event) => {
      const chosen = buttons.indexOf(event.target.closest("[role=tab]"));
      if (chosen < 0) return;
      onChoose(chosen);
      if (event.detail > 0) onClick(); // of the Enter key it is 0
    });
    list.addEventListener("keydown", (event) => {
      const here = buttons.indexOf(document.activeElement);
      let chosen = here + (places[event.key] ?? 0);
      if (event.key === "Home") chosen = 0;
      if (event.key === "End") chosen = buttons.length - 1;
      if (chosen === here) return;
      event.preventDefault();
      chosen = (chosen + buttons.length) % buttons.length;
      onChoose(chosen);
      buttons[chosen].focus();
    });
    return { node: list, mark };
  }

  return { choice, marker, runName, tabs };
})();
