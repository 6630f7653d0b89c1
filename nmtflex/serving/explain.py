"""What a worker process answers about where the words of a translation come from.

Legend: T target and S source tokens of a sentence.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from nmtflex.decoding.links import word_weights
from nmtflex.decoding.tally import Tally
from nmtflex.text.places import source_places, target_places

if TYPE_CHECKING:
    from nmtflex.decoding.traces import Numbers, SentenceTrace
    from nmtflex.decoding.translation import Translation
    from nmtflex.decoding.translator import Translator
    from nmtflex.text.pipeline import SidePipeline

DIGITS = 4  # of a weight


def translate_explained(
    translator: Translator, text: str, options: dict[str, Any]
) -> tuple[list[Translation], dict[str, Any]]:
    """Translate a sentence, by itself, and explain the best translation.

    Args:
        translator: Of an open run.
        text: Raw sentence.
        options: ``n_best``; ``thresholds``, whether the run has flexible attention; ``scored``,
            whether it scores words; ``tau``, a threshold in place of the translator's, or None.

    Returns:
        The translations, the best first, and the explanation: ``source_words`` and
        ``target_words`` (spans in their texts, None where a word was not found), ``weights`` and
        ``skipped`` (a list for each target word; see ``shares`` and ``left_out``; or None),
        ``confidences``, ``cps``, ``positions`` (S) and ``milliseconds``, those of the search.
    """
    count, tau = options["n_best"], options["tau"]
    beam = max(translator.search.beam, count)
    began = time.perf_counter()
    # Counting and tracing take time as well.
    translator.translate_batch([text], count, tau=tau, beam=beam)
    seconds = time.perf_counter() - began
    tally = Tally()
    (found,) = translator.translate_batch(
        [text],
        count,
        trace=True,
        tally=tally,
        tau=tau,
        beam=beam,
        word_scores=options["scored"],
    )
    about = {"cps": tally.cps or 0.0, "milliseconds": round(1000 * seconds, 2)}
    return found, about | _words(translator, text, found[0], options["thresholds"])


def _words(
    translator: Translator, text: str, best: Translation, thresholds: bool
) -> dict[str, Any]:
    """Return what is known of the words of a translation."""
    pipeline, trace = translator.pipeline, best.trace
    target = target_places(pipeline.target, best.text, best.words)

    def by_word(numbers: Numbers | None) -> Numbers:
        return word_weights(pipeline, text, best.tokens, best.words, numbers, best.cuts)

    weights = by_word(trace.weights if trace else None)
    looked = by_word(positions_read(trace) if trace and thresholds else None)
    return {
        "source_words": source_places(pipeline.source, text),
        "target_words": target,
        "weights": shares(weights) if weights.size else [None] * len(target),
        "skipped": left_out(looked) if looked.size else [None] * len(target),
        "confidences": _confidences(pipeline.target, best, len(target)),
        "positions": len(pipeline.source.encode(text)),
    }


def _confidences(side: SidePipeline, best: Translation, count: int) -> list[float | None]:
    """Return the score of each target word, the mean of those of its tokens; None without."""
    if not best.word_scores:
        return [None] * count
    tokens: list[list[float]] = [[] for _ in range(count)]
    numbers = side.tokenizer.word_numbers(best.words)
    for number, score in zip(numbers, best.word_scores, strict=True):
        tokens[number].append(score)
    return [round(sum(own) / len(own), DIGITS) for own in tokens]


def shares(weights: Numbers) -> list[list[float] | None]:
    """Return the weights of each target word over the source words, with a sum of 1.

    So they are the mean over the tokens of the target word of what these looked at: sums over the
    tokens differ from means by a factor.

    Args:
        weights: Sums over tokens [target words, source words].

    Returns:
        For each target word a number for each source word; None if it looked at nothing, as where
        a scan has passed the end of the source.
    """
    return [
        None if total <= 0 else np.round(row / total, DIGITS).tolist()
        for row, total in zip(weights, weights.sum(1), strict=True)
    ]


def positions_read(trace: SentenceTrace) -> Numbers | None:
    """Return 1 for each source position that a step read, and 0 for others: [T, S], or None.

    Of several heads it is what any of them read; their mean has no window, but a weight of exactly
    0 where none of them looked.
    """
    if trace.weights is None:
        return None
    if trace.window_start is None or trace.window_stop is None:
        return (trace.weights != 0).astype(float)
    places = np.arange(trace.weights.shape[1])
    start, stop = trace.window_start[:, None], trace.window_stop[:, None]
    return ((start <= places) & (places < stop)).astype(float)


def left_out(looked: Numbers) -> list[list[bool]]:
    """Return whether no step of a target word read any position of a source word.

    Args:
        looked: Sums of ``positions_read`` over tokens [target words, source words].
    """
    return (looked == 0).tolist()
