"""Options of the model: its shape and its attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from nmtflex.config.base import Config, Opt, Variant


@dataclass(frozen=True, kw_only=True, slots=True)
class AttentionConfig(Variant):
    """Options of an attention mechanism; one subclass each."""

    def faults_in(self, model: ModelConfig) -> list[str]:
        """Return what does not fit between this mechanism and the model around it."""
        return []

    def context_size(self, states_size: int) -> int:
        """Units of a context vector, given those of an encoder state."""
        return states_size


@dataclass(frozen=True, kw_only=True, slots=True)
class GlobalConfig(AttentionConfig):
    """Options of global attention (Bahdanau; Luong)."""

    kind: ClassVar[str] = "global"

    score: Annotated[
        Literal["additive", "general", "dot"],
        Opt("Score function: additive (Bahdanau), general or dot (Luong)."),
    ] = "additive"

    def faults_in(self, model: ModelConfig) -> list[str]:
        """Dot products need vectors of one size; the additive score alone has units inside."""
        if model.attention_size and self.score != "additive":
            return [
                f"--attention-size {model.attention_size} has no effect on --score {self.score}"
            ]
        states = 2 * model.encoder_size
        if self.score == "dot" and model.decoder_size != states:
            return [
                f"--score dot needs --decoder-size equal to twice --encoder-size "
                f"({states}), not {model.decoder_size}; or use --score general"
            ]
        return []


@dataclass(frozen=True, kw_only=True, slots=True)
class NoneConfig(AttentionConfig):
    """No attention: the decoder sees the encoder's final state only."""

    kind: ClassVar[str] = "none"

    def faults_in(self, model: ModelConfig) -> list[str]:
        """There is no score to have units inside."""
        if model.attention_size:
            return [f"--attention-size {model.attention_size} has no effect on --attention none"]
        return []

    def context_size(self, states_size: int) -> int:
        """No context."""
        return 0


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig(Config):
    """The shape of the model."""

    attention: Annotated[AttentionConfig, Opt("Attention mechanism.")] = GlobalConfig()
    decoder: Annotated[
        Literal["bahdanau", "luong"],
        Opt(
            "bahdanau: context from the previous state, into the cell; luong: context from the "
            "new state, after the cell."
        ),
    ] = "bahdanau"
    cell: Annotated[Literal["lstm", "gru"], Opt("Recurrent cell of encoder and decoder.")] = "lstm"
    embedding_size: Annotated[
        int, Opt("Units of a word embedding (Shu and Nakayama: 1000).", ge=1)
    ] = 256
    encoder_size: Annotated[
        int, Opt("Units of an encoder layer, each direction (Shu and Nakayama: 1000).", ge=1)
    ] = 256
    decoder_size: Annotated[
        int, Opt("Units of a decoder layer (Shu and Nakayama: 1000).", ge=1)
    ] = 256
    attention_size: Annotated[
        int, Opt("Units inside the additive score; 0 takes the decoder size.", ge=0)
    ] = 0
    encoder_layers: Annotated[int, Opt("Encoder layers (Britz et al.: 2).", ge=1)] = 1
    decoder_layers: Annotated[int, Opt("Decoder layers (Britz et al.: 2).", ge=1)] = 1
    bottleneck: Annotated[
        int, Opt("Linear units before the softmax; 0 for none (Shu and Nakayama: 600).", ge=0)
    ] = 0
    input_feeding: Annotated[
        bool, Opt("luong: feed the last attentional vector into the next step.")
    ] = True
    attentional: Annotated[
        bool, Opt("luong: predict from tanh(W [h; c]) instead of from [h; c].")
    ] = True
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

    @property
    def key_size(self) -> int:
        """Units inside the additive score."""
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
        if self.tie_embeddings != "none" and self.output_size != self.embedding_size:
            faults.append(
                f"--tie-embeddings {self.tie_embeddings} needs an output layer that reads "
                f"--embedding-size ({self.embedding_size}) units, not {self.output_size}; "
                f"add --bottleneck {self.embedding_size}"
            )
        return faults
