"""Options of the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from nmtflex.config.attention import AttentionConfig, GlobalConfig
from nmtflex.config.base import MOST_UNITS, Config, Opt
from nmtflex.config.decoder import DecoderConfig
from nmtflex.config.encoder import EncoderConfig, RecurrentEncoderConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig(Config):
    """Model."""

    attention: Annotated[AttentionConfig, Opt("Attention mechanism.")] = GlobalConfig()
    attend_every: Annotated[
        Literal["step", "gate"],
        Opt(
            "step: every decoder step attends; gate: a gate mixes each step's context with the "
            "last one, and under --reuse-below steps with a low gate do not attend. Every "
            "mechanism can have it."
        ),
    ] = "step"
    encoder: Annotated[
        EncoderConfig, Opt("Encoder: recurrent (bidirectional LSTM or GRU) or transformer.")
    ] = RecurrentEncoderConfig()
    decoder: Annotated[
        DecoderConfig,
        Opt(
            "bahdanau: the context is computed from the previous state and fed into the cell; "
            "luong: it is computed from the new state, after the cell; ssru and transformer: "
            "residual layers whose attention has heads (default bahdanau; luong for memory "
            "attention)."
        ),
    ] = DecoderConfig()
    embedding_size: Annotated[
        int, Opt("Units of a word embedding (Shu and Nakayama: 1000).", ge=1, le=MOST_UNITS)
    ] = 256
    attention_size: Annotated[
        int,
        Opt(
            "Hidden units of the additive score, the gate and the predicted centre, of all heads "
            "together; 0 uses the decoder size.",
            ge=0,
            le=MOST_UNITS,
        ),
    ] = 0
    bottleneck: Annotated[
        int,
        Opt(
            "Units of a linear layer before the softmax; 0 for none (Shu and Nakayama: 600).",
            ge=0,
            le=MOST_UNITS,
        ),
    ] = 0
    tie_embeddings: Annotated[
        Literal["none", "target", "all"],
        Opt(
            "Share weights: target = target embedding and output layer; all = also the source "
            "embedding, which needs a joint vocabulary."
        ),
    ] = "none"
    dropout: Annotated[
        float,
        Opt(
            "Dropout probability in training: on the input of each recurrent cell; in transformer "
            "and SSRU layers on the embeddings and on the output of each sublayer.",
            ge=0,
            lt=1,
        ),
    ] = 0.2
    output_dropout: Annotated[
        float, Opt("Dropout probability on the vector that predicts a word.", ge=0, lt=1)
    ] = 0.0

    def __post_init__(self) -> None:
        """Use the decoder of the mechanism's paper, unless one is given."""
        if not self.decoder.kind:
            usual = DecoderConfig.variants()[self.attention.usual_decoder]
            object.__setattr__(self, "decoder", usual.from_dict(Config.to_dict(self.decoder)))
        Config.__post_init__(self)

    @property
    def key_size(self) -> int:
        """Hidden units of the additive score, the gate and the predicted centre, per head."""
        return (self.attention_size or self.decoder.decoder_size) // (self.decoder.heads or 1)

    @property
    def output_size(self) -> int:
        """Input size of the output layer."""
        context_size = self.attention.context_size(self.encoder.states_size)
        return self.bottleneck or self.decoder.output_size(context_size)

    def validate(self) -> list[str]:
        """Check rules that involve several options."""
        faults = [
            *self.encoder.faults_in(self),
            *self.decoder.faults_in(self),
            *self.attention.faults_in(self),
        ]
        if not self.attention.context_size(1):
            faults += self.idle({"attend_every": f"with {self.attention.in_words()}"})
        if self.tie_embeddings != "none" and self.output_size != self.embedding_size:
            faults.append(
                f"--tie-embeddings {self.tie_embeddings} needs an output layer with "
                f"{self.embedding_size} inputs (--embedding-size), not {self.output_size}; "
                f"add --bottleneck {self.embedding_size}"
            )
        return faults
