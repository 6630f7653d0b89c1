"""Options of the decoders, one class each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from nmtflex.config.base import MOST_UNITS, Kinds, Opt, Variant
from nmtflex.config.shared import increasing
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
class DecoderConfig(Variant):
    """Options of a decoder; one subclass each."""

    usual_score: ClassVar[str] = "additive"

    decoder_size: Annotated[
        int,
        Opt(
            "Units per decoder layer (Shu and Nakayama: 1000; ssru and transformer: the embedding "
            "size if not given).",
            ge=1,
            le=MOST_UNITS,
        ),
    ] = 256
    decoder_layers: Annotated[
        int,
        Opt(
            "Decoder layers (default 1, ssru and transformer 2; Britz et al.: 2, Vaswani et al.: "
            "6).",
            ge=1,
            le=1000,
        ),
    ] = 1

    @classmethod
    def kind_for(cls, kind: str, given: Collection[str], others: Kinds) -> str:
        """Return the decoder used in the mechanism's paper, unless one is given."""
        return kind or getattr(others["attention"], "usual_decoder", "")

    def output_size(self, context_size: int) -> int:
        """Return the size of the vector that predicts a word, given that of a context."""
        return self.decoder_size

    @property
    def heads(self) -> int:
        """Attention heads per layer; 0 if attention reads states without projecting them."""
        return 0

    def faults_in(self, model: ModelConfig) -> list[str]:
        """Return conflicts between this decoder and the rest of the model."""
        return []


@dataclass(frozen=True, kw_only=True, slots=True)
class RecurrentDecoderConfig(DecoderConfig):
    """Options of recurrent decoders."""

    cell: Annotated[Literal["lstm", "gru"], Opt("Recurrent cell of the encoder and decoder.")] = (
        "lstm"
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class BahdanauConfig(RecurrentDecoderConfig):
    """Options of the decoder that attends with its previous state (Bahdanau)."""

    kind: ClassVar[str] = "bahdanau"

    deep_output: Annotated[
        bool,
        Opt(
            "Predict from the state, the previous word and the context (Bahdanau et al.) instead "
            "of from the state alone (Shu and Nakayama)."
        ),
    ] = False


@dataclass(frozen=True, kw_only=True, slots=True)
class LuongConfig(RecurrentDecoderConfig):
    """Options of the decoder that attends with its new state (Luong)."""

    kind: ClassVar[str] = "luong"

    input_feeding: Annotated[
        bool, Opt("Feed the previous attentional vector into the next step.")
    ] = True
    attentional: Annotated[bool, Opt("Predict from tanh(W [h; c]) instead of from [h; c].")] = True

    def output_size(self, context_size: int) -> int:
        """Without the tanh layer, add the size of the context."""
        return self.decoder_size + (0 if self.attentional else context_size)


@dataclass(frozen=True, kw_only=True, slots=True)
class LayeredDecoderConfig(DecoderConfig):
    """Options of decoders of residual layers, each with attention and a feed-forward layer."""

    usual_score: ClassVar[str] = "dot"

    decoder_layers: Annotated[int, Opt("Decoder layers.", ge=1, le=1000)] = 2
    decoder_heads: Annotated[
        int,
        Opt(
            "Heads per decoder layer, of the attention mechanism and of self-attention (Vaswani "
            "et al.: 8).",
            ge=1,
            le=1000,
        ),
    ] = 8
    decoder_ffn: Annotated[
        int,
        Opt(
            "Hidden units of the decoder's feed-forward layers; 0 for none (Vaswani et al.: 2048).",
            ge=0,
            le=MOST_UNITS,
        ),
    ] = 1024
    pre_norm: PreNorm = False
    ffn_dropout: FfnDropout = 0.0
    attending_layers: Annotated[
        str,
        Opt("Decoder layers that attend to the source, from 1, such as 2 or 1,3 (default all)."),
    ] = ""

    @classmethod
    def usual(cls, kinds: Kinds, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return as many units as an embedding has."""
        return as_embedded("decoder_size", values)

    @property
    def heads(self) -> int:
        """Attention heads per layer."""
        return self.decoder_heads

    @property
    def attending(self) -> list[int]:
        """The layers that attend to the source, from 0."""
        if not self.attending_layers:
            return list(range(self.decoder_layers))
        return [int(number) - 1 for number in self.attending_layers.split(",")]

    def validate(self) -> list[str]:
        """Check that the attending layers exist."""
        flag, text = "--attending-layers", self.attending_layers
        if not text:
            return []
        if faults := increasing(flag, text):
            return faults
        if self.attending[-1] < self.decoder_layers:
            return []
        return [
            f"{flag} {text}: there is no layer {self.attending[-1] + 1} in a decoder of "
            f"--decoder-layers {self.decoder_layers}"
        ]

    def faults_in(self, model: ModelConfig) -> list[str]:
        """Heads share the units of a layer, and the first layer reads embeddings."""
        size, heads = self.decoder_size, self.decoder_heads
        faults = [
            *heads_fault("--decoder-heads", heads, "--decoder-size", size),
            *size_fault(f"--decoder {self.kind}", "--decoder-size", size, model.embedding_size),
        ]
        if model.attention_size % heads:
            faults.append(
                f"--decoder-heads {heads} must divide --attention-size {model.attention_size}"
            )
        if not model.attention.context_size(size):
            faults += self.idle({"attending_layers": f"with {model.attention.in_words()}"})
        if not self.decoder_ffn and not hasattr(model.encoder, "ffn_dropout"):
            faults += self.idle({"ffn_dropout": "with --decoder-ffn 0"})
        return faults


@dataclass(frozen=True, kw_only=True, slots=True)
class SsruConfig(LayeredDecoderConfig):
    """Options of the decoder of SSRU layers (Kim et al. 2019)."""

    kind: ClassVar[str] = "ssru"


@dataclass(frozen=True, kw_only=True, slots=True)
class TransformerDecoderConfig(LayeredDecoderConfig):
    """Options of the transformer decoder (Vaswani et al. 2017)."""

    kind: ClassVar[str] = "transformer"

    attention_dropout: AttentionDropout = 0.0
