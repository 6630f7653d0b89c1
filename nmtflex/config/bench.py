"""Options of benchmarks."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from nmtflex.config.base import Config, Opt
from nmtflex.config.shared import increasing

LENGTHS = "100,300,1000,3000,10000"


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchConfig(Config):
    """Benchmark."""

    runs: Annotated[
        list[Path],
        Opt(
            "Run folders with the same data; the others are compared with the first. Give a run "
            "twice to see the noise.",
            argument=True,
            replaces=("kernels", "synthetic", "lengths", "steps", "words"),
        ),
    ] = dataclasses.field(default_factory=list)
    split: Annotated[
        str | None, Opt("Split of the runs' own data: valid or test (default test).")
    ] = None
    sentences: Annotated[
        int | None, Opt("Use only the first N sentences of the split (default all).", ge=1)
    ] = None
    repeats: Annotated[
        int,
        Opt(
            "Rounds. Each round times every candidate in turn, so that other load on the machine "
            "affects all of them alike; medians are reported.",
            ge=1,
            le=1000,
        ),
    ] = 5
    kernels: Annotated[
        bool,
        Opt(
            "Time the attention operation alone instead of runs, for source lengths S and sizes "
            "D. Decoding: expand, the source copied for every hypothesis; reference, plain "
            "PyTorch; fused, the kernel over all positions; penalty, the same with a penalty; "
            "window, over 0.4 S positions. Training, forward and backward: reference; fused; "
            "apart, with the gradient of the source computed at each step; forward alone.",
            flag="--kernels",
            replaces=("runs", "split", "sentences", "synthetic", "lengths", "steps", "words"),
        ),
    ] = False
    synthetic: Annotated[
        bool,
        Opt(
            "Time models with random weights instead of runs, by source length (seed 1; "
            "embeddings of 128 units, encoder 128 per direction, decoder 256, --decoder "
            "bahdanau): flexible attention with its gate at 0.5 and a focus that moves evenly "
            "from the first position to the last; global attention; memory attention with K = 64. "
            "Every length uses the batch size that translate would use at the longest.",
            flag="--synthetic",
            replaces=("runs", "split", "sentences", "kernels"),
        ),
    ] = False
    lengths: Annotated[
        str | None,
        Opt("Source lengths for --synthetic, comma-separated (default 100,300,1000,3000,10000)."),
    ] = None
    steps: Annotated[
        int | None,
        Opt(
            "Target tokens per sentence for --synthetic, including end of sentence; all "
            "hypotheses have the same length. 0: as many as the source has, as for characters "
            "(default 50).",
            ge=0,
            le=100_000,
        ),
    ] = None
    words: Annotated[
        int | None,
        Opt(
            "Size of each vocabulary for --synthetic; characters need about 200 (default 5000).",
            ge=20,
            le=1_000_000,
        ),
    ] = None
    json: Annotated[
        bool,
        Opt(
            "Print one JSON object instead of tables: unrounded numbers, every round, the machine.",
            flag="--json",
        ),
    ] = False

    @property
    def source_lengths(self) -> list[int]:
        """The lengths as integers, or their default."""
        return [int(length) for length in (self.lengths or LENGTHS).split(",")]

    def validate(self) -> list[str]:
        """Check that one benchmark is selected and that every option has an effect."""
        instead = [flag for flag in ("kernels", "synthetic") if getattr(self, flag)]
        if not self.runs and not instead:
            return ["give run folders, or --kernels or --synthetic"]
        if len(instead) > 1:
            return ["give --kernels or --synthetic, not both"]
        if self.runs and instead:
            return [f"--{instead[0]} does not use a run; remove {self.runs[0]}"]
        idle: dict[str, str] = {}
        if instead:
            idle |= dict.fromkeys(("split", "sentences"), f"applies to runs, not to --{instead[0]}")
        if not self.synthetic:
            without = "has no effect without --synthetic"
            idle |= dict.fromkeys(("lengths", "steps", "words"), without)
        faults = increasing("--lengths", LENGTHS if self.lengths is None else self.lengths)
        if self.steps == 1 or (self.steps == 0 and not faults and 1 in self.source_lengths):
            faults.append("--steps must be at least 2, since end of sentence counts as one")
        return faults + self.given(idle)
