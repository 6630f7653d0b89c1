"""Options of measuring how long things take."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from nmtflex.config.base import Config, Opt


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchConfig(Config):
    """What is measured."""

    runs: Annotated[
        list[Path],
        Opt(
            "Run folders, with the same data; the first is what the others are compared with. One "
            "given twice shows the noise.",
            argument=True,
            replaces=("kernels", "synthetic", "lengths", "steps", "words"),
        ),
    ] = dataclasses.field(default_factory=list)
    split: Annotated[
        str | None, Opt("Split of the runs' own data: valid or test (default test).")
    ] = None
    sentences: Annotated[
        int | None, Opt("The first so many sentences of the split (default all).", ge=1)
    ] = None
    repeats: Annotated[
        int,
        Opt(
            "Rounds. In each, everything that is compared takes its turn, so that what else the "
            "machine does hits all alike; medians are reported.",
            ge=1,
            le=1000,
        ),
    ] = 5
    kernels: Annotated[
        bool,
        Opt(
            "Instead of runs, the operation of attention alone, over lengths S and sizes D. "
            "Decoding: expand, the source copied for the beam; reference, plain PyTorch; fused, "
            "the kernel over all positions; penalty, the same with one; window, over 0.4 S of "
            "them. Training, forward and backward: reference; fused; apart, with gradients of the "
            "source made at each step; forward alone.",
            flag="--kernels",
            replaces=("runs", "split", "sentences", "synthetic", "lengths", "steps", "words"),
        ),
    ] = False
    synthetic: Annotated[
        bool,
        Opt(
            "Instead of runs, a model of random weights (seed 1; embeddings of 128 units, encoder "
            "128 a direction, decoder 256, --decoder bahdanau) over lengths of the "
            "source: flexible attention with its gate at 0.5 and a focus that goes evenly from the "
            "first position to the last; global; memory with K = 64. All lengths have as many "
            "sentences a batch as translate takes at the longest.",
            flag="--synthetic",
            replaces=("runs", "split", "sentences", "kernels"),
        ),
    ] = False
    lengths: Annotated[
        str | None,
        Opt("Source positions of --synthetic, parted by commas (default 100,300,1000,3000,10000)."),
    ] = None
    steps: Annotated[
        int | None,
        Opt(
            "Target tokens a sentence of --synthetic, end of sentence counted; all hypotheses "
            "have as many. 0 takes as many as the source has, as characters do (default 50).",
            ge=0,
            le=100_000,
        ),
    ] = None
    words: Annotated[
        int | None,
        Opt(
            "Entries of each vocabulary of --synthetic; characters have some 200 (default 5000).",
            ge=20,
            le=1_000_000,
        ),
    ] = None
    json: Annotated[
        bool,
        Opt(
            "Print one JSON object instead of tables: numbers unrounded, every round, the machine.",
            flag="--json",
        ),
    ] = False

    @property
    def source_lengths(self) -> list[int]:
        """The lengths as numbers, default filled in."""
        return [int(length) for length in (self.lengths or "100,300,1000,3000,10000").split(",")]

    def validate(self) -> list[str]:
        """Check that one thing is measured, and nothing given without effect."""
        instead = [flag for flag in ("kernels", "synthetic") if getattr(self, flag)]
        if not self.runs and not instead:
            return ["give run folders, or --kernels or --synthetic"]
        if len(instead) > 1:
            return ["--kernels and --synthetic: give one of the two"]
        if self.runs and instead:
            return [f"--{instead[0]} needs no run: leave {self.runs[0]} out"]
        idle: dict[str, str] = {}
        if instead:
            idle |= dict.fromkeys(("split", "sentences"), f"is for runs, not for --{instead[0]}")
        if not self.synthetic:
            without = "has no effect without --synthetic"
            idle |= dict.fromkeys(("lengths", "steps", "words"), without)
        faults = self._length_faults()
        if self.steps == 1 or (self.steps == 0 and not faults and 1 in self.source_lengths):
            faults.append("--steps must be at least 2: one for the end of sentence alone is none")
        return faults + self.given(idle)

    def _length_faults(self) -> list[str]:
        """Check that the lengths are numbers that rise."""
        fault = [f"--lengths must be whole numbers that rise from at least 1, not {self.lengths!r}"]
        try:
            lengths = [0, *self.source_lengths]
        except ValueError:
            return fault
        return [] if lengths == sorted(set(lengths)) else fault
