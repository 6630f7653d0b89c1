"""``nmtflex generate``: synthetic corpora."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from nmtflex.cli.app import app
from nmtflex.cli.bind import command
from nmtflex.cli.console import note
from nmtflex.cli.stages import Stages, cleaning_up, stages
from nmtflex.config import GenerateCopyConfig, GenerateToyConfig, GenerateZipfConfig
from nmtflex.text.visible import counted

if TYPE_CHECKING:
    from nmtflex.corpus.parallel import Splits

generate_app = typer.Typer(no_args_is_help=True)
app.add_typer(generate_app, name="generate", help="Generate a synthetic corpus.")

SPLITS = ["train", "valid", "test"]


@command(generate_app, "toy")
def toy(options: GenerateToyConfig) -> None:
    """Write an English-Japanese corpus drawn from a small grammar.

    Both sides are tokenized. No sentence occurs in two pairs.
    """
    from nmtflex.corpus import parallel
    from nmtflex.corpus.toy import LANGUAGES, generate_toy

    parallel.refuse_existing(options.out, SPLITS, LANGUAGES)
    with cleaning_up(), stages() as progress:
        splits = generate_toy(options, progress=progress)
        described = _write(options.out, splits, LANGUAGES, progress)
    _report(options, described, progress)


@command(generate_app, "copy")
def copy(options: GenerateCopyConfig) -> None:
    """Write a copy task (Britz et al. 2017): the target repeats the source's random symbols.

    Lengths are uniform; the paper's begin with 0, but empty pairs teach nothing.
    Held-out sequences do not occur in training, except at lengths so short that training has all.
    """
    from nmtflex.corpus import parallel
    from nmtflex.corpus.copy_task import LANGUAGES, generate_copy

    parallel.refuse_existing(options.out, SPLITS, LANGUAGES)
    with cleaning_up(), stages() as progress:
        splits, repeated = generate_copy(options, progress)
        described = _write(options.out, splits, LANGUAGES, progress)
    for split, count in repeated.items():
        if count:
            verb = "repeats" if count == 1 else "repeat"
            described.append(
                f"{split}: {counted(count, 'sequence')} {verb} others, since few short ones exist"
            )
    _report(options, described, progress)


@command(generate_app, "zipf")
def zipf(options: GenerateZipfConfig) -> None:
    """Write text with the long tail of a real vocabulary, to try out large corpora.

    Words are built from stems and endings and drawn by Zipf's law. Each source word has its own
    target word, in the order 2 1 4 3 and so on. All splits are drawn from the same distribution
    and may share short sentences.
    """
    from nmtflex.corpus.zipf import generate_zipf

    with cleaning_up(), stages() as progress:
        described = generate_zipf(options, progress)
    _report(options, described, progress)


def _write(out: Path, splits: Splits, languages: tuple[str, str], progress: Stages) -> list[str]:
    """Write the splits and return one line about each."""
    from nmtflex.corpus import parallel

    progress("writing", 0)
    parallel.write_splits(out, splits, languages)
    progress("counting words", 0)
    return parallel.describe(out, splits, languages)


def _report(
    options: GenerateToyConfig | GenerateCopyConfig | GenerateZipfConfig,
    described: list[str],
    progress: Stages,
) -> None:
    """Report what was written and how long it took."""
    for line in described:
        note(line)
    speed = (options.train + options.valid + options.test) / progress.total
    note(f"{options.out}: made in {progress.total:.1f} seconds ({speed:,.0f} pairs per second)")
