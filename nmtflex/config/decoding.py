"""Options of translating and scoring, and of the device that does it."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from nmtflex.config.base import Config, Opt
from nmtflex.config.processes import ProcessConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceConfig(Config):
    """Where and how numbers are computed."""

    device: Annotated[
        str, Opt("auto, cpu, cuda or cuda:N; auto takes a GPU if there is one.", may_change=True)
    ] = "auto"
    dtype: Annotated[
        Literal["float32", "float64", "bfloat16"],
        Opt(
            "Number format. On a GPU products of float32 use TF32. bfloat16 is autocast: fast on "
            "GPUs and on CPUs with AVX-512 BF16 or AMX, slow on others."
        ),
    ] = "float32"
    threads: Annotated[
        int,
        Opt(
            "CPU threads; 0 takes OMP_NUM_THREADS or all cores, or a process's share of them.",
            ge=0,
            le=1024,
            may_change=True,
        ),
    ] = 0

    def validate(self) -> list[str]:
        """Check the device's spelling."""
        if re.fullmatch(r"auto|cpu|cuda(:\d+)?", self.device):
            return []
        return [f"--device must be auto, cpu, cuda or cuda:N, not {self.device!r}"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchConfig(Config):
    """Beam search."""

    beam: Annotated[
        int, Opt("Beam size; 1 is greedy search (Shu and Nakayama: 20).", ge=1, le=1000)
    ] = 5
    length_penalty: Annotated[
        float,
        Opt("Alpha in log-probability / length^alpha, EOS counted; 0 turns it off.", ge=0, le=10),
    ] = 1.0
    max_length: Annotated[
        int, Opt("Longest output in tokens; 0 takes 3 x source tokens + 20.", ge=0, le=1_000_000)
    ] = 0
    max_source_length: Annotated[
        int,
        Opt(
            "Longest source in tokens: of a longer line the rest is left out, and that is "
            "reported; 0 for no limit. Time and memory grow with the length.",
            ge=0,
            le=1_000_000,
        ),
    ] = 0
    replace_unk: Annotated[
        bool,
        Opt(
            "Write the source word with the greatest attention weight where the model predicts an "
            "unknown word.",
            flag="--replace-unk",
        ),
    ] = False
    unk: Annotated[
        str,
        Opt(
            "What is written for an unknown word that is not replaced. A tokenizer that reads the "
            "output, as WAT's procedure and 13a do, takes <unk> for three words, and UNK (Shu and "
            "Nakayama) for one."
        ),
    ] = "<unk>"

    def validate(self) -> list[str]:
        """Check that an unknown word is one word."""
        if self.unk.split() == [self.unk]:
            return []
        return [f"--unk must be a word without spaces, not {self.unk!r}"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ThresholdConfig(Config):
    """What flexible attention leaves out."""

    tau: Annotated[
        str | None,
        Opt(
            "flexible: compute only source positions whose penalty is below this number; inf "
            "computes all; auto takes -log10(1 / mean source length of the validation data), 1.39 "
            "at 24.4 words (Shu and Nakayama: 1.38, or 1.2 for words and 1.0 for characters); "
            "nmtflex sweep --split valid finds the best (default inf)."
        ),
    ] = None

    def validate(self) -> list[str]:
        """Check the spelling."""
        return tau_fault(self.tau)


def tau_fault(tau: str | None, flag: str = "--tau") -> list[str]:
    """Return what is wrong with a threshold as it is spelt: nothing, or one message."""
    if tau is None or tau == "auto":
        return []
    with contextlib.suppress(ValueError):
        if float(tau) >= 0:
            return []
    return [f"{flag} must be a number of at least 0, inf or auto, not {tau!r}"]


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchConfig(Config):
    """How decoding is quick."""

    batch_sentences: Annotated[int, Opt("Sentences decoded together.", ge=1)] = 64
    int8: Annotated[
        bool,
        Opt(
            "CPU: make the products of the output layer and of the recurrent cells in whole "
            "numbers of 8 bits, with a scale for each row: faster, and rounded."
        ),
    ] = False


@dataclass(frozen=True, kw_only=True, slots=True)
class OutputConfig(ProcessConfig):
    """What translate reads ahead and writes."""

    buffer: Annotated[
        int, Opt("Lines read ahead, to sort by length; memory stays constant.", ge=1)
    ] = 4096
    workers: Annotated[
        int,
        Opt(
            "Processes that translate; the lines come in order, and are the same for any number. "
            "Unless --threads says otherwise they share the cores.",
            ge=1,
            le=1024,
        ),
    ] = 1
    n_best: Annotated[int, Opt("Hypotheses a sentence, at most the beam size.", ge=1)] = 1
    format: Annotated[
        Literal["text", "moses", "json"],
        Opt(
            "text: translations; moses: index ||| text ||| scores ||| total; "
            "json: an object a line."
        ),
    ] = "text"
    attention_output: Annotated[
        Path | None,
        Opt(
            "File for what attention looked at: a JSON object a line, for the best translation of "
            "each sentence: source and target tokens, weights, gate, focus, window, computations."
        ),
    ] = None
    stats: Annotated[
        bool,
        Opt(
            "Say at the end how many score computations a step attention took (CPS).",
            flag="--stats",
        ),
    ] = False
    verbose: Annotated[
        bool,
        Opt(
            "Show on standard error, for the best translation of each sentence, which source word "
            "each of its words looked at most; in colours where that is a terminal.",
            flag="--verbose",
        ),
    ] = False


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepConfig(Config):
    """Which thresholds, on what."""

    run: Annotated[Path, Opt("Run folder, with flexible attention.", argument=True)]
    tau: Annotated[str, Opt("Thresholds parted by commas: numbers, inf (no threshold), auto.")] = (
        "0.2,0.5,1.0,1.38,2,inf"
    )
    split: Annotated[
        str | None,
        Opt("Split of the run's own data, valid or test (default test, or valid without one)."),
    ] = None
    within: Annotated[
        float | None,
        Opt(
            "Mark the smallest threshold that loses at most so many BLEU against none, or against "
            "--baseline (Shu and Nakayama, Japanese paper: 0.5 on validation data).",
            ge=0,
        ),
    ] = None
    baseline: Annotated[
        float | None,
        Opt(
            "BLEU that --within compares with, as of global attention on this split (default: the "
            "run's own without a threshold).",
            ge=0,
            le=100,
        ),
    ] = None
    output: Annotated[
        Path | None,
        Opt(
            "Path of the .csv and .png without these endings (default RUN/sweep-SPLIT-beamBEAM).",
            also=("--out",),
        ),
    ] = None
    json: Annotated[bool, Opt("Print one JSON object instead of a table.", flag="--json")] = False

    @property
    def taus(self) -> list[str]:
        """The thresholds, each as it is spelt."""
        return [tau.strip() for tau in self.tau.split(",")]

    def validate(self) -> list[str]:
        """Check every spelling, and that the baseline is for something."""
        faults = [fault for tau in self.taus for fault in tau_fault(tau)]
        if self.baseline is not None and self.within is None:
            faults.append(f"--baseline {self.baseline:g} has no effect without --within")
        return faults
