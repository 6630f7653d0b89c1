"""Options of translating and scoring, and of the device that does it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from nmtflex.config.base import Config, Opt


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceConfig(Config):
    """Where and how numbers are computed."""

    device: Annotated[
        str, Opt("auto, cpu, cuda or cuda:N; auto takes a GPU if there is one.", may_change=True)
    ] = "auto"
    dtype: Annotated[
        Literal["float32", "float64", "bfloat16"],
        Opt(
            "Number format; bfloat16 is autocast: fast on GPUs and on CPUs with AVX-512 BF16 or "
            "AMX, slow on others."
        ),
    ] = "float32"
    threads: Annotated[
        int, Opt("CPU threads; 0 takes all cores.", ge=0, le=1024, may_change=True)
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
        int, Opt("Longest output in tokens; 0 takes 3 x source tokens + 20.", ge=0)
    ] = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchConfig(Config):
    """How much is decoded at once."""

    batch_sentences: Annotated[int, Opt("Sentences decoded together.", ge=1)] = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class OutputConfig(Config):
    """What translate reads ahead and writes."""

    buffer: Annotated[
        int, Opt("Lines read ahead, to sort by length; memory stays constant.", ge=1)
    ] = 4096
    n_best: Annotated[int, Opt("Hypotheses a sentence, at most the beam size.", ge=1)] = 1
    format: Annotated[
        Literal["text", "moses", "json"],
        Opt(
            "text: translations; moses: index ||| text ||| scores ||| total; "
            "json: an object a line."
        ),
    ] = "text"


@dataclass(frozen=True, kw_only=True, slots=True)
class EvalConfig(Config):
    """What is scored, and how."""

    run: Annotated[Path | None, Opt("Run folder; without it, give two files.", argument=True)] = (
        None
    )
    split: Annotated[
        str | None, Opt("Split of the run's own data, valid or test (default test).")
    ] = None
    output: Annotated[Path | None, Opt("File for the run's translations.")] = None
    hypothesis: Annotated[Path | None, Opt("Translations, one a line, instead of a run.")] = None
    reference: Annotated[Path | None, Opt("References, one a line, for --hypothesis.")] = None
    tokenize: Annotated[
        Literal["13a", "char", "intl", "ja-mecab", "none", "zh"] | None,
        Opt("sacrebleu's tokenizer for two files (default 13a); a run's own follows its target."),
    ] = None
    json: Annotated[bool, Opt("Print one JSON object instead of a table.", flag="--json")] = False

    @property
    def files(self) -> tuple[Path, Path]:
        """Hypothesis and reference, where no run is given."""
        if self.hypothesis is None or self.reference is None:
            raise ValueError(f"a run is given, {self.run}, not two files")
        return self.hypothesis, self.reference

    def validate(self) -> list[str]:
        """Check that a run or two files are given, and nothing without effect."""
        if self.run is None and self.hypothesis is None and self.reference is None:
            return ["give a run folder, or --hypothesis and --reference"]
        if self.run is not None:
            names = ["hypothesis", "reference", "tokenize"]
            end = f"is for scoring two files, not a run ({self.run})"
        else:
            names = ["split", "output"]
            end = "is for a run, not for scoring two files"
        given = {name: getattr(self, name) for name in names}
        faults = [f"--{key} {value} {end}" for key, value in given.items() if value is not None]
        if self.run is None and self.reference is None:
            faults.append(f"--hypothesis {self.hypothesis} needs --reference")
        if self.run is None and self.hypothesis is None:
            faults.append(f"--reference {self.reference} needs --hypothesis")
        return faults
