"""``nmtflex compare``."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmtflex.cli.app import app
from nmtflex.cli.bench import computed_on
from nmtflex.cli.bind import command
from nmtflex.cli.comparison_file import read_comparison
from nmtflex.cli.console import note, print_table, stderr, write_line
from nmtflex.cli.plot import with_ending, write_figure
from nmtflex.comparison.journal import Journal
from nmtflex.comparison.plan import Comparison, steps_of
from nmtflex.comparison.processes import Processes
from nmtflex.config import CompareConfig
from nmtflex.errors import OptionError
from nmtflex.files import atomic_file
from nmtflex.text.visible import counted

if TYPE_CHECKING:
    from nmtflex.comparison.table import Row

OF_ALIGNMENT = ("--gold-alignment", "--replace-unk")  # options that need weights over the source


@command(app, "compare")
def compare(config: CompareConfig) -> None:
    """Train, score and time several models alike, as a TOML file describes them: one table.

    Each entry is trained with every seed on the same data, scored, and timed in turns with the
    others. The table has BLEU, chrF and RIBES with 95 % intervals, CPS, microseconds a target
    token, the bytes that attention keeps of a source, and the alignment error if there is a gold
    alignment; the figure has BLEU against CPS and against time. Both are written into the folder of
    the comparison, as CSV, Markdown and PNG.

    Run the same command again to resume: what is done is not done again. A changed entry is refused
    if it has been trained, unless the change is one that train accepts of a run.

    On two cores, --jobs 2 trains two models at once, which takes less time than one after the other
    on both. It takes the memory of both.
    """
    from nmtflex.corpus.store import open_prepared
    from nmtflex.figures.figures import check_matplotlib

    comparison = read_comparison(config)
    _warn_of_decoders(comparison)
    quiet = stderr.quiet or config.jobs > 1  # the progress of several would be mixed up
    processes = Processes(config.jobs, ["--quiet"] if quiet else [])
    journal = Journal(comparison.out, processes)
    _check_entries(comparison)
    if config.dry_run:
        _print_commands(comparison, journal)
        return
    check_matplotlib()
    open_prepared(comparison.data)
    from nmtflex.comparison.table import columns_of
    from nmtflex.comparison.work import make_all, measured_rows

    with processes:
        make_all(comparison, journal, config.jobs, note)
    rows, speed = measured_rows(comparison, journal, note)
    written = _write_files(comparison.out / "comparison", rows, _caption(comparison, speed))
    if config.json:
        found = {"seeds": list(comparison.seeds), "speed": speed}
        write_line(json.dumps(found | {"entries": [row.to_dict() for row in rows]}))
    else:
        columns = columns_of(rows)
        print_table(
            [column.head for column in columns],
            [[column.cell(row) for column in columns] for row in rows],
        )
    note(written)


def _warn_of_decoders(comparison: Comparison) -> None:
    """Mechanisms are compared under one decoder; by default, one of them has another."""
    kinds = {entry.name: entry.model.decoder.kind for entry in comparison.entries}
    by_default = any(one.train and "--decoder" not in one.train for one in comparison.entries)
    if by_default and len(set(kinds.values())) > 1:
        found = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
        note(f"warning: the entries have different decoders ({found})")


def _check_entries(comparison: Comparison) -> None:
    """Check, before anything is trained, what a training would not find out.

    Raises:
        OptionError: An entry's attention lacks what its finetuning or its scoring needs.
    """
    for entry in comparison.entries:
        aligning = [flag for flag in OF_ALIGNMENT if flag in entry.evaluate]
        reusing = entry.decoding.threshold.reuse_below is not None
        if not (entry.finetuning or entry.needs_gate or aligning or reusing):
            continue
        from nmtflex.model.build import build_model, outlined
        from nmtflex.training.finetune import check_attention

        with outlined():
            model = build_model(entry.model, 10, 10, 10)
        if entry.finetuning is not None:
            check_attention(entry.finetuning, model, entry.model.attention, f"entry {entry.name}")
        if entry.needs_gate and not model.gated:
            raise OptionError(
                f"entry {entry.name}: a threshold needs flexible attention, and it has "
                f"{entry.model.attention.kind}; leave out sweep or tau"
            )
        if reusing and not model.reuses:
            raise OptionError(
                f'entry {entry.name}: reuse-below needs attend-every = "gate"; leave it out'
            )
        if aligning and not model.aligned:
            raise OptionError(
                f"entry {entry.name}: {aligning[0]} needs weights over source positions, and it "
                f"has {entry.model.attention.in_words()}; put {aligning[0][2:]} = false into "
                f"[entries.{entry.name}.eval]"
            )


def _print_commands(comparison: Comparison, journal: Journal) -> None:
    """Print the commands; those that are done as comments, unless they read what is not."""
    open_runs = set[Path]()
    for entry, seed in comparison.rows():
        for step in steps_of(comparison, entry, seed, journal):
            done = open_runs.isdisjoint(step.reads) and journal.result(step) is not None
            if not done and step.run is not None:
                open_runs.add(step.run)
            write_line(f"{'# done: ' if done else ''}{shlex.join(['nmtflex', *step.words])}")
    first = comparison.seeds[0]
    runs = dict.fromkeys(str(comparison.run(one.name, first)) for one in comparison.entries)
    write_line(f"# then, in turns, the speed of {shlex.join(runs)}")


def _caption(comparison: Comparison, speed: dict[str, Any]) -> str:
    """Return the settings of the figure."""
    seeds = f"seed{'s' * (len(comparison.seeds) > 1)} {', '.join(map(str, comparison.seeds))}"
    batches = f"batches of {counted(speed['batch_sentences'], 'sentence')}"
    return f"{speed['split']} · beam {speed['beam']} · {seeds} · {computed_on(speed)} · {batches}"


def _write_files(base: Path, rows: list[Row], caption: str) -> str:
    """Write table and figure; return a message."""
    from nmtflex.comparison.table import as_csv, markdown
    from nmtflex.figures.figures import comparison

    texts = {".csv": as_csv(rows), ".md": markdown(rows)}
    for ending, text in texts.items():
        with atomic_file(with_ending(base, ending)) as file:
            file.write(text.encode())
    write_figure(comparison(rows, caption), with_ending(base, ".png"))
    return f"wrote {base}.csv, {base}.md and {base}.png"
