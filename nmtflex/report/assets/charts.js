// Charts by Plotly: drawn when they come into view, in the colours of the theme in force.
nmtflex.charts = (() => {
  "use strict";

  const { details, element, scrollBox, whenSeen } = nmtflex.dom;
  const { resolve } = nmtflex.colours;

  // A list of the buttons there are, so that none of those that send a chart anywhere is among them.
  const CONFIG = {
    displaylogo: false,
    responsive: true,
    showSendToCloud: false,
    plotlyServerURL: "",
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
  };
  const FONT = 13; // pixels
  const PROPERTIES = {
    ink: "--ink",
    muted: "--muted",
    line: "--line",
    surface: "--surface",
    paper: "--paper",
  };
  const redraws = new Map(); // of each chart, whether it has been drawn yet

  /** Run Plotly's script, which lies in the page as mere text: it takes long, and few need it. */
  function load() {
    if (globalThis.Plotly) return;
    const script = document.getElementById("plotly").textContent;
    keepOutMapStyles(script);
    document.head.append(element("script", {}, script));
  }

  // Plotly adds a style sheet for maps, which the page's policy would refuse with an error, unless
  // an element with the name of that sheet is there already.
  function keepOutMapStyles(script) {
    for (const [, id] of script.matchAll(/getElementById\("([0-9a-f]{64})"\)/g)) {
      if (!document.getElementById(id)) document.head.append(element("meta", { id }));
    }
  }

  /** Keep a text from being read as Plotly's own kind of markup. */
  function plain(text) {
    return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  }

  function themeColours() {
    return Object.fromEntries(
      Object.entries(PROPERTIES).map(([name, property]) => [name, resolve(property)]),
    );
  }

  /** Return colour, line and marker of the n-th run for a trace of Plotly. */
  function runStyle(number) {
    const { property, dash, marker } = nmtflex.colours.ofRun(number);
    const color = resolve(property);
    return { line: { color, dash, width: 2 }, marker: { color, symbol: marker, size: 8 } };
  }

  function baseLayout(colours, height) {
    const axis = {
      automargin: true,
      gridcolor: colours.line,
      linecolor: colours.muted,
      tickcolor: colours.muted,
      zeroline: false,
      title: { standoff: 12, font: { size: FONT } },
    };
    const touched = matchMedia("(pointer: coarse)").matches;
    return {
      height,
      autosize: true,
      margin: { l: 48, r: 12, t: 12, b: 44 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: FONT, color: colours.ink },
      hoverlabel: {
        align: "left",
        bgcolor: colours.surface,
        bordercolor: colours.muted,
        font: { color: colours.ink },
      },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colours.muted, activecolor: colours.ink },
      hovermode: "closest",
      showlegend: true, // of one line too: it is a run's name
      dragmode: touched ? false : "zoom", // else a finger could not scroll past the chart
      legend: { orientation: "h", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom" },
      xaxis: { ...axis },
      yaxis: { ...axis },
    };
  }

  /** Lay a layout over another one, axis by axis. */
  function overlay(base, layout) {
    const merged = { ...base, ...layout };
    for (const part of ["xaxis", "yaxis", "legend"]) {
      merged[part] = { ...base[part], ...layout[part] };
    }
    for (const axis of ["xaxis", "yaxis"]) {
      merged[axis].title = { ...base[axis].title, ...layout[axis].title };
    }
    return merged;
  }

  /**
   * Make a figure of a chart, with its numbers as a table beside it.
   *
   * `figure(colours)` returns traces and layout; `table()` the table. `redraw` is for when what
   * they return has changed.
   */
  function chart({ title, height, figure, table }) {
    const plot = element("div", { class: "plot", style: { "min-height": `${height}px` } });
    const numbers = element("div");
    const caption = element("figcaption", {}, title());
    const node = element("figure", { class: "chart" }, caption, plot, numbers);

    function draw() {
      load();
      const colours = themeColours();
      const { traces, layout } = figure(colours);
      const whole = overlay(baseLayout(colours, height), layout);
      globalThis.Plotly.react(plot, traces, whole, CONFIG).then(() => {
        // A reader of the screen has the caption and the table; the drawing would be loose numbers.
        for (const drawing of plot.querySelectorAll("svg.main-svg")) {
          drawing.setAttribute("aria-hidden", "true");
        }
      });
      redraws.set(draw, true);
    }

    function redraw() {
      caption.textContent = title();
      numbers.replaceChildren(details("Numbers", () => scrollBox(`Numbers: ${title()}`, table())));
      if (redraws.get(draw)) draw();
    }

    redraws.set(draw, false);
    redraw();
    whenSeen(plot, draw);
    return { node, redraw };
  }

  nmtflex.theme.onChange(() => {
    for (const [draw, drawn] of redraws) if (drawn) draw();
  });
  addEventListener("beforeprint", () => {
    for (const [draw, drawn] of redraws) if (!drawn) draw();
  });

  return { chart, plain, runStyle };
})();
