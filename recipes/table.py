"""The table of a recipe: what was measured beside the paper's figures, in Markdown.

    table.py FOLDER TITLE < ROWS

A row is ``label | names | paper``: the names of the JSON files of ``nmtflex eval`` in FOLDER,
without ending, and the paper's figures as ``bleu=34.87 cps=24.4``. Several names are several seeds:
mean, smallest and greatest. ``a+b`` is one system, with the BLEU of b, as of tokenized text, and
all else of a. Lines without a bar are printed under the table as they are.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class Measure(NamedTuple):
    """A column: the key of ``eval --json``, its head, and the digits after the point."""

    key: str
    head: str
    digits: int


MEASURES = (
    Measure("bleu", "BLEU", 2),
    Measure("chrf", "chrF", 2),
    Measure("ribes", "RIBES", 3),
    Measure("cps", "CPS", 2),
    Measure("encoding_computations", "scores in encoding", 0),
    Measure("decoding_seconds", "decoding, s", 1),
)


class Row(NamedTuple):
    """A label, its systems and the paper's figures by key."""

    label: str
    systems: list[dict[str, float]]
    paper: dict[str, str]  # as it gives them


class TableError(Exception):
    """What is wrong with the rows; one line."""


def read_row(line: str, folder: Path) -> Row:
    """Read a row and its files.

    Raises:
        TableError: It is malformed, or a file is missing or damaged.
    """
    fields = [field.strip() for field in line.split("|")]
    if len(fields) != 3:
        raise TableError(f"{line.strip()!r}: a row has three fields, this one {len(fields)}")
    label, names, figures = fields
    paper = {}
    for figure in figures.split():
        key, _, value = figure.partition("=")
        if key not in {measure.key for measure in MEASURES}:
            raise TableError(f"{label}: {figure!r} is no figure of eval, as bleu=34.87")
        paper[key] = value
    return Row(label, [_read_system(name, folder) for name in names.split()], paper)


def _read_system(name: str, folder: Path) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in name.split("+"):
        path = folder / f"{part}.json"
        try:
            scores = json.loads(path.read_text(encoding="utf-8"))
            found |= {"bleu": scores["bleu"]} if found else scores
        except OSError as error:
            raise TableError(f"{path}: {error.strerror}; run the recipe again") from error
        except (ValueError, KeyError, TypeError) as error:
            raise TableError(f"{path}: damaged; delete it and run the recipe again") from error
    if not found.get("encoding_computations"):  # 0 for all but memory attention
        found.pop("encoding_computations", None)
    known = {measure.key: found.get(measure.key) for measure in MEASURES}
    return {key: number for key, number in known.items() if number is not None}


def table(rows: list[Row]) -> list[str]:
    """Return the lines of a Markdown table; a column that no row fills is left out."""
    columns: list[list[str]] = [["", *(row.label for row in rows)]]
    for measure in MEASURES:
        measured = [_measured(row.systems, measure) for row in rows]
        quoted = [row.paper.get(measure.key, "") for row in rows]
        columns += [[measure.head, *measured]] * any(measured)
        columns += [[f"{measure.head}, paper", *quoted]] * any(quoted)
    head, *body = zip(*columns, strict=True)
    lines = [head, ["---"] * len(columns), *body]
    return [f"| {' | '.join(line)} |" for line in lines]


def _measured(systems: list[dict[str, float]], measure: Measure) -> str:
    values = [system[measure.key] for system in systems if measure.key in system]
    if not values:
        return ""
    mean = _rounded(sum(values) / len(values), measure)
    if len(values) == 1:
        return mean
    return f"{mean} ({_rounded(min(values), measure)} to {_rounded(max(values), measure)})"


def _rounded(value: float, measure: Measure) -> str:
    return f"{value:,.{measure.digits}f}"


def show(lines: Iterable[str], folder: Path, title: str) -> str:
    """Return the whole text: title, table and remarks.

    Raises:
        TableError: As ``read_row``.
    """
    texts = [line.strip() for line in lines if line.strip()]
    rows = [read_row(text, folder) for text in texts if "|" in text]
    remarks = [text for text in texts if "|" not in text]
    return "\n".join(["", title, "", *table(rows), *([""] * bool(remarks)), *remarks, ""])


if __name__ == "__main__":
    try:
        sys.stdout.write(show(sys.stdin, Path(sys.argv[1]), sys.argv[2]) + "\n")
    except TableError as error:
        sys.exit(f"table.py: {error}")
