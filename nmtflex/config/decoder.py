"""Options of the decoders, one class each."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from nmtflex.config.base import MOST_UNITS, Kinds, Opt, Variant


@dataclass(frozen=True, kw_only=True, slots=True)
class DecoderConfig(Variant):
    """Options of a decoder; one subclass each."""

    decoder_size: Annotated[
        int, Opt("Units per decoder layer (Shu and Nakayama: 1000).", ge=1, le=MOST_UNITS)
    ] = 256
    decoder_layers: Annotated[int, Opt("Decoder layers (Britz et al.: 2).", ge=1, le=1000)] = 1

    @classmethod
    def kind_for(cls, kind: str, given: Collection[str], others: Kinds) -> str:
        """Return the decoder used in the mechanism's paper, unless one is given."""
        return kind or getattr(others["attention"], "usual_decoder", "")

    def output_size(self, context_size: int) -> int:
        """Return the size of the vector that predicts a word, given that of a context."""
        return self.decoder_size


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
