"""The tables of gpu.sh, in Markdown, of whatever parts have been run.

    gpu_table.py FOLDER WARMUP RUN...

Speeds of training are medians over the intervals between log lines after WARMUP updates, those of
decoding over the rounds, with the slowest and the fastest.
"""

from __future__ import annotations

import csv
import json
import statistics
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

DTYPES = ("float32", "bfloat16")
Lines = list[list[str]]


def intervals(path: Path, warmup: int) -> list[float]:
    """Return the target tokens a second between the lines of a training's metrics."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["split"] == "train"]
    points = [
        (float(row["seconds"]), int(row["target_tokens"]))
        for row in rows
        if int(row["update"]) >= warmup
    ]
    return [
        (tokens - before_tokens) / (seconds - before)
        for (before, before_tokens), (seconds, tokens) in pairwise(points)
    ]


def speeds(folder: Path, warmup: int, runs: list[str]) -> Lines:
    """Return a line for each training."""
    found = []
    for run in runs:
        metrics = folder / run / "metrics.csv"
        if metrics.exists():
            found.append([run.removeprefix("gpu-"), spread(intervals(metrics, warmup))])
    return found


def spread(values: list[float]) -> str:
    """Return the median with the least and the greatest value."""
    if not values:
        return ""
    return f"{statistics.median(values):,.0f} ({min(values):,.0f} to {max(values):,.0f})"


def decodings(folder: Path) -> Lines:
    """Return a line for each model and beam size: target tokens a second in each number format."""
    found: dict[tuple[str, str, int], dict[str, str]] = {}
    for path in folder.glob("gpu.decoding.*.json"):
        report = json.loads(path.read_text(encoding="utf-8"))
        for row in report["rows"]:
            times = row["milliseconds_per_target_token"]["rounds"]
            cells = found.setdefault((row["backbone"], row["attention"], report["beam"]), {})
            cells[report["dtype"]] = spread([1000 / one for one in times])
    return [
        [backbone, attention, str(beam), *(cells.get(dtype, "") for dtype in DTYPES)]
        for (backbone, attention, beam), cells in sorted(found.items())
    ]


def kernels(report: dict[str, Any]) -> Lines:
    """Return a line for each operation: cases, greatest error, and time where it was measured."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for case in report["cases"]:
        words = [word for word in case["case"].split() if "=" not in word]
        groups.setdefault(" ".join(words), []).append(case)
    found = []
    for name, cases in groups.items():
        worst = max(cases, key=lambda case: float(case["error"]))
        cells = [name, str(len(cases)), f"{worst['error']:.1e}", worst["case"]]
        timed = [case for case in cases if "milliseconds" in case]
        slowest = max(timed, key=lambda case: float(case["milliseconds"]), default=None)
        cells.append(pace(slowest) if slowest else "")
        found.append(cells)
    return found


def pace(case: dict[str, Any]) -> str:
    """Return the time of a case, and its share of the bandwidth of a copy."""
    share = f"{100 * case['bandwidth']:.0f} %"
    return f"{case['milliseconds']:.3f} ms, {share} ({case['case']})"


def copies(folder: Path) -> Lines:
    """Return the best validation of each training of the copy task."""
    found = []
    for path in sorted(folder.glob("gpu-copy-*/metrics.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        scores = [float(row["bleu"]) for row in rows if row["bleu"]]
        if rows:
            best = f"{max(scores):.2f}" if scores else ""
            last = rows[-1]
            seconds = f"{float(last['seconds']):,.0f}"
            found.append([
                path.parent.name.removeprefix("gpu-copy-"),
                last["update"],
                seconds,
                best,
            ])
    return found


def table(title: str, head: list[str], lines: Lines) -> str:
    """Return a table with its title, or nothing without lines."""
    if not lines:
        return ""
    rows = [head, ["---"] * len(head), *lines]
    return f"{title}\n\n" + "".join(f"| {' | '.join(row)} |\n" for row in rows) + "\n"


def main(folder: Path, warmup: int, runs: list[str]) -> str:
    """Return all tables."""
    found = ""
    path = folder / "gpu.kernels.json"
    if path.exists() and path.stat().st_size:
        report = json.loads(path.read_text(encoding="utf-8"))
        title = f"Kernels on {report['device']}, float32 against the reference in float64"
        title += f"; copies move {report['copy_gb_per_second']:,.0f} GB/s"
        head = [
            "operation",
            "cases",
            "greatest error",
            "where",
            "time, share of a copy's bandwidth",
        ]
        found += table(title, head, kernels(report))
    head = ["run", "target tokens/s"]
    found += table("Training", head, speeds(folder, warmup, runs))
    head = ["backbone", "attention", "beam", *DTYPES]
    found += table("Decoding, target tokens/s without the encoder", head, decodings(folder))
    head = ["copy task", "updates", "seconds", "best validation BLEU"]
    return found + table("The copy task of paper 001", head, copies(folder))


if __name__ == "__main__":
    sys.stdout.write(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
