"""Options for generating synthetic corpora."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from nmtflex.config.base import Config, Opt

Seed = Annotated[int, Opt("Random seed; the same seed gives the same corpus.", ge=0)]


@dataclass(frozen=True, kw_only=True, slots=True)
class GenerateToyConfig(Config):
    """Toy corpus."""

    out: Annotated[Path, Opt("Folder for train.en, train.ja and the other files.")]
    train: Annotated[int, Opt("Training pairs.", ge=1)] = 20_000
    valid: Annotated[
        int, Opt("Validation pairs; none of their sentences occurs in the training data.", ge=0)
    ] = 500
    test: Annotated[
        int, Opt("Test pairs; none of their sentences occurs in the other splits.", ge=0)
    ] = 500
    seed: Seed = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class GenerateCopyConfig(Config):
    """Copy task."""

    out: Annotated[Path, Opt("Folder for train.src, train.tgt and the other files.")]
    min_length: Annotated[
        int, Opt("Shortest sequence, in tokens (Britz et al.: 0; preprocess drops these).", ge=1)
    ] = 1
    max_length: Annotated[
        int, Opt("L, the longest sequence, in tokens (Britz et al.: 10, 50, 100, 200).", ge=1)
    ] = 50
    vocabulary: Annotated[int, Opt("Number of distinct symbols (Britz et al.: 20).", ge=1)] = 20
    train: Annotated[int, Opt("Training sequences (Britz et al.: 100000).", ge=1)] = 100_000
    valid: Annotated[int, Opt("Validation sequences (Britz et al.: 1000).", ge=0)] = 1000
    test: Annotated[int, Opt("Test sequences.", ge=0)] = 1000
    seed: Seed = 1

    def validate(self) -> list[str]:
        """Check rules that involve several options."""
        return _length_faults(self.min_length, self.max_length)


@dataclass(frozen=True, kw_only=True, slots=True)
class GenerateZipfConfig(Config):
    """Text with a long-tailed vocabulary."""

    out: Annotated[Path, Opt("Folder for train.src, train.tgt and the other files.")]
    types: Annotated[
        int, Opt("Distinct words on each side, including the rarest.", ge=1, le=20_000_000)
    ] = 1_000_000
    exponent: Annotated[
        float, Opt("Exponent of Zipf's law; 0 makes all words equally likely.", ge=0, le=10)
    ] = 1.0
    min_length: Annotated[int, Opt("Shortest sentence, in words.", ge=1)] = 1
    max_length: Annotated[int, Opt("Longest sentence, in words.", ge=1)] = 20
    train: Annotated[int, Opt("Training pairs.", ge=1)] = 100_000
    valid: Annotated[int, Opt("Validation pairs.", ge=0)] = 1000
    test: Annotated[int, Opt("Test pairs.", ge=0)] = 1000
    seed: Seed = 1

    def validate(self) -> list[str]:
        """Check rules that involve several options."""
        return _length_faults(self.min_length, self.max_length)


def _length_faults(least: int, most: int) -> list[str]:
    """Return what is wrong with the bounds of lengths."""
    return [f"--min-length {least} must not exceed --max-length {most}"] if least > most else []
