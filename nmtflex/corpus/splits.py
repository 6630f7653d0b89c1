"""A split being written: its stores, and the counts for the manifest."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from nmtflex.corpus.filters import REASONS, Filter, describe_reasons
from nmtflex.corpus.inputs import Corpus
from nmtflex.corpus.passes import EncodedText, Tokenised
from nmtflex.corpus.store import SIDES, StoreWriter, TokenStore, id_type
from nmtflex.errors import DataError
from nmtflex.text.pipeline import TextPipeline
from nmtflex.text.vocabulary import UNK_ID


class PairCount:
    """Counts pairs kept and dropped."""

    def __init__(self) -> None:
        self.kept = 0
        self.dropped: Counter[str] = Counter()

    def add(self, chunk: Tokenised | EncodedText) -> None:
        """Count a chunk's pairs."""
        self.kept += len(chunk.lengths[0])
        self.dropped.update(chunk.dropped)

    def drop(self, reason: str, count: int) -> None:
        """Count pairs as dropped that ``add`` counted as kept."""
        self.kept -= count
        self.dropped[reason] += count

    def check(self, corpora: Iterable[Corpus], rules: Filter) -> None:
        """Refuse a split with no pairs left.

        Raises:
            DataError: No pair is kept.
        """
        if self.kept:
            return
        reasons = describe_reasons(**dataclasses.asdict(rules))
        counts = [
            f"{self.dropped[key]} {words}" for key, words in reasons.items() if self.dropped[key]
        ]
        files = ", ".join(str(path) for corpus in corpora for path in corpus.files)
        raise DataError(
            f"{files}: none of {self.read} training pairs are left: {', '.join(counts)}"
        )

    @property
    def read(self) -> int:
        """Pairs read."""
        return self.kept + self.dropped.total()

    def describe(self) -> dict[str, Any]:
        """Return the manifest entry."""
        dropped = {reason: self.dropped[reason] for reason in REASONS}
        return {"read": self.read, "kept": self.kept, "dropped": dropped}


class SplitWriter:
    """Writes both stores of a split and counts their tokens; use as a context manager.

    Args:
        folder: The prepared folder.
        split: "train", "valid" or "test".
        pipeline: Its vocabularies define the ids.
    """

    def __init__(self, folder: Path, split: str, pipeline: TextPipeline) -> None:
        types = [id_type(len(side.vocabulary)) for side in (pipeline.source, pipeline.target)]
        self._counts: list[dict[str, Any]] = [
            {"dtype": dtype, "tokens": 0, "longest": 0, "unknown": 0} for dtype in types
        ]
        self._bases = [folder / f"{split}.{side}" for side in SIDES]
        self._writers = list(map(StoreWriter, self._bases, types))

    def append(self, side: int, ids: npt.NDArray[Any], lengths: npt.ArrayLike) -> None:
        """Append sentences to one side: concatenated ids, and the number of ids in each."""
        lengths = np.asarray(lengths, np.int64)
        counts = self._counts[side]
        counts["tokens"] += len(ids)
        counts["longest"] = max(counts["longest"], int(lengths.max(initial=0)))
        counts["unknown"] += int(np.count_nonzero(ids == UNK_ID))
        self._writers[side].append(ids, lengths)

    def written(self) -> list[TokenStore]:
        """Return what was appended to each side so far."""
        for writer in self._writers:
            writer.flush()
        return [
            TokenStore(base, count["dtype"])
            for base, count in zip(self._bases, self._counts, strict=True)
        ]

    def describe(self) -> dict[str, Any]:
        """Return the manifest entry of each side; begin and end are not counted as tokens."""
        return dict(zip(SIDES, self._counts, strict=True))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for writer in self._writers:
            writer.close()
