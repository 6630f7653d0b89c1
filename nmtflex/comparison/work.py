"""Carrying out a comparison: what is not done yet, then the rows of the table."""

from __future__ import annotations

import json
import shlex
from typing import Any

import nmtflex
from nmtflex.bench.decoding import Report
from nmtflex.comparison.journal import Journal, Step
from nmtflex.comparison.plan import Comparison, candidates_of, chosen_tau, steps_of
from nmtflex.comparison.table import Row


def carry_out(
    comparison: Comparison, journal: Journal, report: Report
) -> tuple[list[Row], dict[str, Any]]:
    """Do what is not done of a comparison.

    Args:
        comparison: Its entries and seeds.
        journal: What is done.
        report: Receives progress messages.

    Returns:
        A row an entry, and how the speed was measured (JSON).

    Raises:
        NmtflexError: A step failed or was interrupted.
    """
    for step in steps_of(comparison, journal):
        if journal.result(step) is None:
            report(shlex.join(step.words))
            journal.do(step)
    speed = _speed(comparison, journal, report)
    paces = speed.pop("entries")
    rows = []
    for entry in comparison.entries:
        scores = []
        for seed in comparison.seeds:
            tau = chosen_tau(comparison, entry, seed, journal)
            scores.append(journal.result(comparison.scoring(entry, seed, tau)) or {})
        rows.append(Row(entry.name, scores, paces[entry.name]))
    return rows, speed


def _speed(comparison: Comparison, journal: Journal, report: Report) -> dict[str, Any]:
    """Return the speed of the entries, measured anew if anything of it has changed."""
    candidates = candidates_of(comparison, journal)
    words = [nmtflex.__version__, json.dumps(comparison.bench.to_dict())]
    for name, one in candidates.items():
        options = [group.to_dict() for group in one.decoding]
        words.append(json.dumps({"entry": name, "decoding": options}))
    step = Step("speed", words, [one.path for one in candidates.values()])
    result = journal.result(step)
    if result is None:
        from nmtflex.comparison.speed import measure

        result = measure(candidates, comparison.bench, report)
        journal.keep(step, result)
    return result
