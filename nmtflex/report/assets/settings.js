// Settings of the runs: first what they do not share.
nmtflex.settings = (() => {
  "use strict";

  const { element, note, scrollBox, table } = nmtflex.dom;
  const { counted } = nmtflex.text;
  const { runName } = nmtflex.controls;

  const HASH_DIGITS = 12;

  function isShared(row) {
    return row.values.every((value) => value === row.values[0]);
  }

  function nameCell(row) {
    return element(
      "span",
      {},
      element("span", { class: "group" }, `${row.group} `),
      element("code", {}, row.name),
    );
  }

  // A value may be as long as a path: it breaks anywhere. Of a hash the beginning is enough to tell
  // two apart.
  function value(text) {
    if (text === "") return element("span", { class: "none" }, "–");
    if (!/^[0-9a-f]{64}$/.test(text)) return element("code", {}, text);
    return element("code", { title: text }, `${text.slice(0, HASH_DIGITS)}…`);
  }

  function differences(rows, runs) {
    return table({
      name: "texts",
      label: "Settings in which the runs differ",
      head: ["Setting", ...runs.map((run, number) => runName(number, run.name))],
      rows: rows.map((row) => [nameCell(row), ...row.values.map(value)]),
    });
  }

  function common(rows) {
    return table({
      name: "texts",
      head: ["Setting", "Value"],
      rows: rows.map((row) => [nameCell(row), value(row.values[0])]),
    });
  }

  function show(section, { settings, runs }) {
    const different = settings.filter((row) => !isShared(row));
    const shared = settings.filter(isShared);
    if (different.length) {
      section.append(
        element("h3", {}, "Where the runs differ"),
        scrollBox("Where the runs differ", differences(different, runs)),
      );
    } else if (runs.length > 1) {
      section.append(note("The runs differ in no setting."));
    }
    if (!shared.length) return;
    const summary =
      runs.length > 1
        ? `${counted(shared.length, "setting")} that all runs share`
        : counted(shared.length, "setting");
    section.append(
      element(
        "details",
        {},
        element("summary", {}, summary),
        scrollBox("Settings", common(shared)),
      ),
    );
  }

  return { show };
})();
