"""SentencePiece models for the tests, learned in the usual way or changed afterwards."""

from __future__ import annotations

import functools
import io
from typing import Any

from sentencepiece import SentencePieceTrainer, sentencepiece_model_pb2

TEN = ["the", "cat", "sat", "on", "a", "mat", "then", "hen", "ten", "eaten"]
WORDS = [*TEN, "tea", "meat", "theatre", "at", "an", "ant"]
TEXT = [" ".join(WORDS[n:] + WORDS[:n]) for n in range(len(WORDS))] * 3


@functools.cache
def model_bytes(
    kind: str = "unigram", fallback: bool = True, size: int = 0, **options: Any
) -> bytes:
    """Learn with the defaults of the package, whose normalisation is NFKC."""
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT),
        model_writer=model,
        model_type=kind,
        byte_fallback=fallback,
        vocab_size=size or (285 if fallback else 29),
        minloglevel=5,
        **options,
    )
    return model.getvalue()


def proto(data: bytes) -> Any:
    return sentencepiece_model_pb2.ModelProto.FromString(data)
