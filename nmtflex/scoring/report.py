"""The output of ``nmtflex eval``: tables, one JSON object, and one line a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from nmtflex.scoring.bleu import Score
from nmtflex.scoring.buckets import Bucket
from nmtflex.scoring.evaluation import Evaluation
from nmtflex.scoring.significance import Comparison

_COMPARISON = ("score", "mean", "95 % interval", "p-value")


class Table(NamedTuple):
    """Rows of text under a header."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreReport:
    """Scores of systems.

    Args:
        systems: By name; the first is the baseline of the comparisons.
        comparisons: Means, intervals and p-values, if requested.
        buckets: BLEU by source length of each system, if requested.
    """

    systems: Mapping[str, Evaluation]
    comparisons: Sequence[Comparison] = ()
    buckets: Mapping[str, Sequence[Bucket[Score]]]

    def to_dict(self) -> dict[str, Any]:
        """Return the scores of one system, or of several in a list ``systems``; unrounded."""
        found = {name: self._plain_system(name) for name in self.systems}
        comparisons = [comparison.to_dict() for comparison in self.comparisons]
        significance = {"significance": comparisons} if comparisons else {}
        if len(found) == 1:
            (only,) = found.values()
            return only | significance
        first = next(iter(self.systems.values()))
        return {
            "systems": [{"system": name, **scores} for name, scores in found.items()],
            "sentences": first.sentences,
            "signature": first.bleu.signature,
            **significance,
        }

    def system_dict(self, name: str) -> dict[str, Any]:
        """Return the scores of one of several systems, with its comparisons; unrounded."""
        own = [row.to_dict() for row in self.comparisons if row.system == name]
        return self._plain_system(name) | ({"significance": own} if own else {})

    def _plain_system(self, name: str) -> dict[str, Any]:
        found = self.systems[name].to_dict()
        if name in self.buckets:
            found["by_length"] = list(map(_plain, self.buckets[name]))
        return found

    def tables(self) -> list[Table]:
        """Return the printed tables."""
        tables = self._systems() if len(self.systems) > 1 else [self._system()]
        return tables + [self._by_length()] * bool(self.buckets)

    def _system(self) -> Table:
        """Return one row a score, with its interval if there is one."""
        (evaluation,) = self.systems.values()
        intervals = {row.metric: row for row in self.comparisons}
        rows = []
        for name, score in evaluation.scores.items():
            row = intervals.get(name)
            numbers = _numbers(row)[1:3] if row else []
            signature = row.signature if row else score.signature
            rows.append([name, _rounded(name, score.value), *numbers, signature])
        blank = [""] * (2 if intervals else 0)
        if evaluation.alignment is not None:
            signature = f"percent|{evaluation.alignment.signature}"
            rows += [
                [name, number, *blank, signature] for name, number in _alignment(evaluation).items()
            ]
        if evaluation.cps is not None:
            what = "score computations a step"
            rows.append(["CPS", f"{evaluation.cps:.2f}", *blank, what])
            if _heads(evaluation):
                total = _two_digits(evaluation.cps_total)
                rows.append(["CPS, total", total, *blank, f"{what}, all heads and layers"])
        if evaluation.encoding_computations:
            number = f"{evaluation.encoding_computations:.1f}"
            rows.append(["encoding", number, *blank, "score computations a sentence, once"])
        shown = _COMPARISON[1:3] if intervals else ()
        return Table(("metric", "score", *shown, "signature"), rows)

    def _systems(self) -> list[Table]:
        """Return one row a system, or a score and system with p-values; and the signatures."""
        if self.comparisons:
            signatures = {row.metric: row.signature for row in self.comparisons}
            rows = [[row.metric, row.system, *_numbers(row)] for row in self.comparisons]
            scores = [Table(("metric", "system", *_COMPARISON), rows)]
            others = {name: self._others(evaluation) for name, evaluation in self.systems.items()}
            if any(others.values()):
                rows = [[name, *numbers.values()] for name, numbers in others.items()]
                scores.append(Table(("system", *next(iter(others.values()))), rows))
        else:
            first = next(iter(self.systems.values()))
            signatures = {name: score.signature for name, score in first.scores.items()}
            rows = [
                [
                    system,
                    *(_rounded(name, score.value) for name, score in evaluation.scores.items()),
                    *self._others(evaluation).values(),
                ]
                for system, evaluation in self.systems.items()
            ]
            scores = [Table(("system", *signatures, *self._others(first)), rows)]
        return [*scores, Table(("metric", "signature"), list(signatures.items()))]

    def _others(self, evaluation: Evaluation) -> dict[str, str]:
        """Return a run's alignment and costs, by column name; nothing for files."""
        if evaluation.decoding_seconds is None:
            return {}
        total = {}
        if any(map(_heads, self.systems.values())):
            total = {"CPS, total": _two_digits(evaluation.cps_total)}
        seconds = f"{evaluation.decoding_seconds:.1f}"
        costs = {"CPS": _two_digits(evaluation.cps), **total, "decoding seconds": seconds}
        return _alignment(evaluation) | costs

    def _by_length(self) -> Table:
        """Return one row a bucket."""
        names = [f"BLEU {name}" for name in self.buckets] if len(self.buckets) > 1 else ["BLEU"]
        rows = []
        for several in zip(*self.buckets.values(), strict=True):
            scores = ["" if one.score is None else f"{one.score.value:.2f}" for one in several]
            rows.append([several[0].label, str(several[0].sentences), *scores])
        return Table(("source tokens", "sentences", *names), rows)


def sentence_table(columns: Mapping[str, Sequence[float]]) -> str:
    """Return tab-separated lines with a header; indices from 0, numbers unrounded."""
    lines = ["\t".join(("index", *columns))]
    for index, row in enumerate(zip(*columns.values(), strict=True)):
        lines.append("\t".join(map(repr, (index, *row))))
    return "".join(f"{line}\n" for line in lines)


def _plain(bucket: Bucket[Score]) -> dict[str, Any]:
    """Return a bucket for JSON."""
    found = bucket._asdict()
    score = found.pop("score")
    return found | {"bleu": None if score is None else score.value}


def _heads(evaluation: Evaluation) -> bool:
    """Tell whether scores were computed by several heads or layers."""
    return evaluation.cps_total not in (None, evaluation.cps)


def _alignment(evaluation: Evaluation) -> dict[str, str]:
    """Return the rates of a run's alignments, by their printed names, if they were requested."""
    score = evaluation.alignment
    if score is None:
        return {}
    rates = {"AER": score.aer, "precision": score.precision, "recall": score.recall}
    return {name: _two_digits(value) for name, value in rates.items()}


def _two_digits(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _numbers(row: Comparison) -> list[str]:
    """Return the texts of score, mean, interval and p-value."""
    low, high = row.interval
    return [
        _rounded(row.metric, row.score),
        _rounded(row.metric, row.mean),
        f"{_rounded(row.metric, low)}-{_rounded(row.metric, high)}",
        "" if row.p_value is None else f"{row.p_value:.{4 if row.p_value > 5e-5 else 7}f}",
    ]


def _rounded(metric: str, value: float) -> str:
    return f"{value:.4f}" if metric == "RIBES" else f"{value:.2f}"
