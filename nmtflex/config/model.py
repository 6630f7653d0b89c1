"""Options of the model: its shape around the attention mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from nmtflex.config.attention import AttentionConfig, GlobalConfig
from nmtflex.config.base import MOST_UNITS, Config, Opt


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig(Config):
    """The shape of the model."""

    attention: Annotated[AttentionConfig, Opt("Attention mechanism.")] = GlobalConfig()
    decoder: Annotated[
        Literal["bahdanau", "luong"] | None,
        Opt(
            "bahdanau: context from the previous state, into the cell; luong: context from the "
            "new state, after the cell (default bahdanau; luong for memory attention)."
        ),
    ] = None
    cell: Annotated[Literal["lstm", "gru"], Opt("Recurrent cell of encoder and decoder.")] = "lstm"
    embedding_size: Annotated[
        int, Opt("Units of a word embedding (Shu and Nakayama: 1000).", ge=1, le=MOST_UNITS)
    ] = 256
    encoder_size: Annotated[
        int,
        Opt(
            "Units of an encoder layer, each direction (Shu and Nakayama: 1000).",
            ge=1,
            le=MOST_UNITS,
        ),
    ] = 256
    decoder_size: Annotated[
        int, Opt("Units of a decoder layer (Shu and Nakayama: 1000).", ge=1, le=MOST_UNITS)
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
    encoder_layers: Annotated[int, Opt("Encoder layers (Britz et al.: 2).", ge=1, le=1000)] = 1
    decoder_layers: Annotated[int, Opt("Decoder layers (Britz et al.: 2).", ge=1, le=1000)] = 1
    bottleneck: Annotated[
        int,
        Opt(
            "Linear units before the softmax; 0 for none (Shu and Nakayama: 600).",
            ge=0,
            le=MOST_UNITS,
        ),
    ] = 0
    input_feeding: Annotated[
        bool, Opt("luong: feed the last attentional vector into the next step.")
    ] = True
    attentional: Annotated[
        bool, Opt("luong: predict from tanh(W [h; c]) instead of from [h; c].")
    ] = True
    deep_output: Annotated[
        bool,
        Opt(
            "bahdanau: predict from the state, the previous word and the context (Bahdanau et al.) "
            "instead of from the state alone (Shu and Nakayama)."
        ),
    ] = False
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
        if self.decoder is None:
            object.__setattr__(self, "decoder", self.attention.usual_decoder)
        Config.__post_init__(self)

    @property
    def key_size(self) -> int:
        """Units inside the additive score, the gate and the predicted centre."""
        return self.attention_size or self.decoder_size

    @property
    def output_size(self) -> int:
        """Units that the output layer reads."""
        if self.bottleneck:
            return self.bottleneck
        if self.decoder == "luong" and not self.attentional:
            return self.decoder_size + self.attention.context_size(2 * self.encoder_size)
        return self.decoder_size

    def validate(self) -> list[str]:
        """Check what concerns several options."""
        faults = self.attention.faults_in(self)
        if self.decoder == "bahdanau" and not (self.input_feeding and self.attentional):
            faults.append("--no-input-feeding and --no-attentional need --decoder luong")
        if self.decoder == "luong" and self.deep_output:
            faults.append("--deep-output needs --decoder bahdanau")
        if self.tie_embeddings != "none" and self.output_size != self.embedding_size:
            faults.append(
                f"--tie-embeddings {self.tie_embeddings} needs an output layer that reads "
                f"--embedding-size ({self.embedding_size}) units, not {self.output_size}; "
                f"add --bottleneck {self.embedding_size}"
            )
        return faults
