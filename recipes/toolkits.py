"""The table of benchmark_toolkits.sh: speeds of several toolkits, from what each of them wrote.

    toolkits.py FOLDER WARMUP ROUNDS BEAM... < TOOLKITS

A line of TOOLKITS is ``nmtflex=0.1.0``, or ``eole= not installed``: what stands after the space
takes the place of figures. All count target tokens without padding and with the end of sentence.
"""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import NamedTuple


class Interval(NamedTuple):
    """What a training did between two lines of its log."""

    update: int  # the last one
    speed: float  # target tokens a second
    tokens: float | None = None  # target tokens an update


class ToolkitsError(Exception):
    """What is wrong with a log; one line."""


def nmtflex_intervals(text: str) -> list[Interval]:
    """Read ``metrics.csv``, whose seconds and tokens are those since the start."""
    rows = [
        (int(row["update"]), float(row["seconds"]), int(row["target_tokens"]))
        for row in csv.DictReader(io.StringIO(text))
    ]
    found, last = [], 0
    for (_, start, before), (update, seconds, tokens) in pairwise(rows):
        if tokens > before:  # not a validation
            made = tokens - before
            found.append(Interval(update, made / (seconds - start), made / (update - last)))
            last = update
    return found


def fairseq_intervals(text: str) -> list[Interval]:
    """Read the JSON of ``train_inner``."""
    lines = re.findall(r"\| train_inner \| (\{.*\})", text)
    found = [json.loads(line) for line in lines]
    return [
        Interval(int(line["num_updates"]), float(line["wps"]), float(line["wpb"])) for line in found
    ]


def marian_intervals(text: str) -> list[Interval]:
    """Read ``Up. 1,040 : Sen. 9,100 : Cost 4.5 : Time 9.5s : 2200.00 words/s``; target words."""
    lines = re.findall(r"Up\. ([\d,]+) : .*?Time ([\d.]+)s : ([\d.]+) words/s", text)
    found, last = [], 0
    for update, seconds, speed in (
        (int(a.replace(",", "")), float(b), float(c)) for a, b, c in lines
    ):
        found.append(Interval(update, speed, seconds * speed / (update - last)))
        last = update
    return found


def opennmt_intervals(text: str) -> list[Interval]:
    """Read ``Step 20/  240; ... 900/1100 tok/s``, source and target; eole writes the same."""
    found = re.findall(r"Step +(\d+)/.*?; *\d+/ *(\d+) tok/s", text)
    return [Interval(int(update), float(speed)) for update, speed in found]


def joeynmt_intervals(text: str) -> list[Interval]:
    """Read ``Step: 20, ... Tokens per Sec: 2200``."""
    found = re.findall(r"Step: +(\d+),.*?Tokens per Sec: +(\d+)", text)
    return [Interval(int(update), float(speed)) for update, speed in found]


def nmtflex_decoding(log: str, output: str) -> float:
    """Read the JSON of ``bench``."""
    del log
    return float(json.loads(output)["runs"][0]["target_tokens_per_second"])


def fairseq_decoding(log: str, output: str) -> float:
    """Read fairseq's own count, on its last line."""
    return float(re.findall(r"([\d.]+) tokens/s\)", log + output)[-1])


def timed_decoding(log: str, output: str) -> float:
    """Divide the words of the output, and an end for each sentence, by the seconds of the log."""
    pattern = r"(?:Total translation time \(s\):|Generation took|Total time:) +([\d.]+)"
    if eole := re.findall(r"(?:Step 0|Subsequent prediction) time [^:]*: +([\d.]+)", log):
        seconds = sum(map(float, eole[-2:]))
    else:
        seconds = float(re.findall(pattern, log)[-1])
    return (len(output.split()) + len(output.splitlines())) / seconds


INTERVALS: dict[str, Callable[[str], list[Interval]]] = {
    "nmtflex": nmtflex_intervals,
    "marian": marian_intervals,
    "fairseq": fairseq_intervals,
    "opennmt": opennmt_intervals,
    "eole": opennmt_intervals,
    "joeynmt": joeynmt_intervals,
}
DECODING: dict[str, Callable[[str, str], float]] = {
    "nmtflex": nmtflex_decoding,
    "fairseq": fairseq_decoding,
}  # the others: timed_decoding


def _family(toolkit: str) -> str:
    """Return the toolkit of which this is a variant, such as nmtflex-int8."""
    return toolkit.partition("-")[0]


class Benchmark(NamedTuple):
    """What was run, and where its logs are."""

    folder: Path
    warmup: int  # updates
    rounds: int
    beams: list[int]

    def training(self, toolkit: str) -> list[list[Interval]]:
        """Return the intervals after the warm-up, of each round.

        Raises:
            ToolkitsError: The log has none.
        """
        found = []
        for number in range(1, self.rounds + 1):
            name = f"{toolkit}.train.{number}.log"
            if _family(toolkit) == "nmtflex":
                name = f"{toolkit}.run.{number}/metrics.csv"
            path = self.folder / name
            intervals = INTERVALS[_family(toolkit)](path.read_text(encoding="utf-8"))
            measured = [one for one in intervals if one.update > self.warmup]
            if not measured:
                raise ToolkitsError(f"no speeds after the warm-up in {path}")
            found.append(measured)
        return found

    def parameters(self, toolkit: str) -> str:
        """Return what ``parameters.py`` counted, or "" if it was not asked."""
        path = self.folder / f"{toolkit}.count.log"
        return f"{int(path.read_text(encoding='utf-8')):,}" if path.exists() else ""

    def decoding(self, toolkit: str, beam: int) -> list[float]:
        """Return the speed of each round.

        Raises:
            ToolkitsError: A log has none.
        """
        found = []
        for number in range(1, self.rounds + 1):
            log = self.folder / f"{toolkit}.decode.{beam}.{number}.log"
            output = self.folder / f"{toolkit}.output.{beam}.{number}"
            read = DECODING.get(_family(toolkit), timed_decoding)
            try:
                speed = read(log.read_text(encoding="utf-8"), output.read_text(encoding="utf-8"))
            except (IndexError, KeyError, ValueError) as error:
                raise ToolkitsError(f"no speed in {log}") from error
            found.append(speed)
        return found


def table(lines: Iterable[str], benchmark: Benchmark) -> list[str]:
    """Return the lines of a Markdown table, one a toolkit; ratios are the first's to each."""
    beams = benchmark.beams
    heads = ["toolkit", "version", "parameters", "tokens an update", "each round"]
    heads += ["training, tokens/s", "ratio"]
    heads += [head for beam in beams for head in (f"decoding, beam {beam}", "ratio")]
    rows = [heads, ["---"] * len(heads)]
    first: list[float] | None = None
    for line in lines:
        named, _, fault = line.strip().partition(" ")
        toolkit, _, version = named.partition("=")
        row = [toolkit, version]
        if not fault:
            try:
                rounds = benchmark.training(toolkit)
                row += [benchmark.parameters(toolkit), *_rounds(rounds)]
                speeds = [[one.speed for several in rounds for one in several]]
                speeds += [benchmark.decoding(toolkit, beam) for beam in beams]
            except (OSError, ToolkitsError, ValueError) as error:
                fault = str(error)
        if fault:
            row = [toolkit, version, fault, *[""] * (len(heads) - 3)]
        else:
            medians = [median(some) for some in speeds]
            first = first or medians
            for some, ours in zip(speeds, first, strict=True):
                row += [_spread(some), f"{ours / median(some):.2f}"]
        rows.append(row)
    return [f"| {' | '.join(row)} |" for row in rows]


def _rounds(rounds: list[list[Interval]]) -> list[str]:
    """Return target tokens an update, if they are known, and the median speed of each round."""
    sizes = [one.tokens for several in rounds for one in several if one.tokens is not None]
    speeds = (f"{median(one.speed for one in several):,.0f}" for several in rounds)
    return [f"{sum(sizes) / len(sizes):,.0f}" if sizes else "", " ".join(speeds)]


def _spread(speeds: list[float]) -> str:
    if len(speeds) == 1:
        return f"{speeds[0]:,.0f}"
    return f"{median(speeds):,.0f} ({min(speeds):,.0f}-{max(speeds):,.0f})"


if __name__ == "__main__":
    folder, *numbers = sys.argv[1:]
    warmup, rounds, *beams = map(int, numbers)
    shown = table(sys.stdin, Benchmark(Path(folder), warmup, rounds, beams))
    sys.stdout.write("\n".join(shown) + "\n")
