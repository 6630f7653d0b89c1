"""How long runs take to decode, and where the time goes: what ``nmtflex bench`` measures.

The runs take turns, round by round, so that other load affects all alike. Only the search on ids is
timed, not tokenization and detokenization. In each round a run decodes twice: bare, for the seconds
that are compared, and under a ``Stopwatch``, for those of the parts. The stopwatch costs about one
microsecond per part and step, 0.02 % of a step with 64 sentences and beam 5, 0.15 % of one with a
single hypothesis; but it makes the CPU wait for a GPU before and after every part.
"""

from __future__ import annotations

import contextlib
import functools
import math
import multiprocessing
import os
import platform
import signal
import statistics
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch

import nmtflex
from nmtflex.bench.stopwatch import Stopwatch
from nmtflex.config import Decoding, ThresholdConfig
from nmtflex.decoding.ensemble import Ids
from nmtflex.decoding.opening import Opened, open_ensemble
from nmtflex.decoding.tally import Tally
from nmtflex.decoding.translator import WARM_UP
from nmtflex.errors import DataError
from nmtflex.evaluation.run_scores import run_bleu
from nmtflex.evaluation.runs import RawData, facts_of, names, open_runs
from nmtflex.files import csv_text
from nmtflex.ops.dispatch import form
from nmtflex.ops.heap import give_back
from nmtflex.ops.launch import wait_for

Result = TypeVar("Result")
Report = Callable[[str], None]


class Times(NamedTuple):
    """The times of all rounds, in seconds unless stated otherwise."""

    rounds: list[float]

    @property
    def median(self) -> float:
        """The reported value, robust against a disturbed round or two."""
        return statistics.median(self.rounds)

    def to_dict(self) -> dict[str, Any]:
        """Return median, spread and rounds for JSON."""
        return {
            "median": self.median,
            "least": min(self.rounds),
            "most": max(self.rounds),
            "rounds": self.rounds,
        }


class Ratio(NamedTuple):
    """How many times one thing is another: by the medians, and in the rounds."""

    median: float  # of the medians
    least: float  # of the rounds
    most: float


def ratio(one: Times, other: Times) -> Ratio:
    """Return ``one`` divided by ``other``.

    Each round is compared with the same round of the other, which ran next to it.
    """
    rounds = [first / second for first, second in zip(one.rounds, other.rounds, strict=True)]
    return Ratio(one.median / other.median, min(rounds), max(rounds))


class Counts(NamedTuple):
    """The output and the computations of a decoding; the same in every round."""

    sentences: int  # that are not empty
    tokens: int  # of the best translations, the end of sentence counted
    cps: float | None  # score computations a step
    encoding: float | None  # score computations a sentence before the first step
    cps_total: float | None  # of all heads and attending layers together
    bleu: float  # of the best translations, 0-100


class Subject(NamedTuple):
    """A run, and the sources to decode."""

    path: Path
    name: str
    opened: Opened
    sources: list[Ids]
    references: list[str]  # raw lines


class Clocked(NamedTuple):
    """The rounds of a run."""

    seconds: Times  # of decoding
    parts: dict[str, Times]  # of decoding under a stopwatch


class Measured(NamedTuple):
    """All measurements of a run."""

    subject: Subject
    counts: Counts
    clocked: Clocked
    times_as_fast: Ratio  # as the first run
    peak_memory: int  # bytes

    def facts(self, decoding: Decoding) -> dict[str, str]:
        """Return the run's columns of a table: ``attention``, with a threshold, and ``decoder``."""
        return facts_of(self.subject.opened, self.subject.name, decoding)

    @property
    def tokens_per_second(self) -> tuple[float, float, float]:
        """Target tokens a second: of the slowest round, by the median, of the fastest."""
        seconds = self.clocked.seconds
        ordered = max(seconds.rounds), seconds.median, min(seconds.rounds)
        slowest, median, fastest = (self.counts.tokens / taken for taken in ordered)
        return slowest, median, fastest

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON, numbers unrounded."""
        seconds, counts = self.clocked.seconds, self.counts
        return {
            "run": str(self.subject.path),
            "name": self.subject.name,
            "attention": self.subject.opened.run.model_config.attention.kind,
            "tau": "inf" if (tau := self.subject.opened.tau) == math.inf else tau,
            "sentences": counts.sentences,
            "bleu": counts.bleu,
            "target_tokens": counts.tokens,
            "seconds": seconds.to_dict(),
            "target_tokens_per_second": self.tokens_per_second[1],
            "sentences_per_second": counts.sentences / seconds.median,
            "parts": {part: times.to_dict() for part, times in self.clocked.parts.items()},
            "cps": counts.cps,
            "cps_total": counts.cps_total,
            "encoding_computations": counts.encoding,
            "times_as_fast": self.times_as_fast._asdict(),
            "peak_memory_bytes": self.peak_memory,
        }


class RunsTask(NamedTuple):
    """What to measure."""

    data: RawData
    repeats: int
    decoding: Decoding


def bench_runs(
    paths: Sequence[Path], wanted: RunsTask, report: Report = lambda _: None
) -> list[Measured]:
    """Decode some text with each run, repeatedly.

    Args:
        paths: Run folders; the others are compared with the first.
        wanted: What to measure.
        report: Receives progress messages.

    Raises:
        OptionError: The runs cannot do what the options ask.
        RunError: A folder is not a run.
        DataError: The text has no words, or a process died.
    """
    subjects = subjects_of(paths, names(paths), open_runs(paths, wanted.decoding), wanted.data)
    counted = []
    for one in subjects:
        report(f"{one.path}: counting over {len(one.sources):,} sentences of {wanted.data.name}")
        counted.append(count(one))
    clocked = clock_rounds(subjects, wanted.repeats, report)
    report("peak memory, each run in its own process")
    peaks = [in_fresh_process(_peak_of, *_task(one, wanted.decoding)) for one in subjects]
    ratios = [ratio(clocked[0].seconds, one.seconds) for one in clocked]
    columns = zip(subjects, counted, clocked, ratios, peaks, strict=True)
    return [Measured(*column) for column in columns]


def subjects_of(
    paths: Sequence[Path], called: Sequence[str], opened: Sequence[Opened], data: RawData
) -> list[Subject]:
    """Encode the sources for opened runs; each is called by its name.

    Raises:
        DataError: The text has no words.
    """
    found: list[Subject] = []
    for path, name, one in zip(paths, called, opened, strict=True):
        encode = one.translator.pipeline.source.encode
        found.append(Subject(path, name, one, list(map(encode, data.sources)), data.references))
        if not any(found[-1].sources):
            raise DataError(f"{path}: no sentence of {data.name} has words")
    return found


def count(subject: Subject) -> Counts:
    """Warm up, then decode once and count; counting takes time, so this pass is not timed."""
    translator, tally = subject.opened.translator, Tally()
    translator.translate_ids(subject.sources[:WARM_UP], count=1)
    found = translator.translate_ids(subject.sources, tally, count=1)
    made = [best[0] for best, ids in zip(found, subject.sources, strict=True) if ids]
    tokens = sum(len(best.ids) + 1 for best in made)
    target = translator.pipeline.target
    words = [target.decode_words(best[0].ids) for best in found]
    bleu = run_bleu(target, words, subject.references).value
    return Counts(len(made), tokens, tally.cps, tally.encoding, tally.total, bleu)


def as_csv(measured: Sequence[Measured]) -> str:
    """Return a table of runs with a header, numbers unrounded."""
    columns = ("run", "attention", "tau", "sentences", "target_tokens", "bleu", "cps", "cps_total")
    speeds = ("slowest", "median", "fastest")
    rows = []
    for one in measured:
        facts = one.to_dict() | {"run": one.subject.name}
        rows.append([*(facts[column] for column in columns), *one.tokens_per_second])
    return csv_text([*columns, *(f"tokens_per_second_{speed}" for speed in speeds)], rows)


def clock_rounds(
    subjects: Sequence[Subject], repeats: int, report: Report = lambda _: None
) -> list[Clocked]:
    """Let the runs take turns, ``repeats`` times."""
    seconds: list[list[float]] = [[] for _ in subjects]
    parts: list[dict[str, list[float]]] = [{} for _ in subjects]
    for number in range(repeats):
        for place, one in enumerate(subjects):
            model = one.opened.run.model
            decode = functools.partial(one.opened.translator.translate_ids, one.sources, count=1)
            seconds[place].append(clock(model.device, decode))
            with Stopwatch(model) as watch:
                decode()
            for part, taken in watch.seconds.items():
                parts[place].setdefault(part, []).append(taken)
        shown = ", ".join(
            f"{one.name} {taken[-1]:.3g} s" for one, taken in zip(subjects, seconds, strict=True)
        )
        report(f"round {number + 1} of {repeats}: {shown}")
    return [
        Clocked(Times(whole), {part: Times(rounds) for part, rounds in of.items()})
        for whole, of in zip(seconds, parts, strict=True)
    ]


def clock(device: torch.device, work: Callable[..., object], *arguments: Any) -> float:
    """Return the seconds that some work takes on a device."""
    begin = now(device)
    work(*arguments)
    return now(device) - begin


def now(device: torch.device) -> float:
    """Wait until a device has finished, and return the time in seconds."""
    wait_for(device)
    return time.perf_counter()


def _task(subject: Subject, decoding: Decoding) -> tuple[Path, list[Ids], Decoding]:
    """Return the arguments of ``_peak_of``; a threshold is for runs that can use it."""
    opened, threshold = subject.opened, decoding.threshold
    usable = ThresholdConfig(
        tau=None if opened.tau is None else threshold.tau, reuse_below=opened.reuse or None
    )
    return subject.path, subject.sources, decoding._replace(threshold=usable)


def _peak_of(path: Path, sources: list[Ids], decoding: Decoding) -> int:
    """Decode once in a fresh process, and return its peak memory in bytes."""
    opened = open_ensemble([path], *decoding)
    opened.translator.translate_ids(sources, count=1)
    return peak_memory(opened.run.model.device)


def in_fresh_process(function: Callable[..., Result], *arguments: Any) -> Result:
    """Call a function of a module in a new process.

    Raises:
        DataError: The process died.
    """
    context = multiprocessing.get_context("spawn")  # a forked one has this one's memory
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(sender, function, arguments), daemon=True)
    # This process handles Ctrl-C: a child that starts with the signal blocked keeps it blocked.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    sender.close()
    try:
        found: Result = receiver.recv()
    except EOFError as error:
        raise DataError(
            "a process that measured memory died, perhaps out of memory; compute fewer sentences "
            "at once with --batch-sentences, a smaller --beam or shorter --lengths"
        ) from error
    finally:
        process.terminate()
        process.join()
    return found


def _send(sender: Connection, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
    sender.send(function(*arguments))


def peak_memory(device: torch.device) -> int:
    """Return the peak memory of this process, in bytes.

    On a GPU it is PyTorch's memory there. Otherwise it is the process's resident memory, including
    Python, PyTorch and the compiled kernels, 300 to 400 MB.
    """
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    try:  # under Linux getrusage includes the parent process
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return 1024 * next(
            int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")
        )
    except (OSError, StopIteration):
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if platform.system() == "Darwin" else 1024 * most  # bytes there, kB elsewhere


def working_memory(device: torch.device, work: Callable[[], object]) -> int:
    """Return the most bytes that some work takes, beyond what the process holds before it.

    Where the system cannot forget earlier peaks (only Linux and GPUs can), it is what the peak
    grows by.
    """
    give_back()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forget the peak
    before = peak_memory(device)
    work()
    return peak_memory(device) - before


def machine(device: torch.device) -> dict[str, Any]:
    """Return the facts that times depend on: the machine, and versions of libraries."""
    facts: dict[str, Any] = {
        "processor": _processor(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "nmtflex": nmtflex.__version__,
        "torch": torch.__version__,
        "numba": version("numba"),
    }
    if device.type == "cuda":
        facts["gpu"] = torch.cuda.get_device_name(device)
    return facts


def _processor() -> str:
    """Return the name of the CPU's model, if the system reports it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def computing(device: torch.device, dtype: str) -> dict[str, Any]:
    """Return how numbers are computed, once a device has been opened.

    ``kernels`` names the module of attention, as ``NMTFLEX_KERNELS`` and the device choose it.
    """
    return {
        "device": str(device),
        "dtype": dtype,
        "threads": torch.get_num_threads(),
        "kernels": form(device),
    }
