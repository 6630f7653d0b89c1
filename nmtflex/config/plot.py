"""Options of figures: one class a kind of figure."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from nmtflex.config.base import Config, Kinds, Opt, Variant, options_of

ENDINGS = (".png", ".svg", ".pdf")
METRICS = ("loss", "perplexity", "bleu", "gate", "cps")


@dataclass(frozen=True, kw_only=True, slots=True)
class FigureConfig(Variant):
    """A kind of figure; one subclass each."""

    of_one_run: ClassVar[bool] = False

    @classmethod
    def kind_for(cls, kind: str, given: Collection[str], others: Kinds) -> str:
        """Of auto, return the one kind that has these options, if there is one."""
        kinds = [name for name, sub in cls.variants().items() if set(given) <= set(options_of(sub))]
        return kinds[0] if kind == "auto" and len(kinds) == 1 else kind

    @property
    def translates(self) -> bool:
        """Whether sentences are translated for it, and so the options of translating count."""
        return False


@dataclass(frozen=True, kw_only=True, slots=True)
class SentenceFigure(FigureConfig):
    """Of a sentence that a run translates."""

    of_one_run: ClassVar[bool] = True

    sentence: Annotated[str | None, Opt("The sentence to draw, raw.")] = None
    index: Annotated[
        int | None, Opt("Or its place in --split of the run's own data, counted from 0.", ge=0)
    ] = None
    split: Annotated[
        str | None,
        Opt("Split of the run's own data, valid or test (default test, or valid without one)."),
    ] = None

    @property
    def translates(self) -> bool:
        """Whether a sentence is given."""
        return self.sentence is not None or self.index is not None

    def validate(self) -> list[str]:
        """Check that there is one sentence, and nothing without effect."""
        if self.sentence is not None and self.index is not None:
            return [f"--index {self.index} and --sentence {self.sentence!r}: give one of the two"]
        if self.split is not None and self.index is None:
            return [f"--split {self.split} needs --index N, the sentence to draw"]
        if not self.translates and self.kind != "auto":
            return [f"--kind {self.kind} draws a sentence: give --sentence TEXT or --index N"]
        return []


@dataclass(frozen=True, kw_only=True, slots=True)
class AutoFigure(SentenceFigure):
    """With a sentence, the one that fits the mechanism; else learning curves or a trade-off."""

    kind: ClassVar[str] = "auto"


@dataclass(frozen=True, kw_only=True, slots=True)
class AttentionFigure(SentenceFigure):
    """Weights, source by target."""

    kind: ClassVar[str] = "attention"


@dataclass(frozen=True, kw_only=True, slots=True)
class GateFigure(SentenceFigure):
    """The gate of flexible attention by step."""

    kind: ClassVar[str] = "gate"


@dataclass(frozen=True, kw_only=True, slots=True)
class FocusFigure(SentenceFigure):
    """Focus and window of flexible or local attention by step."""

    kind: ClassVar[str] = "focus"


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryFigure(SentenceFigure):
    """The slots of memory attention: alpha, beta and their product."""

    kind: ClassVar[str] = "memory"


@dataclass(frozen=True, kw_only=True, slots=True)
class EncodingFigure(FigureConfig):
    """The position encodings of memory attention."""

    kind: ClassVar[str] = "encoding"
    of_one_run: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True, slots=True)
class LearningFigure(FigureConfig):
    """Learning curves."""

    kind: ClassVar[str] = "learning"

    x: Annotated[
        Literal["updates", "time"], Opt("Along updates, or the time of training and validation.")
    ] = "updates"
    y: Annotated[
        str | None,
        Opt(
            "What to draw, parted by commas: loss, perplexity, bleu, gate, cps (default the first "
            "three, as far as there is any)."
        ),
    ] = None

    @property
    def metrics(self) -> list[str] | None:
        """What to draw; None for the usual."""
        return None if self.y is None else [name.strip() for name in self.y.split(",")]

    def validate(self) -> list[str]:
        """Check every name."""
        known = ", ".join(METRICS)
        return [
            f"--y must be of {known}, not {name!r}"
            for name in self.metrics or []
            if name not in METRICS
        ]


@dataclass(frozen=True, kw_only=True, slots=True)
class TradeOffFigure(FigureConfig):
    """BLEU against computations a step."""

    kind: ClassVar[str] = "trade-off"


@dataclass(frozen=True, kw_only=True, slots=True)
class ByLengthFigure(FigureConfig):
    """A split, by the length of its sources."""

    split: Annotated[
        str | None,
        Opt("Split of the run's own data, valid or test (default test, or valid without one)."),
    ] = None
    edges: Annotated[
        str, Opt("Longest source of each group but the last, in words, parted by commas.")
    ] = "10,20,30,40,50"

    @property
    def translates(self) -> bool:
        """Always."""
        return True

    @property
    def lengths(self) -> list[int]:
        """The edges as numbers."""
        return [int(edge) for edge in self.edges.split(",")]

    def validate(self) -> list[str]:
        """Check that the edges are numbers that rise."""
        fault = [f"--edges must be whole numbers that rise from at least 1, not {self.edges!r}"]
        try:
            lengths = [0, *self.lengths]
        except ValueError:
            return fault
        return [] if lengths == sorted(set(lengths)) else fault


@dataclass(frozen=True, kw_only=True, slots=True)
class LengthFigure(ByLengthFigure):
    """BLEU by the length of the source."""

    kind: ClassVar[str] = "length"


@dataclass(frozen=True, kw_only=True, slots=True)
class SecondsFigure(ByLengthFigure):
    """Decoding seconds by the length of the source."""

    kind: ClassVar[str] = "seconds"

    repeats: Annotated[
        int, Opt("Times that each length is decoded; the median counts.", ge=1, le=1000)
    ] = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class PlotConfig(Config):
    """What is drawn."""

    runs: Annotated[
        list[Path],
        Opt(
            "Run folders, one for a sentence, else several too; for trade-off also the CSV files "
            "of nmtflex sweep.",
            argument=True,
        ),
    ]
    kind: Annotated[
        FigureConfig,
        Opt(
            "attention: weights; gate; focus: with window; memory: alpha, beta, product; encoding: "
            "of positions; learning: curves; trade-off: BLEU against computations; length: BLEU by "
            "source length; seconds: decoding time by source length. auto: of a sentence what its "
            "mechanism shows best, else learning (trade-off of CSV files), or what alone has the "
            "options given."
        ),
    ] = dataclasses.field(default_factory=AutoFigure)
    output: Annotated[
        Path | None,
        Opt(
            "File to write: .png, .svg or .pdf (default KIND.png beside what is first drawn).",
            also=("--out",),
        ),
    ] = None

    def validate(self) -> list[str]:
        """Check the ending, and how many runs there are."""
        faults = []
        if self.output is not None and self.output.suffix not in ENDINGS:
            faults.append(
                f"--output {self.output}: unknown ending {self.output.suffix!r}; use "
                f"{', '.join(ENDINGS)}"
            )
        alone = self.kind.of_one_run and (self.kind.kind != "auto" or self.kind.translates)
        if alone and len(self.runs) > 1:
            found = ", ".join(map(str, self.runs))
            what = "a sentence" if self.kind.translates else f"--kind {self.kind.kind}"
            faults.append(f"{what} is drawn from one run, not {len(self.runs)}: {found}")
        return faults
