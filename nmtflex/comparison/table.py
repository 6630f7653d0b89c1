"""The table of a comparison: one row an entry, over its seeds."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from nmtflex.files import csv_text


class Score(NamedTuple):
    """A score over seeds, in its own unit."""

    mean: float
    least: float
    most: float
    margin: float | None  # half of the 95 % interval by bootstrap, the mean over the seeds

    @classmethod
    def over(cls, values: Sequence[float], margins: Sequence[float]) -> Score:
        """Return the score of one or more seeds.

        The mean of the margins is at least the margin of the mean: the deviation of a mean is at
        most the mean of the deviations.
        """
        margin = statistics.fmean(margins) if margins else None
        return cls(statistics.fmean(values), min(values), max(values), margin)


class Row(NamedTuple):
    """An entry: what ``eval`` says of each seed, and the time and memory of its first seed."""

    name: str
    seeds: Sequence[dict[str, Any]]  # JSON of ``eval``
    speed: dict[str, Any]  # of ``speed.measure``

    def score(self, name: str) -> Score | None:
        """Return a score by its name: BLEU, chrF2, RIBES; None if it was not asked for."""
        rows = [row for one in self.seeds for row in one["significance"] if row["metric"] == name]
        if not rows:
            return None
        margins = [(row["interval"][1] - row["interval"][0]) / 2 for row in rows]
        return Score.over([row["score"] for row in rows], margins)

    def mean(self, key: str) -> float | None:
        """Return the mean of a number of ``eval`` over the seeds; None if it is not there."""
        values = [one[key] for one in self.seeds if one.get(key) is not None]
        return statistics.fmean(values) if values else None

    @property
    def bleu(self) -> Score:
        """BLEU, which every ``eval`` has."""
        found = self.score("BLEU")
        if found is None:
            raise ValueError(f"{self.name} has no BLEU")
        return found

    @property
    def taus(self) -> list[str]:
        """The threshold of each seed; nothing without one."""
        return [_short(float(one["tau"])) for one in self.seeds if "tau" in one]

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON, numbers unrounded."""
        scores = {key: self.score(name) for key, name in SCORES.items()}
        return {
            "entry": self.name,
            **{key: one._asdict() for key, one in scores.items() if one is not None},
            **{key: self.mean(key) for key in MEANS},
            "seeds": list(self.seeds),
            "speed": self.speed,
        }


SCORES = {
    "bleu": "BLEU",
    "chrf": "chrF2",
    "ribes": "RIBES",
    "ter": "TER",
}  # by the names of ``eval --json``
MEANS = ("cps", "cps_total", "encoding_computations", "aer")


class Column(NamedTuple):
    """A column of the printed table; one that no row fills is left out."""

    head: str
    cell: Callable[[Row], str]


def columns_of(rows: Sequence[Row]) -> list[Column]:
    """Return the columns that some row fills."""
    known = [
        Column("entry", lambda row: row.name),
        Column("BLEU", lambda row: _score(row.bleu, 2)),
        Column("BLEU of the seeds", _range),
        Column("chrF2", lambda row: _score(row.score("chrF2"), 2)),
        Column("RIBES", lambda row: _score(row.score("RIBES"), 4)),
        Column("TER", lambda row: _score(row.score("TER"), 2)),
        Column("CPS", lambda row: _number(row.mean("cps"))),
        Column("CPS, total", _total),
        Column("scores in encoding", _encoding),
        Column("µs a token", lambda row: _times(row.speed["microseconds"])),
        Column("of attention", lambda row: _times(row.speed["attention_microseconds"])),
        Column("bytes a sentence", lambda row: f"{row.speed['memory_bytes']:,}"),
        Column("AER", lambda row: _number(row.mean("aer"))),
        Column("tau", lambda row: ", ".join(dict.fromkeys(row.taus))),
    ]
    return [column for column in known if any(map(column.cell, rows))]


def markdown(rows: Sequence[Row]) -> str:
    """Return the table in Markdown."""
    columns = columns_of(rows)
    lines = [[column.head for column in columns], ["---", *["---:"] * (len(columns) - 1)]]
    lines += [[column.cell(row).replace("|", "\\|") for column in columns] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def as_csv(rows: Sequence[Row]) -> str:
    """Return the table with a header, numbers unrounded."""
    scores = [f"{key}{part}" for key in SCORES for part in ("", "_least", "_most", "_margin")]
    times = [
        f"{key}{part}"
        for key in ("microseconds", "attention_microseconds")
        for part in ("", "_least", "_most")
    ]
    columns = ["entry", "seeds", *scores, *MEANS, *times, "memory_bytes", "source_positions", "tau"]
    return csv_text(columns, map(_plain, rows))


def _plain(row: Row) -> list[Any]:
    cells: list[Any] = [row.name, len(row.seeds)]
    for name in SCORES.values():
        cells += row.score(name) or [None] * len(Score._fields)
    cells += map(row.mean, MEANS)
    for key in ("microseconds", "attention_microseconds"):
        times = row.speed[key] or {}
        cells += [times.get(part) for part in ("median", "least", "most")]
    return [
        *cells,
        row.speed["memory_bytes"],
        row.speed["source_positions"],
        " ".join(row.taus),
    ]


def _score(score: Score | None, digits: int) -> str:
    """Return a score with its interval."""
    if score is None:
        return ""
    margin = "" if score.margin is None else f" ± {score.margin:.{digits}f}"
    return f"{score.mean:.{digits}f}{margin}"


def _range(row: Row) -> str:
    """Return the least and the greatest BLEU of several seeds."""
    return f"{row.bleu.least:.2f} to {row.bleu.most:.2f}" if len(row.seeds) > 1 else ""


def _total(row: Row) -> str:
    """Return the computations of all heads and layers, where they differ from CPS."""
    total = row.mean("cps_total")
    return "" if total == row.mean("cps") else _number(total)


def _encoding(row: Row) -> str:
    """Return the scores computed once a sentence, by mechanisms that compute some."""
    return _number(row.mean("encoding_computations") or None)


def _times(times: dict[str, Any] | None) -> str:
    """Return the median and the spread of microseconds."""
    if not times:
        return ""
    return f"{times['median']:,.1f} ({times['least']:,.1f} to {times['most']:,.1f})"


def _number(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def _short(value: float) -> str:
    return f"{value:.4g}"
