"""Options of what begins with a run: finetuning, averaging and exporting."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from nmtflex.config.base import Config, Opt
from nmtflex.config.decoding import tau_fault
from nmtflex.config.training import LoopConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class FinetuneConfig(LoopConfig):
    """Finetuning."""

    usual_epochs: ClassVar[int] = 1

    base_run: Annotated[Path, Opt("Run whose best weights to start from.", argument=True)]
    data: Annotated[
        Path | None,
        Opt(
            "Prepared folder made with preprocess --like BASE_RUN (default: the base run's "
            "training data)."
        ),
    ] = None
    beta: Annotated[
        float | None,
        Opt(
            "Weight of the mean gate in the loss; it reduces the computations needed in decoding "
            "(default 0.1, as in Shu and Nakayama; 0 without a gate).",
            ge=0,
        ),
    ] = None
    freeze: Annotated[
        list[str], Opt("Pattern of weights to keep fixed, such as 'encoder.*'; may be repeated.")
    ] = field(default_factory=list)
    lr: Annotated[
        float | None,
        Opt(
            "Learning rate at its peak (default: the rate of the base run's last update, or a "
            "hundredth of its peak if --schedule took it below that).",
            gt=0,
        ),
    ] = None
    tau: Annotated[
        str | None,
        Opt(
            "Penalty threshold in validations, which report BLEU, mean gate and CPS before and "
            "after finetuning: a number, auto or inf (default auto if there is a gate)."
        ),
    ] = None

    train_tau: Annotated[
        str | None,
        Opt(
            "Penalty threshold in training itself, so that the weights adapt to what decoding "
            "leaves out (default inf, as in Shu and Nakayama)."
        ),
    ] = None
    remainder: Annotated[
        bool | None,
        Opt(
            "Let one vector stand for the source positions that a threshold leaves out (default: "
            "as the base run does); not in the paper."
        ),
    ] = None

    @property
    def base(self) -> Path | None:
        """The run that is finetuned."""
        return self.base_run

    @property
    def gate_weight(self) -> float:
        """Beta of eq. 9."""
        return self.beta or 0.0

    @property
    def frozen(self) -> list[str]:
        """Patterns of ``--freeze``."""
        return self.freeze

    @property
    def threshold(self) -> str | None:
        """The value of ``--tau``."""
        return self.tau

    @property
    def train_threshold(self) -> str | None:
        """The value of ``--train-tau``."""
        return self.train_tau

    def validate(self) -> list[str]:
        """Check the thresholds too."""
        return [
            *LoopConfig.validate(self),
            *tau_fault(self.tau),
            *tau_fault(self.train_tau, "--train-tau"),
        ]


@dataclass(frozen=True, kw_only=True, slots=True)
class AverageConfig(Config):
    """Checkpoint averaging."""

    base_run: Annotated[Path, Opt("Run whose checkpoints to average.", argument=True)]
    run: Annotated[
        Path | None,
        Opt("Run folder to create (default: BASE_RUN-averageN, N from --last).", also=("--out",)),
    ] = None
    last: Annotated[
        int,
        Opt(
            "Average the last N checkpoints; the run must have been trained with --keep N or more.",
            ge=1,
        ),
    ] = 5

    @property
    def out(self) -> Path:
        """The run folder to create."""
        if self.run is not None:
            return self.run
        return _beside(self.base_run, f"average{self.last}")


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportConfig(Config):
    """Export."""

    base_run: Annotated[Path, Opt("Run to export.", argument=True)]
    run: Annotated[
        Path | None,
        Opt(
            "Run folder to create (default: BASE_RUN-WEIGHTS, as in runs/deen-float16).",
            also=("--out",),
        ),
    ] = None
    weights: Annotated[
        Literal["float32", "float16", "int8"],
        Opt(
            "Number format of matrices in the file: float32 changes nothing; float16 halves the "
            "file; int8, with one scale per row, makes it a quarter and rounds as --int8 does. "
            "They become float32 when the run is opened."
        ),
    ] = "float16"

    @property
    def out(self) -> Path:
        """The run folder to create."""
        return self.run if self.run is not None else _beside(self.base_run, self.weights)


def _beside(run: Path, ending: str) -> Path:
    """Return a folder beside a run, with its name and an ending."""
    named = run if run.name not in ("", "..") else run.resolve()
    return named.with_name(f"{named.name}-{ending}")
