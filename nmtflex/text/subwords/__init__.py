"""Subword models: BPE of subword-nmt, SentencePiece, and text that came in pieces."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nmtflex.text.subwords.base import Draw, Subwords
from nmtflex.text.subwords.bpe import BPE
from nmtflex.text.subwords.segmented import Segmented
from nmtflex.text.subwords.sentencepiece import SentencePiece
from nmtflex.text.visible import counted

__all__ = [
    "BPE",
    "Draw",
    "Segmented",
    "SentencePiece",
    "Subwords",
    "load_subwords",
    "name_subwords",
]


def load_subwords(folder: Path, side: str, description: Mapping[str, Any]) -> Subwords | None:
    """Open a side's subword model, or return None for words.

    Args:
        folder: Where ``save`` wrote it.
        side: "source" or "target".
        description: Of the side; part of it is what ``describe`` returned.

    Raises:
        DataError: Its file is missing, damaged or another one.
        KeyError: The description names none that this version knows.
    """
    if "sentencepiece" in description:
        sha256 = description["sentencepiece"]["sha256"]
        return SentencePiece.load(folder / f"{side}.model", sha256)
    if "segmented" in description:
        return Segmented(description["segmented"])
    return None if description["bpe"] is None else BPE.load(folder / f"{side}.codes")


def name_subwords(description: Mapping[str, Any]) -> str:
    """Return a side's subword model in words; empty for words and characters.

    Raises:
        KeyError: The description names none that this version knows.
    """
    if model := description.get("sentencepiece"):
        return f"SentencePiece {model['type']} of {counted(model['pieces'], 'piece')}"
    if marks := description.get("segmented"):
        return f"segmented by {marks}"
    merges = description["bpe"]
    return "" if merges is None else counted(merges, "BPE merge")
