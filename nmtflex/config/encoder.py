"""Options of the encoders, one class each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from nmtflex.config.base import MOST_UNITS, Kinds, Opt, Variant
from nmtflex.config.transformer import (
    AttentionDropout,
    FfnDropout,
    PreNorm,
    as_embedded,
    heads_fault,
    size_fault,
)

if TYPE_CHECKING:
    from nmtflex.config.model import ModelConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class EncoderConfig(Variant):
    """Options of an encoder; one subclass each."""

    encoder_size: Annotated[
        int,
        Opt(
            "Units per encoder layer and direction (Shu and Nakayama: 1000; transformer: the "
            "embedding size if not given).",
            ge=1,
            le=MOST_UNITS,
        ),
    ] = 256
    encoder_layers: Annotated[
        int,
        Opt(
            "Encoder layers (default 1, transformer 6; Britz et al.: 2, Vaswani et al.: 6).",
            ge=1,
            le=1000,
        ),
    ] = 1

    @property
    def states_size(self) -> int:
        """Size of an encoder state, H."""
        return self.encoder_size

    def faults_in(self, model: ModelConfig) -> list[str]:
        """Return conflicts between this encoder and the rest of the model."""
        return []


@dataclass(frozen=True, kw_only=True, slots=True)
class RecurrentEncoderConfig(EncoderConfig):
    """Options of the bidirectional recurrent encoder."""

    kind: ClassVar[str] = "recurrent"

    cell: Annotated[Literal["lstm", "gru"], Opt("Recurrent cell of the encoder and decoder.")] = (
        "lstm"
    )

    @property
    def states_size(self) -> int:
        """Size of an encoder state: both directions together."""
        return 2 * self.encoder_size


@dataclass(frozen=True, kw_only=True, slots=True)
class TransformerEncoderConfig(EncoderConfig):
    """Options of the transformer encoder (Vaswani et al. 2017)."""

    kind: ClassVar[str] = "transformer"

    encoder_layers: Annotated[int, Opt("Encoder layers.", ge=1, le=1000)] = 6
    encoder_heads: Annotated[
        int, Opt("Self-attention heads per encoder layer (Vaswani et al.: 8).", ge=1, le=1000)
    ] = 8
    encoder_ffn: Annotated[
        int,
        Opt(
            "Hidden units of the encoder's feed-forward layers (Vaswani et al.: 2048).",
            ge=1,
            le=MOST_UNITS,
        ),
    ] = 1024
    encoder_window: Annotated[
        int,
        Opt(
            "Let each token attend to itself and to N tokens on each side in every encoder layer, "
            "so that the encoder's cost is linear in the source's length (Beltagy et al. 2020: "
            "256). 0: to all tokens.",
            ge=0,
            le=1_000_000,
        ),
    ] = 0
    pre_norm: PreNorm = False
    ffn_dropout: FfnDropout = 0.0
    attention_dropout: AttentionDropout = 0.0
    position_shift: Annotated[
        int,
        Opt(
            "In training, count the positions of each sample, source and target, from a random "
            "number between 0 and N. The model then knows the positions of longer sources than "
            "most of its samples have, as in paragraphs (SHAPE, Kiyono et al. 2021). 0: count "
            "from 0.",
            ge=0,
            le=1_000_000,
        ),
    ] = 0

    @classmethod
    def usual(cls, kinds: Kinds, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return as many units as an embedding has."""
        return as_embedded("encoder_size", values)

    def faults_in(self, model: ModelConfig) -> list[str]:
        """Heads share the units of a layer, and the first layer reads embeddings."""
        size, heads = self.encoder_size, self.encoder_heads
        return [
            *heads_fault("--encoder-heads", heads, "--encoder-size", size),
            *size_fault("--encoder transformer", "--encoder-size", size, model.embedding_size),
        ]
