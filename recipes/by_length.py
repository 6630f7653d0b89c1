"""Milliseconds a target token by the length of the source, for runs in turns.

    by_length.py SOURCE LENGTHS ROUNDS RUN[@TAU]...

SOURCE has sentences in order, as the runs' text pipeline reads them. For each of LENGTHS (such as
50,400,2000) as many of them are joined as have that many tokens, eight times over; runs translate
these eight documents together (beam 5, one thread). "Whole" is all of it; "decoding" leaves out the
encoder and the first step, which are timed apart. The speed is that of the whole beside the first
run. Each round times all runs in turn.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from typing import Any

import nmtflex

DOCUMENTS = 8
Ids = list[list[int]]


def documents(opened: Any, lines: list[str], length: int) -> Ids:
    """Return documents of a length, of the tokens of as many lines as it takes."""
    left = iter(lines)
    found = []
    for _ in range(DOCUMENTS):
        ids: list[int] = []
        while len(ids) < length:
            line = next(left, None)
            if line is None:
                sys.exit(f"SOURCE has too few tokens for {DOCUMENTS} documents of {length}")
            ids += opened.pipeline.source.encode(line)
        found.append(ids[:length])
    return found


def seconds(opened: Any, sources: Ids, longest: int | None = None) -> tuple[float, int]:
    """Return the seconds of translating and the target tokens, with the end of each document."""
    limits = None if longest is None else [longest] * len(sources)
    start = time.perf_counter()
    found = opened.translate_ids(sources, count=1, limits=limits)
    return time.perf_counter() - start, sum(len(best.ids) + 1 for best, *_ in found)


def measure(opened: dict[str, Any], lines: list[str], length: int, rounds: int) -> None:
    """Print the rows of a length: each run's milliseconds, and its speed beside the first run's."""
    sources = {run: documents(own, lines, length) for run, own in opened.items()}
    whole: dict[str, list[float]] = {run: [] for run in opened}
    decoding: dict[str, list[float]] = {run: [] for run in opened}
    tokens = {}
    for number in range(rounds + 1):
        for run, own in opened.items():
            begun, _ = seconds(own, sources[run], longest=1)
            took, tokens[run] = seconds(own, sources[run])
            if number:  # the first round warms up
                whole[run].append(1000 * took / tokens[run])
                decoding[run].append(1000 * (took - begun) / tokens[run])
    first, *_ = whole.values()
    for run, own in whole.items():
        ratios = [one / other for one, other in zip(first, own, strict=True)]
        cells = [length, Path(run).name, tokens[run], *map(shown, (own, decoding[run], ratios))]
        sys.stdout.write(f"| {' | '.join(map(str, cells))} |\n")
        sys.stdout.flush()


def shown(values: list[float]) -> str:
    """Show the median and the spread."""
    return f"{statistics.median(values):.3f} ({min(values):.3f}-{max(values):.3f})"


def main(source: str, lengths: str, rounds: str, *runs: str) -> None:
    """Print a table."""
    lines = Path(source).read_text(encoding="utf-8").splitlines()
    opened = {}
    for run in runs:
        folder, _, tau = run.partition("@")
        own = {"tau": float(tau)} if tau else {}
        opened[run] = nmtflex.load(
            Path(folder), device="cpu", threads=1, beam=5, batch_sentences=DOCUMENTS, **own
        )
    sys.stdout.write(
        "| source tokens | run | target tokens | whole, ms | decoding, ms | times as fast |\n"
    )
    sys.stdout.write("| --- | --- | --- | --- | --- | --- |\n")
    for length in map(int, lengths.split(",")):
        measure(opened, lines, length, int(rounds))


if __name__ == "__main__":
    main(*sys.argv[1:])
