"""``nmtflex translate``: raw lines in, raw lines out."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmtflex.cli.app import app
from nmtflex.cli.bind import command, refuse
from nmtflex.cli.console import note, stderr
from nmtflex.cli.html import translate_page
from nmtflex.cli.processes import share_work
from nmtflex.config import (
    Decoding,
    DeviceConfig,
    GlossaryConfig,
    OutputConfig,
    ParagraphConfig,
    SearchConfig,
    ShownConfig,
)
from nmtflex.errors import OptionError
from nmtflex.launch import SPEAKER
from nmtflex.runs.folder import RunFolder, read_run_config
from nmtflex.text.visible import counted
from nmtflex.workers import usable_cores

if TYPE_CHECKING:
    from nmtflex.decoding.opening import Opened
    from nmtflex.decoding.tally import Tally
    from nmtflex.decoding.translation import Translation
    from nmtflex.decoding.translator import Translator
    from nmtflex.ranks import Ranks
    from nmtflex.text.glossary import Glossary


@command(app, "translate")
@command(app, "decode", hidden=True)
def translate(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Run folders from nmtflex train; several form an ensemble and must share one "
            "vocabulary.",
            metavar="RUNS",
        ),
    ],
    decoding: Decoding,
    paragraphs: ParagraphConfig,
    terms: GlossaryConfig,
    shown: ShownConfig,
    written: OutputConfig,
    input: Annotated[  # noqa: A002
        Path | None,
        typer.Option("--input", "-i", help="File to translate; - or default: standard input."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "--out",
            "-o",
            help="File to write; .gz, .xz and .zst are compressed; - or default: standard output.",
        ),
    ] = None,
) -> None:
    """Translate raw lines from standard input to standard output, one output line per input line.

    Lines of several sentences need --split sentences, unless the run was trained on such lines.

    Programs that wait for each translation need --buffer 1; on a terminal this is automatic. The
    moses format writes ||| inside a translation as &#124;&#124;&#124;.

    With --html, the input is one HTML document, and so is the output.

    Several runs form an ensemble that averages their probabilities. Attention output
    (--attention-output, --replace-unk, --verbose) then comes from the first run, and --alignment
    from the mean of the runs; --tau applies to the runs with flexible attention, and auto is
    computed for each; the CPS of --stats is the sum over the runs. Of several attention heads and
    layers the mean is shown, or --layer and --head.

    Several processes can share the lines: use --processes N on one machine, or torchrun -m nmtflex
    -- translate ... on several. The first process reads and writes.
    """
    if share_work(written):
        return
    input, output = (None if path == Path("-") else path for path in (input, output))  # noqa: A001
    interactive = _begin(runs, input)
    from nmtflex.corpus.writers import open_lines
    from nmtflex.decoding.opening import open_ensemble
    from nmtflex.decoding.shards import follow, lead
    from nmtflex.decoding.stream import (
        ChunkTranslation,
        open_besides,
        translated,
        watch_cut,
        write_chunks,
    )
    from nmtflex.decoding.tally import Tally

    search, threshold, batch, device = decoding
    paragraphs = dataclasses.replace(paragraphs, split="sentences") if written.html else paragraphs
    _check(written, search, shown, paragraphs)
    _check_files(input, output, written, terms.glossary)
    glossary = _glossary(terms)
    ranks = _ranks(written)
    if interactive:
        written = dataclasses.replace(written, buffer=1, workers=1)
    models = functools.partial(
        open_ensemble, runs, search, threshold, batch, shown=shown, paragraphs=paragraphs
    )
    if written.html:
        lines = _lines(input, interactive=False)
        translate_page(models(device), lines, output, written, glossary, ranks)
        return
    opened, again, spawn = _open(models, ranks.device(device), written.workers)
    show = _alignments(opened, written)
    traced = bool(written.attention_output or written.verbose)
    asked = traced, written.stats, bool(written.alignment), bool(written.word_scores)
    setup = ChunkTranslation(again, written.n_best, *asked, glossary)
    if not ranks.first:  # only the first process reads and writes
        follow(ranks, setup)
        return
    tally = Tally() if written.stats else None
    lines = _lines(input, interactive)
    with contextlib.ExitStack() as files:
        # Open these first: if one fails, the output file must not be emptied.
        besides = files.enter_context(open_besides(written, opened.translator.pipeline))
        out = files.enter_context(open_lines(output))
        report = files.enter_context(_progress(quiet=interactive or out.isatty()))
        if ranks.alone:
            chunks = translated(setup, lines, written, spawn)
        else:
            chunks = lead(ranks, setup, lines, written)
        write_chunks(watch_cut(chunks, note), out, written.format, report, besides, tally, show)
    _report_cps(tally)


def _begin(runs: list[Path], input: Path | None) -> bool:  # noqa: A002
    """Check that there are such runs, announce that they are being loaded if lines are typed.

    That is before torch is imported, which takes seconds.

    Returns:
        Whether lines are typed.

    Raises:
        RunError: A run is missing or damaged.
    """
    for run in runs:
        read_run_config(RunFolder(run))
    interactive = input is None and sys.stdin.isatty()
    if interactive and SPEAKER.speaks():
        note(f"loading {' + '.join(map(str, runs))}")
    return interactive


def _glossary(terms: GlossaryConfig) -> Glossary | None:
    """Read the glossary, if there is one.

    Raises:
        DataError: It cannot be read, or a line is no term with its translation.
    """
    from nmtflex.text.glossary import Glossary

    return Glossary.read(terms.glossary, terms.ignore_case) if terms.glossary else None


def _ranks(written: OutputConfig) -> Ranks:
    """Join the processes that share the lines.

    Raises:
        OptionError: There are several, and each would have workers.
    """
    from nmtflex.ranks import open_ranks

    ranks = open_ranks()
    if not ranks.alone and written.workers > 1:
        raise OptionError(
            f"--workers {written.workers} cannot be combined with {ranks.size} processes; remove "
            f"the option"
        )
    return ranks


def _report_cps(tally: Tally | None) -> None:
    """Report score computations per step, if they were counted."""
    if tally is None or tally.cps is None:
        return
    total = f"; {tally.total:.2f} of all heads and layers together"
    reading = f", and {tally.encoding:.1f} per sentence in the encoder"
    note(
        f"CPS {tally.cps:.2f} (score computations per step{total * (tally.total != tally.cps)})"
        f"{reading * bool(tally.encoding)}"
    )


def _check(
    written: OutputConfig, search: SearchConfig, shown: ShownConfig, paragraphs: ParagraphConfig
) -> None:
    """Check options against each other."""
    from nmtflex.decoding.stream import check_output

    check_output(written, search)
    if paragraphs.split == "sentences":
        parts = OutputConfig(
            n_best=written.n_best,
            alignment=written.alignment,
            attention_output=written.attention_output,
            verbose=written.verbose,
        )
        refuse("cannot be combined with --split sentences, whose parts are joined", parts)
    shows = written.attention_output or written.alignment or written.verbose or written.html
    if not (shows or search.replace_unk):
        refuse(
            "has no effect without --alignment, --attention-output, --html, --replace-unk or "
            "--verbose",
            shown,
        )


def _check_files(
    input: Path | None,  # noqa: A002
    output: Path | None,
    written: OutputConfig,
    glossary: Path | None,
) -> None:
    """Check that no output overwrites an input.

    Raises:
        OptionError: Two options name the same file.
    """
    if input and output and output.exists() and input.samefile(output):
        raise OptionError(f"--output {output} is the --input file; choose another file")
    named = {
        "--input": input,
        "--output": output,
        "--attention-output": written.attention_output,
        "--alignment": written.alignment,
        "--word-scores": written.word_scores,
        "--glossary": glossary,
    }
    for (name, other), (flag, path) in itertools.combinations(named.items(), 2):
        if flag != "--output" and path and other and path.resolve() == other.resolve():
            raise OptionError(f"{flag} {path} is the {name} file; choose another file")


def _lines(input: Path | None, interactive: bool) -> Iterator[str]:  # noqa: A002
    """Return the lines of a file or of standard input; on a terminal, explain how to stop.

    Raises:
        DataError: The file cannot be read; raised before the output is opened.
    """
    from nmtflex.corpus.readers import read_lines, read_stream

    if interactive:
        note("type a sentence and press Enter; press Ctrl-D on an empty line to stop")
    if input is None:
        return read_stream(sys.stdin.buffer)
    lines = read_lines(input)
    return itertools.chain(list(itertools.islice(lines, 1)), lines)


def _open(
    models: Callable[..., Opened], device: DeviceConfig, workers: int
) -> tuple[Opened, Callable[[], Translator], bool]:
    """Open the runs here, and choose how worker processes get their translators.

    Returns:
        The runs; a function that gives a worker its translator; and whether workers must be
        spawned, rather than forked to share what is loaded.
    """
    from nmtflex.decoding.forks import may_fork

    if workers == 1:
        opened = models(device)
        return opened, lambda: opened.translator, True
    shared = _shared(device, workers)
    if not may_fork(device.device):
        opened = models(device, ready=False)
        return opened, functools.partial(_translator, models, shared), True
    opened = models(dataclasses.replace(device, threads=1), ready=False)
    return opened, functools.partial(_forked, opened, shared.threads), False


def _translator(models: Callable[[DeviceConfig], Opened], device: DeviceConfig) -> Translator:
    """Open the runs in a spawned worker process."""
    return models(device).translator


def _forked(opened: Opened, threads: int) -> Translator:
    """Return the translator that was opened before this worker was forked."""
    from nmtflex.decoding.forks import start_in_fork
    from nmtflex.decoding.opening import make_all_ready

    start_in_fork(threads)
    opened.translator.threads = threads
    make_all_ready(opened.models, opened.translator.batch.int8)
    return opened.translator


def _shared(device: DeviceConfig, workers: int) -> DeviceConfig:
    """Return the device options of each worker process; they share the cores."""
    if device.threads:
        return device
    return dataclasses.replace(device, threads=max(1, usable_cores() // workers))


def _alignments(
    opened: Opened, written: OutputConfig
) -> Callable[[int, str, Translation], None] | None:
    """Return a function that shows the alignment of a sentence on standard error, if requested.

    Raises:
        OptionError: An alignment is requested, and attention has no weights over source positions.
        RunError: Word scores are requested, and the run has not been calibrated.
    """
    from nmtflex.cli.alignment import alignment_text
    from nmtflex.decoding.alignment import align
    from nmtflex.runs.limits import check_aligned

    if written.alignment:
        check_aligned(opened.run, "--alignment", opened.translator.aligned)
    if written.word_scores:
        opened.translator.load_confidence()
    if not written.verbose:
        return None
    check_aligned(opened.run, "--verbose")

    def show(index: int, line: str, translation: Translation) -> None:
        alignment = align(opened.translator.pipeline, line, translation)
        stderr.print(alignment_text(index, alignment), soft_wrap=True)

    return show


@contextlib.contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Show lines and lines per second while translating, and a summary at the end.

    The live display needs a terminal to itself; the summary is one line anywhere.
    """
    from rich.progress import Progress, SpinnerColumn, TextColumn

    text = "{task.completed:,.0f} lines, {task.fields[speed]:,.0f} lines/s"
    sentences = tokens = 0
    start = time.perf_counter()
    with Progress(
        SpinnerColumn(),
        TextColumn(text),
        console=stderr,
        disable=quiet or not stderr.is_terminal,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as progress:
        task = progress.add_task("translate", total=None, speed=0.0)

        def report(new_sentences: int, new_tokens: int) -> None:
            nonlocal sentences, tokens
            sentences += new_sentences
            tokens += new_tokens
            speed = sentences / (time.perf_counter() - start)
            progress.update(task, completed=sentences, speed=speed)

        yield report
    seconds = time.perf_counter() - start
    note(
        f"{counted(sentences, 'sentence')} in {seconds:.1f} s, "
        f"{sentences / seconds:,.1f} sentences/s, {tokens / seconds:,.0f} tokens/s"
    )
