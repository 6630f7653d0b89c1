"""Options of benchmarks."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from nmtflex.config.attention import AttentionConfig, FlexibleConfig, GlobalConfig, MemoryConfig
from nmtflex.config.base import Config, Opt
from nmtflex.config.decoder import DecoderConfig, LayeredDecoderConfig
from nmtflex.config.encoder import EncoderConfig, RecurrentEncoderConfig
from nmtflex.config.model import ModelConfig
from nmtflex.config.shared import increasing
from nmtflex.errors import OptionError

LENGTHS = "100,300,1000,3000,10000"
GROWTH_LENGTHS = "10,100,500,1000,2000"
BACKBONE = "recurrent+bahdanau"
MECHANISMS = ",".join(one.kind for one in (FlexibleConfig, GlobalConfig, MemoryConfig))
OF_RUNS = ("split", "source", "reference", "sentences")
OF_SYNTHETIC = ("lengths", "steps", "words", "backbones", "mechanisms", "growth")


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchConfig(Config):
    """Benchmark."""

    runs: Annotated[
        list[Path],
        Opt(
            "Run folders, with the same data unless --source is given; the others are compared "
            "with the first. Give a run twice to see the noise.",
            argument=True,
            replaces=("kernels", "synthetic", *OF_SYNTHETIC),
        ),
    ] = dataclasses.field(default_factory=list)
    split: Annotated[
        str | None,
        Opt(
            "Split of the runs' own data: valid or test (default test).",
            replaces=("source", "reference"),
        ),
    ] = None
    source: Annotated[
        Path | None,
        Opt("File to decode instead of a split (needs --reference).", replaces=("split",)),
    ] = None
    reference: Annotated[
        Path | None, Opt("References of --source, one per line.", replaces=("split",))
    ] = None
    sentences: Annotated[
        int | None,
        Opt("Use only the first N sentences (default all).", ge=1),
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
            replaces=("runs", *OF_RUNS, "synthetic", "output", *OF_SYNTHETIC),
        ),
    ] = False
    synthetic: Annotated[
        bool,
        Opt(
            "Time models with random weights instead of runs, by source length (seed 1; 256 units "
            "per layer, recurrent encoders 128 per direction, embeddings 128 if all is "
            "recurrent): flexible attention with its gate at 0.5 and a focus that moves evenly "
            "from the first position to the last; monotonic and mocha stop at such positions at "
            "once; global attention; memory attention with K = 64. "
            "Every length uses the batch size that translate would use at the longest.",
            flag="--synthetic",
            replaces=("runs", *OF_RUNS, "kernels"),
        ),
    ] = False
    lengths: Annotated[
        str | None,
        Opt(
            f"Source lengths for --synthetic, comma-separated (default {LENGTHS}; with --growth "
            f"{GROWTH_LENGTHS})."
        ),
    ] = None
    steps: Annotated[
        int | None,
        Opt(
            "Target tokens per sentence for --synthetic, including end of sentence; all "
            "hypotheses have the same length. 0: as many as the source has, as for characters "
            "(default 50; with --growth 0).",
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
    backbones: Annotated[
        str | None,
        Opt(
            "Encoders and decoders for --synthetic, comma-separated, such as "
            f"recurrent+luong,transformer+ssru (default {BACKBONE}). Transformers have as many "
            "layers and heads as by default."
        ),
    ] = None
    mechanisms: Annotated[
        str | None,
        Opt(
            "Attention mechanisms for --synthetic, comma-separated, each with each of the "
            f"backbones (default {MECHANISMS})."
        ),
    ] = None
    growth: Annotated[
        bool,
        Opt(
            "Measure with --synthetic how time and memory grow with the length, in training too, "
            "beside the order that theory gives. Source and target are equally long, and batches "
            "are small enough for training at the longest.",
            flag="--growth",
        ),
    ] = False
    output: Annotated[
        Path | None,
        Opt(
            "Write a table to OUTPUT.csv and a figure to OUTPUT.png: of runs their BLEU and their "
            "target tokens per second, with --synthetic time and memory by length.",
            also=("--out", "-o"),
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
        usual = GROWTH_LENGTHS if self.growth else LENGTHS
        return [int(length) for length in (self.lengths or usual).split(",")]

    @property
    def target_tokens(self) -> int:
        """Target tokens per sentence for --synthetic; 0 for as many as the source has."""
        if self.steps is None:
            return 0 if self.growth else 50
        return self.steps

    def models(self) -> list[ModelConfig]:
        """Return the models of --synthetic: each backbone with each mechanism.

        Raises:
            OptionError: There is no such encoder, decoder or mechanism.
        """
        return [
            _model(backbone, mechanism)
            for backbone in (BACKBONE if self.backbones is None else self.backbones).split(",")
            for mechanism in (MECHANISMS if self.mechanisms is None else self.mechanisms).split(",")
        ]

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
            idle |= dict.fromkeys(OF_RUNS, f"applies to runs, not to --{instead[0]}")
        if not self.synthetic:
            idle |= dict.fromkeys(OF_SYNTHETIC, "has no effect without --synthetic")
        if self.runs:
            idle |= self._without_files()
        if self.kernels:
            idle["output"] = "has no effect with --kernels"
        return self._faults_of_synthetic() + self.given(idle)

    def _without_files(self) -> dict[str, str]:
        """Return why ``--source``, ``--reference`` or ``--split`` has no effect, by name."""
        if self.source is None:
            return {"reference": "needs --source FILE to decode"}
        if self.reference is None:
            return {"source": "needs --reference FILE"}
        return {"split": "selects the runs' own data, so it cannot be combined with --source"}

    def _faults_of_synthetic(self) -> list[str]:
        """Check lengths, steps and models."""
        faults = increasing("--lengths", LENGTHS if self.lengths is None else self.lengths)
        if self.growth and self.steps:
            faults.append(f"--growth needs targets as long as sources; remove --steps {self.steps}")
        elif self.steps == 1 or (not (self.target_tokens or faults) and 1 in self.source_lengths):
            flag = "--lengths" if self.growth else "--steps"
            faults.append(f"{flag} must be at least 2, since end of sentence counts as one")
        try:
            self.models()
        except OptionError as error:
            faults.append(str(error))
        return faults


def _model(backbone: str, mechanism: str) -> ModelConfig:
    """Return a model of 256 units.

    Raises:
        OptionError: There is no such encoder, decoder or mechanism.
    """
    first, plus, second = backbone.partition("+")
    if not plus:
        raise OptionError(
            f"--backbones needs ENCODER+DECODER, such as {BACKBONE}, not {backbone!r}"
        )
    encoder = EncoderConfig.named("backbones", first)
    decoder = DecoderConfig.named("backbones", second)
    attention = AttentionConfig.named("mechanisms", mechanism)
    recurrent = issubclass(encoder, RecurrentEncoderConfig)
    small = recurrent and not issubclass(decoder, LayeredDecoderConfig)
    return ModelConfig.from_flat(
        encoder=first,
        decoder=second,
        attention=mechanism,
        K=64 if attention.slots else None,
        embedding_size=128 if small else 256,
        encoder_size=128 if recurrent else 256,
        decoder_size=256,
    )
