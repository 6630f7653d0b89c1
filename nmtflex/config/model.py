"""Options of the model: its shape around the attention mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from nmtflex.config.attention import AttentionConfig, GlobalConfig
from nmtflex.config.base import MOST_UNITS, Config, Opt
from nmtflex.config.decoder import DecoderConfig
from nmtflex.config.encoder import EncoderConfig, RecurrentEncoderConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig(Config):
    """The shape of the model."""

    attention: Annotated[AttentionConfig, Opt("Attention mechanism.")] = GlobalConfig()
    encoder: Annotated[EncoderConfig, Opt("Encoder.")] = RecurrentEncoderConfig()
    decoder: Annotated[
        DecoderConfig,
        Opt(
            "bahdanau: context from the previous state, into the cell; luong: context from the "
            "new state, after the cell (default bahdanau; luong for memory attention)."
        ),
    ] = DecoderConfig()
    embedding_size: Annotated[
        int, Opt("Units of a word embedding (Shu and Nakayama: 1000).", ge=1, le=MOST_UNITS)
    ] = 256
    attention_size: Annotated[
        int,
        Opt(
            "Units inside the additive score, the gate and the predicted centre; 0 takes the "
            "decoder size.",
            ge=0,
            le=MOST_UNITS,
        ),
    ] = 0
    bottleneck: Annotated[
        int,
        Opt(
            "Linear units before the softmax; 0 for none (Shu and Nakayama: 600).",
            ge=0,
            le=MOST_UNITS,
        ),
    ] = 0
    tie_embeddings: Annotated[
        Literal["none", "target", "all"],
        Opt(
            "Share weights: target = target embedding and output layer; all = source embedding "
            "too, which needs a joint vocabulary."
        ),
    ] = "none"
    dropout: Annotated[
        float, Opt("Share of units dropped on each cell's input, in training.", ge=0, lt=1)
    ] = 0.2
    output_dropout: Annotated[
        float, Opt("Share of units dropped of the vector that predicts a word.", ge=0, lt=1)
    ] = 0.0

    def __post_init__(self) -> None:
        """Take the decoder that the mechanism's paper has, unless one is named."""
        if not self.decoder.kind:
            usual = DecoderConfig.variants()[self.attention.usual_decoder]
            object.__setattr__(self, "decoder", usual.from_dict(Config.to_dict(self.decoder)))
        Config.__post_init__(self)

    @property
    def key_size(self) -> int:
        """Units inside the additive score, the gate and the predicted centre."""
        return self.attention_size or self.decoder.decoder_size

    @property
    def output_size(self) -> int:
        """Units that the output layer reads."""
        context_size = self.attention.context_size(self.encoder.states_size)
        return self.bottleneck or self.decoder.output_size(context_size)

    def validate(self) -> list[str]:
        """Check what concerns several options."""
        faults = self.attention.faults_in(self)
        if self.tie_embeddings != "none" and self.output_size != self.embedding_size:
            faults.append(
                f"--tie-embeddings {self.tie_embeddings} needs an output layer that reads "
                f"--embedding-size ({self.embedding_size}) units, not {self.output_size}; "
                f"add --bottleneck {self.embedding_size}"
            )
        return faults
