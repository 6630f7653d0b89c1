"""Carrying out a comparison: what is not done yet, then the rows of the table."""

from __future__ import annotations

import itertools
import json
import shlex
import threading
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

import nmtflex
from nmtflex.bench.decoding import Report
from nmtflex.comparison.journal import Journal, Step
from nmtflex.comparison.plan import Comparison, Entry, candidates_of, chosen_tau, steps_of
from nmtflex.comparison.table import Row


def make_all(comparison: Comparison, journal: Journal, jobs: int, report: Report) -> None:
    """Train and score every entry with every seed, as far as that is not done.

    Args:
        comparison: Its entries and seeds. One that others begin with is made before them.
        journal: What is done.
        jobs: Commands that run at once.
        report: Receives progress messages.

    Raises:
        NmtflexError: A step failed or was interrupted; those beside it have ended, too.
    """
    left, made = comparison.rows(), set[tuple[str, int]]()
    running: dict[Future[None], tuple[Entry, int]] = {}
    failed = threading.Event()
    total, ended = comparison.num_commands(), itertools.count(1)

    def make(entry: Entry, seed: int) -> None:
        for step in steps_of(comparison, entry, seed, journal):
            if failed.is_set():
                return
            if journal.result(step) is not None:
                next(ended)
                continue
            report(shlex.join(step.words))
            began = time.monotonic()
            bleu = journal.do(step).get("bleu")  # of a scoring
            done = f"{step.name}: done in {time.monotonic() - began:,.0f} s"
            score = "" if bleu is None else f"; BLEU {bleu:.2f}"
            report(f"{done}{score}; command {next(ended)} of {total}")

    with ThreadPoolExecutor(jobs) as pool:
        try:
            while left or running:
                for row in _ready(left, made)[: jobs - len(running)]:
                    left.remove(row)
                    running[pool.submit(make, *row)] = row
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    entry, seed = running.pop(future)
                    future.result()
                    made.add((entry.name, seed))
        except BaseException:
            failed.set()
            if running:
                report("waiting for the commands that still run")
            raise


def _ready(left: list[tuple[Entry, int]], made: set[tuple[str, int]]) -> list[tuple[Entry, int]]:
    """Return those that begin with nothing, or with what is made."""
    bases = [(entry.begins_with or entry.init_from, seed) for entry, seed in left]
    return [row for row, base in zip(left, bases, strict=True) if base[0] is None or base in made]


def measured_rows(
    comparison: Comparison, journal: Journal, report: Report
) -> tuple[list[Row], dict[str, Any]]:
    """Return a row an entry, and how the speed was measured (JSON), of a comparison that is made.

    Raises:
        NmtflexError: A run cannot be opened.
    """
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
