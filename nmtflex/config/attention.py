"""Options of the attention mechanisms, one class each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from nmtflex.config.base import MOST_UNITS, Kinds, Opt, Variant

if TYPE_CHECKING:
    from nmtflex.config.model import ModelConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class AttentionConfig(Variant):
    """Options of an attention mechanism; one subclass each."""

    usual_decoder: ClassVar[str] = "bahdanau"
    slots: ClassVar[bool] = False  # has slots, which stand for the source
    source_memory: ClassVar[str] = "t k d"  # order of what a decoder reads of t positions
    focus_in_words: ClassVar[str] = "the centre of the window"  # for figures, if it has a focus

    @property
    def has_hidden_units(self) -> bool:
        """Whether --attention-size has an effect."""
        return False

    def faults_in(self, model: ModelConfig) -> list[str]:
        """Return conflicts between this mechanism and the rest of the model."""
        if model.attention_size and not self.has_hidden_units:
            return [f"--attention-size {model.attention_size} has no effect on {self.in_words()}"]
        return []

    def in_words(self) -> str:
        """Return the flags that select this mechanism, for messages."""
        return f"--attention {self.kind}"

    def context_size(self, states_size: int) -> int:
        """Return the size of a context vector, given that of an encoder state."""
        return states_size


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoredConfig(AttentionConfig):
    """Options of mechanisms that score source positions."""

    score: Annotated[
        Literal["additive", "general", "dot"],
        Opt(
            "Score function: additive (Bahdanau; used in both papers), general or dot (Luong; "
            "scaled by the size of a head with --decoder ssru or transformer, where dot is the "
            "default)."
        ),
    ] = "additive"

    @property
    def has_hidden_units(self) -> bool:
        """The additive score has hidden units."""
        return self.score == "additive"

    @classmethod
    def usual(cls, kinds: Kinds, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the score function that is usual in the decoder."""
        return {"score": getattr(kinds.get("decoder"), "usual_score", "additive")}

    def in_words(self) -> str:
        """Include the score function."""
        return f"--attention {self.kind} --score {self.score}"

    def faults_in(self, model: ModelConfig) -> list[str]:
        """Dot products need vectors of equal size."""
        states, size = model.encoder.states_size, model.decoder.decoder_size
        faults = AttentionConfig.faults_in(self, model)
        if self.score == "dot" and size != states and not model.decoder.heads:
            faults.append(
                f"--score dot needs --decoder-size {states}, the size of an encoder state, not "
                f"{size}; or use --score general"
            )
        return faults


@dataclass(frozen=True, kw_only=True, slots=True)
class GlobalConfig(ScoredConfig):
    """Options of global attention (Bahdanau; Luong)."""

    kind: ClassVar[str] = "global"


@dataclass(frozen=True, kw_only=True, slots=True)
class NoneConfig(AttentionConfig):
    """No attention: the decoder sees the encoder's final state only."""

    kind: ClassVar[str] = "none"
    source_memory: ClassVar[str] = "k"

    def context_size(self, states_size: int) -> int:
        """Return 0: there is no context."""
        return 0


Window = Annotated[
    int, Opt("D: source tokens scored on each side of the centre (Luong: 10).", ge=1)
]


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalMConfig(ScoredConfig):
    """Options of local attention around the diagonal (Luong's local-m)."""

    kind: ClassVar[str] = "local-m"

    window: Window = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalPConfig(ScoredConfig):
    """Options of local attention around a predicted position (Luong's local-p)."""

    kind: ClassVar[str] = "local-p"

    window: Window = 10

    @property
    def has_hidden_units(self) -> bool:
        """The predicted centre has hidden units."""
        return True


@dataclass(frozen=True, kw_only=True, slots=True)
class FlexibleConfig(ScoredConfig):
    """Options of flexible attention (Shu and Nakayama)."""

    kind: ClassVar[str] = "flexible"
    focus_in_words: ClassVar[str] = "of the step's weights, the centre of the next window"

    sigma: Annotated[
        float,
        Opt(
            "Width of the penalty gate x distance^2 / (2 sigma^2), in source tokens. The paper's "
            "window of 3 is 2 sigma; it also tried sigma = 1.5, 5, 7.5 and 10.",
            ge=0.001,
        ),
    ] = 1.5
    gate_feedback: Annotated[
        bool, Opt("Feed the previous output word to the gate (eq. 8), or not (eq. 7).")
    ] = True
    remainder: Annotated[
        bool,
        Opt(
            "Under a threshold, let one vector stand for the source positions that are not scored, "
            "for one more score a step; not in the paper."
        ),
    ] = False

    @property
    def has_hidden_units(self) -> bool:
        """The gate has hidden units."""
        return True


Slots = Annotated[
    int,
    Opt(
        "Number of slots that represent the source (Britz et al.: 32 and 64).",
        ge=1,
        le=MOST_UNITS,
        flag="--K",
    ),
]


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryConfig(AttentionConfig):
    """Options of fixed-size memory attention (Britz, Guan and Luong)."""

    kind: ClassVar[str] = "memory"
    usual_decoder: ClassVar[str] = "luong"
    slots: ClassVar[bool] = True
    source_memory: ClassVar[str] = "K k d"

    K: Slots = 32
    position_encoding: Annotated[
        bool,
        Opt(
            "Bias early slots towards the start of the source and late slots towards its end (eq. "
            "11)."
        ),
    ] = True
    encoder_scoring: Annotated[
        Literal["softmax", "sigmoid"],
        Opt(
            "Normalisation of the slot scores at each source position; softmax in both encoder "
            "and decoder works badly."
        ),
    ] = "sigmoid"
    decoder_scoring: Annotated[
        Literal["softmax", "sigmoid"], Opt("Normalisation of the slot scores at each decoder step.")
    ] = "softmax"


@dataclass(frozen=True, kw_only=True, slots=True)
class AbcConfig(ScoredConfig):
    """Options of attention with bounded-memory control (Peng et al. 2022)."""

    kind: ClassVar[str] = "abc"
    slots: ClassVar[bool] = True
    source_memory: ClassVar[str] = "K k d"

    K: Slots = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class RfaConfig(ScoredConfig):
    """Options of random feature attention (Peng et al. 2021)."""

    kind: ClassVar[str] = "rfa"
    source_memory: ClassVar[str] = "F k d"

    score: Annotated[
        Literal["general", "dot"], Opt("Score function whose softmax is estimated.")
    ] = "general"
    features: Annotated[
        int,
        Opt(
            "Number of random vectors (the paper's program: 64). A step reads twice as many "
            "features, a sine and a cosine of each, or as many with --feature-map positive.",
            ge=1,
            le=MOST_UNITS,
        ),
    ] = 64
    feature_map: Annotated[
        Literal["fourier", "positive"],
        Opt(
            "Random features: sine and cosine (the paper's), whose weights may be negative; or "
            "exponentials (Performer's), whose weights are never negative and sum to 1."
        ),
    ] = "fourier"

    @classmethod
    def usual(cls, kinds: Kinds, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the score function that is usual in the decoder, or its nearest dot product."""
        usual = ScoredConfig.usual(kinds, values)
        return {} if usual["score"] == "additive" else usual


@dataclass(frozen=True, kw_only=True, slots=True)
class ScanningConfig(AttentionConfig):
    """Options of mechanisms that scan the source from left to right."""

    focus_in_words: ClassVar[str] = "where the scan stopped"

    energy_bias: Annotated[
        float,
        Opt(
            "First value of the learnt bias r of the energies: the longer the sources beside the "
            "targets, the lower (Raffel et al.: -1 for summarization, -4 for speech).",
            ge=-100,
            le=100,
        ),
    ] = 0.0
    energy_scale: Annotated[
        float,
        Opt(
            "Scale of the energies at first: without r, none is beyond it. It is learnt slowly, so "
            "that from 1 (Raffel et al.) they stay below the noise for thousands of updates.",
            gt=0,
            le=1000,
        ),
    ] = 32.0
    energy_noise: Annotated[
        float,
        Opt(
            "Standard deviation of the noise on the energies in training, which makes the model "
            "decide clearly (Raffel et al.: 1).",
            ge=0,
            le=100,
        ),
    ] = 4.0

    @property
    def has_hidden_units(self) -> bool:
        """The energy has hidden units."""
        return True


@dataclass(frozen=True, kw_only=True, slots=True)
class MonotonicConfig(ScanningConfig):
    """Options of hard monotonic attention (Raffel et al.)."""

    kind: ClassVar[str] = "monotonic"


@dataclass(frozen=True, kw_only=True, slots=True)
class MochaConfig(ScanningConfig):
    """Options of monotonic chunkwise attention (Chiu and Raffel)."""

    kind: ClassVar[str] = "mocha"

    chunk: Annotated[
        int,
        Opt(
            "w: source tokens of the chunk that ends where the scan stops (Chiu and Raffel: 2 for "
            "speech, 8 for summarization).",
            ge=1,
        ),
    ] = 4
