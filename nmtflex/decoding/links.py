"""Word alignments from attention: each target word linked to one source word.

Legend: T target and S source tokens of a sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from nmtflex.decoding.ensemble import Ids, StepModel
from nmtflex.decoding.traces import Numbers, Origin, SentenceTrace, most_attended, trace_pairs
from nmtflex.text.pipeline import TextPipeline

Attended = list[int]  # of each target word, the number of the source word it is linked to


def attended_words(
    pipeline: TextPipeline,
    line: str,
    tokens: Sequence[str],
    words: Sequence[str],
    weights: Numbers | None,
    cuts: Sequence[int] = (),
) -> Attended:
    """Link each target word to the source word with the greatest weight, the first of equal ones.

    Returns:
        A link for each word of ``word_weights``; nothing where either side has no words.
    """
    return strongest(word_weights(pipeline, line, tokens, words, weights, cuts))


def strongest(by_word: Numbers) -> Attended:
    """Return the source word with the greatest of ``word_weights`` for each target word."""
    return most_attended(by_word).tolist() if by_word.size else []


def word_weights(
    pipeline: TextPipeline,
    line: str,
    tokens: Sequence[str],
    words: Sequence[str],
    weights: Numbers | None,
    cuts: Sequence[int] = (),
) -> Numbers:
    """Return attention weights between the words that alignments count.

    Weights are summed over the subwords of either word. Words are numbered by
    ``Tokenizer.word_numbers``. The end of the sentence is no word.

    Args:
        pipeline: The model's.
        line: The raw source.
        tokens: The target's T tokens.
        words: Its words.
        weights: [T or more, S] attention weights; None for a sentence without a source.
        cuts: How many of ``words`` each word of ``tokens`` became; empty if each became one.

    Returns:
        [target words, source words]; empty where either side has no words.
    """
    source, target = pipeline.source, pipeline.target
    if weights is None or not len(tokens):
        return np.zeros((0, 0))
    by_word = sum_subwords(pipeline, line, tokens, weights, cuts)
    by_word = _sum_words(by_word, target.tokenizer.word_numbers(words))
    numbers = source.tokenizer.word_numbers(source.join(source.segment(line)))
    return _sum_words(by_word.T, numbers).T


def align_pairs(
    models: Sequence[StepModel],
    pipeline: TextPipeline,
    pairs: Sequence[tuple[str, str]],
    batch_sentences: int = 64,
) -> list[Attended]:
    """Align given translations, by forced decoding.

    Args:
        models: In evaluation mode; the mean of their weights counts.
        pipeline: Theirs.
        pairs: Raw source and target lines.
        batch_sentences: Pairs computed together.

    Raises:
        TypeError: A pair is not of two strings.
        ValueError: No model has weights over source positions.
    """
    for index, pair in enumerate(pairs):
        if not isinstance(pair, tuple | list) or [isinstance(x, str) for x in pair] != [True, True]:
            raise TypeError(
                "align takes pairs of a source and a target line; "
                f"pair {index} (from 0) is {pair!r}"
            )
    source, target = pipeline.source, pipeline.target
    ids = [(source.encode(line), target.encode(other)) for line, other in pairs]
    found = []
    weights = mean_weights(models, ids, batch_sentences)
    for (line, other), seen in zip(pairs, weights, strict=True):
        tokens = target.segment(other)
        found.append(attended_words(pipeline, line, tokens, target.join(tokens), seen))
    return found


def sum_subwords(
    pipeline: TextPipeline,
    line: str,
    tokens: Sequence[str],
    weights: Numbers,
    cuts: Sequence[int] = (),
) -> Numbers:
    """Return attention weights between words, summed over the subwords of either.

    Args:
        pipeline: The model's.
        line: The raw source.
        tokens: The target's T tokens, at least one.
        weights: [T or more, S].
        cuts: How many words each target word became; empty if each became one.

    Returns:
        [words of the target, after ``cuts``; words of the source].
    """
    rows = pipeline.target.word_starts(tokens)
    columns = pipeline.source.word_starts(pipeline.source.segment(line))
    found = np.add.reduceat(weights[: len(tokens)], rows, axis=0)
    found = np.add.reduceat(found, columns, axis=1)
    return np.repeat(found, cuts, axis=0) if cuts else found


def _sum_words(weights: Numbers, numbers: Sequence[int]) -> Numbers:
    """Sum the rows of tokens with the same number, without those numbered -1."""
    found = np.zeros((max(numbers, default=-1) + 1, weights.shape[1]))
    real = np.array(numbers) >= 0
    np.add.at(found, np.array(numbers)[real], weights[real])
    return found


def pharaoh_line(attended: Iterable[int]) -> str:
    """Return links ``source-target`` in Pharaoh's format, words from 0, in target order."""
    return " ".join(f"{source}-{target}" for target, source in enumerate(attended)) + "\n"


def aligned(models: Sequence[StepModel]) -> bool:
    """Whether a model has weights over source positions, to align words by."""
    return any(model.aligned for model in models)


def mean_weights(
    models: Sequence[StepModel],
    pairs: Sequence[tuple[Ids, Ids]],
    batch_sentences: int = 64,
    first: Sequence[SentenceTrace | None] | None = None,
    origin: Origin | None = None,
) -> list[Numbers | None]:
    """Return the attention weights [T + 1, S] of given targets: the mean of the aligned models.

    Args:
        models: In evaluation mode.
        pairs: Ids of source and target, without BOS and EOS.
        batch_sentences: Pairs computed together.
        first: Traces of the first model, if they are known.
        origin: Where the models have encoded the sources, if they have.

    Returns:
        Weights for each pair; None if the source is empty.

    Raises:
        ValueError: No model has weights over source positions.
    """

    def traced(at: int, model: StepModel) -> Sequence[SentenceTrace | None]:
        if first is not None and at == 0:
            return first
        own = origin and origin._replace(encoded=origin.encoded.of(at))
        return trace_pairs(model, pairs, batch_sentences, own)

    found = [traced(at, model) for at, model in enumerate(models) if model.aligned]
    if not found:
        raise ValueError(f"none of {len(models)} models has weights to align by")
    return [
        None if several[0] is None else np.mean([trace.weights for trace in several], axis=0)
        for several in zip(*found, strict=True)
    ]
