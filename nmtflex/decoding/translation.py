"""What a translator returns for a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from nmtflex.decoding.traces import SentenceTrace


class Translation(NamedTuple):
    """One translation of a line, with its tokens and scores.

    Attributes:
        text: The translation as raw text.
        tokens: The model's tokens (subwords with BPE), ``<unk>`` for unknown ones.
        words: The words of the target tokenizer, after ``replace_unk``.
        score: ``log_probability`` / length ** ``length_penalty``, by which the search ranks.
        log_probability: Natural logarithm of the probability, EOS included.
        trace: What attention looked at, if requested: numpy arrays, see docs/formats.md.
        ids: Vocabulary ids of ``tokens``.
        cuts: How many of ``words`` each decoded word became; empty if each became one.
        unread: Source tokens beyond ``max_source_length``, which were not translated.
        attended: For each word of the translation the number of the source word that it is linked
            to, from 0, if requested; see docs/formats.md for what counts as a word.
        links: Pairs of a source and a target word, numbered in the same way, that translate each
            other: one to one as far as possible, if requested.
        truncated: Whether it has as many tokens as it may have, so that its end may be missing.
        log_probabilities: Natural logarithms of the probability of each token, EOS last; those of
            joined sentences follow each other.
        word_scores: For each of ``words`` the probability that it is right, if requested; see
            docs/scoring.md.
        confidence: Their mean, the expected share of right words; None if there are no words.
        unaligned: The share of words that attention links to nothing or to what is taken, a warning
            of invented text; None without words or without attention weights.
        units: If lines are split into sentences, the source and translation of each part that was
            translated by itself; otherwise None.
    """

    text: str
    tokens: list[str]
    words: list[str]
    score: float
    log_probability: float
    trace: SentenceTrace | None
    ids: Sequence[int] = ()
    cuts: Sequence[int] = ()
    unread: int = 0
    attended: Sequence[int] = ()
    links: Sequence[tuple[int, int]] = ()
    truncated: bool = False
    units: Sequence[tuple[str, str]] | None = None
    log_probabilities: Sequence[float] = ()
    word_scores: Sequence[float] = ()
    confidence: float | None = None
    unaligned: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, which JSON can hold."""
        trace = None if self.trace is None else self.trace.to_dict()
        return self._asdict() | {"trace": trace}
