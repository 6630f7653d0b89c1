"""Where each side's subword model comes from: learned from the training words, or given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import ClassVar

from nmtflex.config import PreprocessConfig
from nmtflex.corpus.store import SIDES
from nmtflex.corpus.words import Integers, WordStore
from nmtflex.text.subwords import BPE, Segmented, SentencePiece, Subwords
from nmtflex.text.subwords.bpe import learn_bpe, worth_learning_from
from nmtflex.text.subwords.sentencepiece import learn_sentencepiece

Report = Callable[[int], None]


class Learner(ABC):
    """Makes a subword model."""

    title: ClassVar[str]  # of what is learned, for progress; empty if nothing is

    @abstractmethod
    def __call__(self, stores: Sequence[WordStore], sample: Integers, progress: Report) -> Subwords:
        """Make a model from the words of some sentences.

        Args:
            stores: The words, of one side or of both.
            sample: Numbers of the sentences.
            progress: Called now and then with how much is done.
        """


@dataclass(frozen=True)
class LearnBpe(Learner):
    """Learns merges from the counts of words."""

    merges: int
    title = BPE.title

    def __call__(self, stores: Sequence[WordStore], sample: Integers, progress: Report) -> BPE:
        """Learn from the most frequent words."""
        counts = Counter[str]()
        for store in stores:
            counts.update(store.counts_in(sample))
        words = worth_learning_from(counts)
        del counts  # large, and no longer needed
        return learn_bpe(words, self.merges, progress)


@dataclass(frozen=True)
class LearnSentencePiece(Learner):
    """Learns pieces from running words."""

    size: int
    kind: str
    byte_fallback: bool
    name: str  # the option and the text, for messages
    title = SentencePiece.title

    def __call__(
        self, stores: Sequence[WordStore], sample: Integers, progress: Report
    ) -> SentencePiece:
        """Learn from all sentences."""
        lines = chain.from_iterable(store.sentences(sample) for store in stores)
        return learn_sentencepiece(
            lines, self.size, self.kind, self.byte_fallback, self.name, progress
        )


@dataclass(frozen=True)
class Given(Learner):
    """Takes a model as it is."""

    model: Subwords
    title = ""

    def __call__(self, stores: Sequence[WordStore], sample: Integers, progress: Report) -> Subwords:
        """Return it."""
        return self.model


def build_learners(config: PreprocessConfig) -> list[Learner | None]:
    """Return what makes each side's subword model; None for words and characters.

    Raises:
        DataError: A given file is not a usable model.
    """
    names = config.source_tokenizer, config.target_tokenizer
    return [
        None if name == "char" else _build(config, side)
        for side, name in zip(SIDES, names, strict=True)
    ]


def _build(config: PreprocessConfig, side: str) -> Learner | None:
    if config.bpe:
        return LearnBpe(config.bpe)
    if config.segmented:
        return Given(Segmented(config.segmented))
    chosen = config.sentencepiece_of(side)
    if isinstance(chosen, Path):
        return Given(SentencePiece.load(chosen))
    if chosen:
        flag = "--sentencepiece" if config.sentencepiece else f"--{side}-sentencepiece"
        name = f"{flag} {chosen}: the text of {'both sides' if config.joint else f'the {side}'}"
        return LearnSentencePiece(chosen, config.sentencepiece_type, config.byte_fallback, name)
    return None
