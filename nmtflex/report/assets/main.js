// Fills the page: its head, then section by section.
(() => {
  "use strict";

  const { element } = nmtflex.dom;
  const { counted } = nmtflex.text;

  function showHead(report) {
    const { command, made, runs, split, split_sentences: sentences, title, version } = report;
    document.getElementById("title").textContent = title;
    const facts = [
      ["Split", `${split}, ${counted(sentences, "sentence")}`],
      ["Runs", String(runs.length)],
      ["Made", `${made} with nmtflex ${version}`],
      ["Command", element("code", {}, command)],
    ];
    document
      .getElementById("made")
      .append(
        ...facts.map(([name, value]) =>
          element("div", {}, element("dt", {}, name), element("dd", {}, value)),
        ),
      );
  }

  function showThemes() {
    const { CHOICES, choose, current } = nmtflex.theme;
    const names = { auto: "Auto", light: "Light", dark: "Dark" };
    document.getElementById("theme").append(
      nmtflex.controls.choice({
        legend: "Theme",
        hideLegend: true,
        options: CHOICES.map((value) => ({ value, label: names[value] })),
        value: current(),
        onChange: choose,
      }),
    );
  }

  const report = JSON.parse(document.getElementById("report").textContent);
  showHead(report);
  showThemes();
  nmtflex.scores.show(document.getElementById("scores"), report);
  nmtflex.settings.show(document.getElementById("settings"), report);
  nmtflex.learning.show(document.getElementById("learning"), report);
  nmtflex.tradeoff.show(document.getElementById("trade-off"), report);
  nmtflex.lengths.show(document.getElementById("lengths"), report);
  nmtflex.explorer.show(document.getElementById("sentences"), report);
})();
