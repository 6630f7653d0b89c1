"""Options of the encoders, one class each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from nmtflex.config.base import MOST_UNITS, Opt, Variant


@dataclass(frozen=True, kw_only=True, slots=True)
class EncoderConfig(Variant):
    """Options of an encoder; one subclass each."""

    encoder_size: Annotated[
        int,
        Opt("Units per encoder layer and direction (Shu and Nakayama: 1000).", ge=1, le=MOST_UNITS),
    ] = 256
    encoder_layers: Annotated[int, Opt("Encoder layers (Britz et al.: 2).", ge=1, le=1000)] = 1

    @property
    def states_size(self) -> int:
        """Size of an encoder state, H."""
        return self.encoder_size


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
