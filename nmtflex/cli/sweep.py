"""``nmtflex sweep``."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmtflex.cli.app import app
from nmtflex.cli.bind import command
from nmtflex.cli.console import note, print_table, write_line
from nmtflex.cli.plot import with_ending, write_figure
from nmtflex.config import BatchConfig, DeviceConfig, SearchConfig, SweepConfig, ThresholdConfig
from nmtflex.errors import OptionError, RunError
from nmtflex.files import atomic_file, check_contained, check_writable
from nmtflex.text.visible import visible

if TYPE_CHECKING:
    from nmtflex.evaluation.sweep import Point


@command(app, "sweep")
def sweep(
    config: SweepConfig, search: SearchConfig, batch: BatchConfig, device: DeviceConfig
) -> None:
    """Decode a split at several thresholds: BLEU, RIBES, CPS, seconds as a table, CSV and figure.

    Needs flexible attention. --within marks the smallest threshold that loses at most that much
    BLEU compared with no threshold: choose it with --split valid, then use it on the test data.
    """
    from nmtflex.decoding.opening import open_ensemble
    from nmtflex.evaluation.run_scores import chosen_split, read_split
    from nmtflex.evaluation.sweep import smallest_within
    from nmtflex.evaluation.sweep import sweep as sweep_thresholds
    from nmtflex.figures.figures import check_matplotlib
    from nmtflex.runs.limits import run_reuse, threshold_value, under

    check_matplotlib()
    split = chosen_split([config.run], config.split, note)
    config = dataclasses.replace(config, split=split)
    base = config.output or config.run / f"sweep-{config.split}-beam{search.beam}"
    if config.output is None:
        check_contained(config.run, RunError)
    elif not base.parent.is_dir():
        raise OptionError(f"--output {base}: there is no folder {base.parent}")
    check_writable(base.with_name(f"{base.name}.csv"), "--output")
    opened = open_ensemble([config.run], search, ThresholdConfig(), batch, device)
    if not opened.run.model.gated:
        raise OptionError(
            f"sweep needs flexible attention, but {config.run} has "
            f"{opened.run.model_config.attention.kind}"
        )
    [reuse] = run_reuse([opened.run], config.reuse_below)
    sources, references = read_split(opened.run.folder.path, split)
    taus = {threshold_value(tau, opened.run.config["data"]) for tau in config.taus}
    if config.within is not None and config.baseline is None:
        taus.add(math.inf)
    points = sweep_thresholds(
        lambda tau: opened.translator.decoding([under(opened.run, tau, reuse=reuse)]),
        sorted(taus),
        sources,
        references,
        lambda point: note(f"tau {point.tau:.4g}: BLEU {point.bleu:.2f}, CPS {point.cps:.2f}"),
    )
    chosen = None
    if config.within is not None:
        chosen = smallest_within(points, config.within, config.baseline)
    written = _write(base, config, search.beam, points, chosen)
    _print(config, points, chosen)
    if chosen is not None:
        note(
            f"tau {chosen.tau:.4g} is the smallest that loses at most {config.within} BLEU on "
            f"{config.split}"
        )
    elif config.within is not None:
        best = max(points, key=lambda point: point.bleu)
        note(
            f"every threshold loses more than {config.within} BLEU against {config.baseline:g} on "
            f"{config.split}; the best is tau {best.tau:.4g} with {best.bleu:.2f}"
        )
    note(written)


def _write(
    base: Path, config: SweepConfig, beam: int, points: list[Point], chosen: Point | None
) -> str:
    """Write the table and the figure; return a message."""
    from nmtflex.evaluation.sweep import as_csv
    from nmtflex.figures.figures import trade_off

    table, figure = with_ending(base, ".csv"), with_ending(base, ".png")
    done = "replaced" if table.exists() or figure.exists() else "wrote"
    run = visible(config.run.resolve().name)
    with atomic_file(table) as file:
        file.write(as_csv(points, (run, config.split, beam)).encode())
    write_figure(trade_off(points, f"{run} · {config.split} · beam {beam}", chosen), figure)
    return f"{done} {table} and {figure}"


def _print(config: SweepConfig, points: list[Point], chosen: Point | None) -> None:
    if config.json:
        write_line(
            json.dumps({
                "run": str(config.run),
                "split": config.split,
                "points": [_plain(point) for point in points],
                "chosen": None if chosen is None else _plain(chosen),
            })
        )
        return
    rows = [
        (
            f"{point.tau:.4g}",
            f"{point.bleu:.2f}",
            "" if point.ribes is None else f"{point.ribes:.4f}",
            f"{point.cps:.2f}",
            "" if point.cps_total is None else f"{point.cps_total:.2f}",
            f"{point.seconds:.1f}",
            f"smallest within {config.within}" if point is chosen else "",
        )
        for point in points
    ]
    columns = ["tau", "BLEU", "RIBES", "CPS", "CPS, total", "seconds", "choice"]
    hidden = set() if chosen else {"choice"}
    if all(point.cps_total == point.cps for point in points):
        hidden |= {"CPS, total"}
    shown = [place for place, name in enumerate(columns) if name not in hidden]
    print_table([columns[n] for n in shown], [[row[n] for n in shown] for row in rows])


def _plain(point: Point) -> dict[str, Any]:
    """Return plain JSON types; JSON has no infinity."""
    return point._asdict() | ({"tau": "inf"} if point.tau == math.inf else {})
