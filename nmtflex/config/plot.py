"""Options of figures, one class per kind."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from nmtflex.config.base import Config, Kinds, Opt, Variant, options_of
from nmtflex.config.shared import RunSplit, figure_fault, increasing

METRICS = ("loss", "perplexity", "bleu", "gate", "cps")


@dataclass(frozen=True, kw_only=True, slots=True)
class FigureConfig(Variant):
    """A kind of figure; one subclass each."""

    of_one_run: ClassVar[bool] = False

    @classmethod
    def kind_for(cls, kind: str, given: Collection[str], others: Kinds) -> str:
        """For auto, return the only kind that has the given options, if there is just one."""
        kinds = [name for name, sub in cls.variants().items() if set(given) <= set(options_of(sub))]
        return kinds[0] if kind == "auto" and len(kinds) == 1 else kind

    @property
    def translates(self) -> bool:
        """Whether it translates, so that translation options apply."""
        return False


@dataclass(frozen=True, kw_only=True, slots=True)
class SentenceFigure(FigureConfig):
    """Figure of one translated sentence."""

    of_one_run: ClassVar[bool] = True

    sentence: Annotated[str | None, Opt("Sentence to translate and draw, as raw text.")] = None
    index: Annotated[
        int | None,
        Opt("Draw this sentence of --split of the run's own data instead, counted from 0.", ge=0),
    ] = None
    split: RunSplit = None

    @property
    def translates(self) -> bool:
        """Whether a sentence is given."""
        return self.sentence is not None or self.index is not None

    def validate(self) -> list[str]:
        """Check that there is one sentence, and that every option has an effect."""
        if self.sentence is not None and self.index is not None:
            return [f"give --index {self.index} or --sentence {self.sentence!r}, not both"]
        if self.split is not None and self.index is None:
            return [f"--split {self.split} needs --index N to select a sentence"]
        if not self.translates and self.kind != "auto":
            return [f"--kind {self.kind} draws a sentence: give --sentence TEXT or --index N"]
        return []


@dataclass(frozen=True, kw_only=True, slots=True)
class AutoFigure(SentenceFigure):
    """With a sentence, its mechanism's figure; otherwise learning curves or a trade-off."""

    kind: ClassVar[str] = "auto"


@dataclass(frozen=True, kw_only=True, slots=True)
class AttentionFigure(SentenceFigure):
    """Attention weights by source and target position."""

    kind: ClassVar[str] = "attention"


@dataclass(frozen=True, kw_only=True, slots=True)
class GateFigure(SentenceFigure):
    """The gate of flexible attention by step."""

    kind: ClassVar[str] = "gate"


@dataclass(frozen=True, kw_only=True, slots=True)
class FocusFigure(SentenceFigure):
    """The focus and window of flexible, local or monotonic attention by step."""

    kind: ClassVar[str] = "focus"


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryFigure(SentenceFigure):
    """Memory slots: alpha, beta and their product."""

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
        Literal["updates", "time"],
        Opt("Plot against updates, or against the time spent on training and validation."),
    ] = "updates"
    y: Annotated[
        str | None,
        Opt(
            "What to plot, comma-separated: loss, perplexity, bleu, gate, cps (default the first "
            "three, where the run has them)."
        ),
    ] = None

    @property
    def metrics(self) -> list[str] | None:
        """What to draw; None for the default."""
        return None if self.y is None else [name.strip() for name in self.y.split(",")]

    def validate(self) -> list[str]:
        """Check the names of the metrics."""
        known = ", ".join(METRICS)
        return [
            f"--y takes {known}, not {name!r}" for name in self.metrics or [] if name not in METRICS
        ]


@dataclass(frozen=True, kw_only=True, slots=True)
class TradeOffFigure(FigureConfig):
    """BLEU against computations per step."""

    kind: ClassVar[str] = "trade-off"


@dataclass(frozen=True, kw_only=True, slots=True)
class ByLengthFigure(FigureConfig):
    """Figure of a split by source length."""

    split: RunSplit = None
    edges: Annotated[
        str, Opt("Longest source of each group except the last, in words, comma-separated.")
    ] = "10,20,30,40,50"

    @property
    def translates(self) -> bool:
        """It always translates."""
        return True

    @property
    def lengths(self) -> list[int]:
        """The edges as integers."""
        return [int(edge) for edge in self.edges.split(",")]

    def validate(self) -> list[str]:
        """Check that the edges are increasing integers."""
        return increasing("--edges", self.edges)


@dataclass(frozen=True, kw_only=True, slots=True)
class LengthFigure(ByLengthFigure):
    """BLEU by source length."""

    kind: ClassVar[str] = "length"


@dataclass(frozen=True, kw_only=True, slots=True)
class SecondsFigure(ByLengthFigure):
    """Decoding time by source length."""

    kind: ClassVar[str] = "seconds"

    repeats: Annotated[
        int, Opt("How often to decode each length; the median is drawn.", ge=1, le=1000)
    ] = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class PlotConfig(Config):
    """Figure."""

    runs: Annotated[
        list[Path],
        Opt(
            "Run folders: one to draw a sentence, otherwise one or more; for trade-off also CSV "
            "files from nmtflex sweep.",
            argument=True,
        ),
    ]
    kind: Annotated[
        FigureConfig,
        Opt(
            "attention: weights; gate; focus: with the window; memory: alpha, beta and their "
            "product; encoding: position encodings; learning: curves; trade-off: BLEU against "
            "computations; length: BLEU by source length; seconds: decoding time by source "
            "length. auto: for a sentence, the figure that suits the attention mechanism; "
            "otherwise learning (trade-off for CSV files), or the only kind that has the options "
            "given."
        ),
    ] = dataclasses.field(default_factory=AutoFigure)
    output: Annotated[
        Path | None,
        Opt(
            "File to write: .png, .svg or .pdf (default KIND.png in the first run's folder, or "
            "beside the first CSV file).",
            also=("--out", "-o"),
        ),
    ] = None

    def validate(self) -> list[str]:
        """Check the file suffix and the number of runs."""
        faults = figure_fault(self.output)
        alone = self.kind.of_one_run and (self.kind.kind != "auto" or self.kind.translates)
        if alone and len(self.runs) > 1:
            found = ", ".join(map(str, self.runs))
            what = "a sentence" if self.kind.translates else f"--kind {self.kind.kind}"
            faults.append(f"{what} needs exactly one run, not {len(self.runs)}: {found}")
        return faults
