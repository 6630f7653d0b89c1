"""Runs by source length: BLEU, and the seconds of decoding."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nmtflex.decoding.ensemble import Ids
from nmtflex.decoding.translator import WARM_UP, Translator
from nmtflex.errors import DataError
from nmtflex.evaluation.run_scores import run_bleu
from nmtflex.figures.style import canvas, head, inches, legend, legend_label, line_style, look
from nmtflex.scoring.buckets import Bucket, score_by_length

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Buckets = Sequence[Bucket[float]]


def bleu_by_length(
    translator: Translator, sources: Sequence[str], references: Sequence[str], edges: Sequence[int]
) -> list[Bucket[float]]:
    """Translate raw lines and score each range of source lengths, in words before BPE.

    Raises:
        DataError: No source has words.
    """
    target = translator.pipeline.target
    lengths = _lengths(translator, sources)
    found = translator.n_best([sources[place] for place in lengths], 1)
    return score_by_length(
        lambda words, wanted: run_bleu(target, words, wanted).value,
        list(lengths.values()),
        [best.words for (best,) in found],
        [references[place] for place in lengths],
        edges=edges,
    )


def seconds_by_length(
    translator: Translator, sources: Sequence[str], edges: Sequence[int], repeats: int
) -> list[Bucket[float]]:
    """Time the search for each range of source lengths; scores are seconds a sentence.

    Tokenisation is not timed; each range is decoded ``repeats`` times, and the median counts
    (Britz, Guan and Luong averaged ten).

    Raises:
        DataError: No source has words.
    """
    lengths = _lengths(translator, sources)
    ids = [translator.pipeline.source.encode(sources[place]) for place in lengths]
    translator.translate_ids(ids[:WARM_UP], count=1)

    def clock(sentences: Sequence[Ids]) -> float:
        measured = []
        for _ in range(repeats):
            begin = time.perf_counter()
            translator.translate_ids(sentences, count=1)
            measured.append(time.perf_counter() - begin)
        return statistics.median(measured) / len(sentences)

    return score_by_length(clock, list(lengths.values()), ids, edges=edges)


def _lengths(translator: Translator, sources: Sequence[str]) -> dict[int, int]:
    """Return the number of words of each non-empty source, by its place.

    Raises:
        DataError: All sources are empty.
    """
    counts = [len(translator.pipeline.source.words(line)) for line in sources]
    found = {place: count for place, count in enumerate(counts) if count}
    if not found:
        raise DataError("no sentence of the split has words")
    return found


@look()
def by_length(
    runs: Sequence[tuple[str, Buckets]], title: str, axis: str, caption: str, factor: float = 1.0
) -> Figure:
    """Draw one line a run over the lengths that any of them has.

    Args:
        runs: The buckets of each run, with its name; all with the same edges.
        title: Title of the figure.
        axis: Quantity and unit of the y axis.
        caption: Run, split and settings.
        factor: Converts the buckets' unit to the axis's.
    """
    several = list(zip(*(buckets for _, buckets in runs), strict=True))
    shown = [place for place, alike in enumerate(several) if any(one.sentences for one in alike)]
    places = [f"{several[place][0].label}\nn = {_count(several[place])}" for place in shown]
    lines = [line for place in places for line in place.split("\n")]
    figure = canvas(max(4.5, 1 + len(shown) * max(0.7, 0.1 + max(map(inches, lines)))), 4.0)
    axes = figure.subplots()
    for number, (name, buckets) in enumerate(runs):
        values = [buckets[place].score for place in shown]
        heights = [float("nan") if value is None else value * factor for value in values]
        axes.plot(range(len(shown)), heights, **line_style(number), label=legend_label(name))
    axes.set_xticks(range(len(shown)), places)
    axes.set_xlabel("length of the source (words), and sentences n")
    axes.set_ylabel(axis)
    axes.set_ylim(bottom=0)
    axes.margins(x=0.08)
    axes.grid(alpha=0.3)
    if len(runs) > 1:
        legend(figure, [axes])
    head(figure, title, caption)
    return figure


def _count(alike: Sequence[Bucket[float]]) -> str:
    """Return the sentences of a length: minimum and maximum if the runs' data differ."""
    counts = sorted({bucket.sentences for bucket in alike})
    return f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
