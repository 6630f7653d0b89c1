"""``nmtflex bench``."""

from __future__ import annotations

import dataclasses
import json
import math
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmtflex.cli.app import app
from nmtflex.cli.bind import command, refuse
from nmtflex.cli.console import note, print_table, write_line
from nmtflex.cli.plot import with_ending, write_figure
from nmtflex.config import BenchConfig, Decoding, DeviceConfig, SearchConfig, ThresholdConfig
from nmtflex.errors import OptionError
from nmtflex.files import atomic_file, check_writable
from nmtflex.text.visible import counted

if TYPE_CHECKING:
    import torch
    from matplotlib.figure import Figure

    from nmtflex.bench.attend import KernelTimes
    from nmtflex.bench.decoding import Measured, Times
    from nmtflex.bench.growth import Growth
    from nmtflex.bench.synthetic import SyntheticRow
    from nmtflex.evaluation.runs import RawData

SYNTHETIC_TAU = "1.2"  # default of --tau for --synthetic
MEGABYTE = 1e6  # bytes


@command(app, "bench")
def bench(config: BenchConfig, decoding: Decoding) -> None:
    """Measure how long runs take to decode their own data or a file, and where the time goes.

    Only the search on ids is timed, without text processing. Reported are: the median, minimum and
    maximum of the rounds; target tokens (of the best translation, including end of sentence) and
    sentences per second; seconds in the encoder, the embedding with what a word contributes to a
    step, attention, recurrent cell (SSRU or self-attention, feed-forward), output layer with its
    softmax, and search, which covers the rest: top-k, beams, Luong's attentional layer. What runs
    in one call is one part: layers, or decoder with output layer and search. Parts are measured in
    separate decodings, since the timers take time themselves. Then score computations per step,
    CPS, of several heads and layers the mean and all together; the speed relative to the first run;
    and peak memory (on a GPU, what PyTorch allocated; otherwise that of a new process that decodes
    once, including Python and PyTorch).

    --kernels times the attention operation alone instead of runs, in milliseconds (medians).
    --synthetic times models with random weights by source length: milliseconds per target token
    (without the encoder), their ratio to the shortest length, CPS, encoder seconds per batch, and
    peak memory; there --tau defaults to 1.2.
    """
    _check(config, decoding)
    if config.kernels:
        _bench_kernels(config, decoding.device)
    elif config.synthetic:
        _bench_synthetic(config, decoding)
    else:
        _bench_runs(config, decoding)


def _check(config: BenchConfig, decoding: Decoding) -> None:
    """Check first that every option has an effect."""
    search = decoding.search
    if config.kernels:
        computing = DeviceConfig(dtype=decoding.device.dtype)
        refuse("has no effect on --kernels", *decoding._replace(device=computing))
    elif config.synthetic:
        usual = SearchConfig()
        idle = dataclasses.replace(
            search, beam=usual.beam, max_source_length=usual.max_source_length
        )
        reuse = ThresholdConfig(reuse_below=decoding.threshold.reuse_below)
        refuse("has no effect on --synthetic", idle, reuse)
        if decoding.threshold.tau == "auto":
            raise OptionError(
                "--tau auto depends on the length of a run's validation sources, and --synthetic "
                f"has no run; give a number, such as {SYNTHETIC_TAU}"
            )
    else:
        text = SearchConfig(replace_unk=search.replace_unk, unk=search.unk)
        refuse("has no effect: only the search on ids is timed", text)


def _bench_runs(config: BenchConfig, decoding: Decoding) -> None:
    from nmtflex.bench.decoding import RunsTask, bench_runs, computing

    _check_output(config)
    data, facts = _data(config)
    measured = bench_runs(config.runs, RunsTask(data, config.repeats, decoding), note)
    place = measured[0].subject.opened.run.model.device
    how = computing(place, decoding.device.dtype)
    search = {
        **facts,
        "beam": decoding.search.beam,
        "length_penalty": decoding.search.length_penalty,
        "no_repeat_ngram": decoding.search.no_repeat_ngram,
        "retry_loops": decoding.search.retry_loops,
        "max_length": decoding.search.max_length,
        "batch_sentences": decoding.batch.batch_sentences,
    }
    if config.output is not None:
        from nmtflex.bench.decoding import as_csv
        from nmtflex.figures.figures import speed

        caption = f"{data.name} · beam {decoding.search.beam} · {computed_on(how)}"
        batches = f"batches of {counted(decoding.batch.batch_sentences, 'sentence')}"
        figure = speed(measured, f"{caption} · {batches}")
        note(_write_files(config.output, as_csv(measured), figure))
    if config.json:
        _write(config, place, {**search, **how, "runs": [one.to_dict() for one in measured]})
        return
    columns = ("", *(one.subject.name for one in measured))
    parts = list(dict.fromkeys(part for one in measured for part in one.clocked.parts))
    parts.sort(key=lambda part: part in ("output layer", "search"))  # as in a single run
    rows = [column_of(one, decoding, how, parts) for one in measured]
    labels = [label for label in rows[0] if any(row[label] for row in rows)]
    print_table(columns, [(label, *(row[label] for row in rows)) for label in labels])


def _data(config: BenchConfig) -> tuple[RawData, dict[str, str]]:
    """Read what the runs are to decode; return it, and its facts for JSON."""
    from nmtflex.evaluation.run_scores import chosen_split
    from nmtflex.evaluation.runs import raw_files, raw_split
    from nmtflex.runs.folder import RunFolder, read_run_config

    if config.source is None or config.reference is None:
        for path in config.runs:  # they are opened later, and another folder has no split either
            read_run_config(RunFolder(path))
        split = chosen_split(config.runs, config.split, note)
        return raw_split(config.runs, split).first(config.sentences), {"split": split}
    facts = {"source": str(config.source), "reference": str(config.reference)}
    return raw_files(config.source, config.reference).first(config.sentences), facts


def column_of(
    measured: Measured, decoding: Decoding, how: dict[str, Any], all_parts: Sequence[str]
) -> dict[str, str]:
    """Return a run's column of the table, by label; "" for a part that its model lacks."""
    counts, (seconds, parts) = measured.counts, measured.clocked
    facts = measured.facts(decoding)
    whole = sum(times.median for times in parts.values())
    return {
        "attention": facts["attention"],
        "decoder": f"{facts['decoder']}, {facts['beam']}",
        "computed on": computed_on(how),
        "sentences": f"{counts.sentences:,}",
        "BLEU": f"{counts.bleu:.2f}",
        "target tokens": f"{counts.tokens:,}",
        "seconds, median of rounds": f"{seconds.median:.3f}",
        "seconds, min to max": f"{min(seconds.rounds):.3f} to {max(seconds.rounds):.3f}",
        "target tokens per second": f"{counts.tokens / seconds.median:,.0f}",
        "sentences per second": f"{counts.sentences / seconds.median:,.1f}",
        **{f"{part}, seconds": _share(parts.get(part), whole) for part in all_parts},
        "computations per step (CPS)": "" if counts.cps is None else f"{counts.cps:.2f}",
        "CPS, all heads and layers": ""
        if counts.cps_total in (None, counts.cps)
        else f"{counts.cps_total:.2f}",
        "speed relative to the first": f"{measured.times_as_fast.median:.3f}",
        "the same, min to max": _spread(*measured.times_as_fast[1:]),
        "peak memory, MB": f"{measured.peak_memory / MEGABYTE:,.0f}",
    }


def _share(times: Times | None, whole: float) -> str:
    """Return the seconds of a part, and its share of the whole."""
    return "" if times is None else f"{times.median:.3f} ({times.median / whole:.0%})"


def computed_on(how: dict[str, Any]) -> str:
    """Describe the device, threads, number format and kernels."""
    threads = f"{how['threads']} thread{'s' * (how['threads'] > 1)}"
    return f"{how['device']}, {threads}, {how['dtype']}, kernels: {how['kernels']}"


def _spread(least: float, most: float) -> str:
    return f"{least:.3f} to {most:.3f}"


def _bench_kernels(config: BenchConfig, device: DeviceConfig) -> None:
    from nmtflex.bench.attend import bench_decoding, bench_training
    from nmtflex.bench.decoding import computing
    from nmtflex.runs.device import open_device

    place = open_device(device)
    how = computing(place, device.dtype)
    note(f"attention of one decoding step: {computed_on(how)}")
    decoding = bench_decoding(device=str(place), repeats=config.repeats)
    note("attention of a training batch, forward and backward")
    training = bench_training(device=str(place), repeats=config.repeats)
    if config.json:
        tables = {"decoding": decoding, "training": training}
        found = {name: [_plain(row) for row in rows] for name, rows in tables.items()}
        _write(config, place, {**how, **found})
        return
    _print_kernels("decoding, S", decoding)
    write_line("")
    _print_kernels("training, S", training)


def _print_kernels(first: str, rows: list[KernelTimes]) -> None:
    ways = list(rows[0].milliseconds)
    columns = [first, "D", "sentences", "beam", "steps", *(f"{way}, ms" for way in ways)]
    cells = [[*map(str, row.case), *(f"{row.median(way):.3f}" for way in ways)] for row in rows]
    if "window" in ways:
        columns.append("window / fused")
        for row, line in zip(rows, cells, strict=True):
            line.append(f"{row.median('window') / row.median('fused'):.2f}")
    print_table(columns, cells)


def _plain(row: KernelTimes) -> dict[str, Any]:
    """Return a row as plain JSON types, unrounded."""
    from nmtflex.bench.decoding import Times

    ways = {way: Times(rounds).to_dict() for way, rounds in row.milliseconds.items()}
    return {**row.case._asdict(), "milliseconds": ways}


def _bench_synthetic(config: BenchConfig, decoding: Decoding) -> None:
    from nmtflex.bench.decoding import computing
    from nmtflex.bench.growth import growths
    from nmtflex.bench.random_model import SEED
    from nmtflex.bench.synthetic import SyntheticTask, bench_synthetic
    from nmtflex.runs.device import open_device

    _check_output(config)
    wanted = SyntheticTask(
        lengths=config.source_lengths,
        steps=config.target_tokens,
        words=config.words or 5000,
        repeats=config.repeats,
        tau=float(decoding.threshold.tau or SYNTHETIC_TAU),
        beam=decoding.search.beam,
        batch_sentences=decoding.batch.batch_sentences,
        int8=decoding.batch.int8,
        device=decoding.device,
        training=config.growth,
    )
    place = open_device(decoding.device)
    how = computing(place, decoding.device.dtype)
    rows = bench_synthetic(config.models(), wanted, note)
    grown = growths(rows, wanted.tau)
    if config.output is not None:
        from nmtflex.bench.growth import as_csv
        from nmtflex.figures.figures import growth

        across = "source positions"
        if config.growth:
            across = "source and target tokens, t"
        caption = f"{computed_on(how)} · batches of {counted(wanted.sentences, 'sentence')}"
        figure = growth(grown, f"{caption} · beam {wanted.beam}", across)
        note(_write_files(config.output, as_csv(rows), figure))
    if not config.json:
        _print_synthetic(rows, wanted.tau)
        if config.growth:
            write_line("")
            _print_growth(grown)
        return
    settings = {
        "seed": SEED,
        "tau": "inf" if wanted.tau == math.inf else wanted.tau,
        "beam": wanted.beam,
        "sentences": wanted.sentences,
        "steps": wanted.steps,
        "words": wanted.words,
    }
    found = {"rows": [row.to_dict() for row in rows]}
    if config.growth:
        found["growth"] = [one.to_dict() for one in grown]
    _write(config, place, {**settings, **how, **found})


def _print_synthetic(rows: list[SyntheticRow], tau: float) -> None:
    columns = (
        "backbone",
        "attention",
        "source positions",
        "ms per target token",
        "min to max",
        "relative to shortest",
        "CPS",
        "encoder, s",
        "whole batch, s",
        "peak memory, MB",
    )
    print_table(
        columns,
        [
            (
                row.backbone,
                f"{row.attention}, τ = {tau:g}" if row.attention == "flexible" else row.attention,
                f"{row.length:,}",
                f"{row.milliseconds.median:.3f}",
                _spread(min(row.milliseconds.rounds), max(row.milliseconds.rounds)),
                f"{row.ratio.median:.2f}",
                "" if row.cps is None else f"{row.cps:.2f}",
                f"{row.encoder.median:.3f}",
                f"{row.whole.median:.3f}",
                f"{row.bytes.peak / MEGABYTE:,.0f}",
            )
            for row in rows
        ],
    )


def _print_growth(grown: list[Growth]) -> None:
    lengths = [f"t = {length:,}" for length in grown[0].lengths]
    print_table(
        ("backbone", "attention", "measured", *lengths, "theory", "growth"),
        [
            (
                one.backbone,
                one.attention,
                one.quantity.name,
                *(f"{value:,.0f}" if value >= 1000 else f"{value:.4g}" for value in one.values),
                one.order,
                "" if one.power is None else f"t^{one.power:.2f}",
            )
            for one in grown
        ],
    )


def _check_output(config: BenchConfig) -> None:
    """Check, before anything is measured, that the files of --output can be written."""
    if config.output is not None:
        from nmtflex.figures.figures import check_matplotlib

        check_matplotlib()
        check_writable(with_ending(config.output, ".csv"), "--output")


def _write_files(base: Path, text: str, figure: Figure) -> str:
    """Write the table and the figure of --output; return a message."""
    table, picture = with_ending(base, ".csv"), with_ending(base, ".png")
    with atomic_file(table) as file:
        file.write(text.encode())
    write_figure(figure, picture)
    return f"wrote {table} and {picture}"


def _write(config: BenchConfig, place: torch.device, found: dict[str, Any]) -> None:
    """Write one JSON object: the command, the machine and the results."""
    from nmtflex.bench.decoding import machine

    about = {
        "command": shlex.join(["nmtflex", *sys.argv[1:]]),
        "machine": machine(place),
        "repeats": config.repeats,
    }
    write_line(json.dumps(about | found, ensure_ascii=False))
