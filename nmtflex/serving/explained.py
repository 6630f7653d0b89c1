"""Explanations of sentences, put together to that of a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nmtflex.serving.splitting import SplitText, TextSplitter, has_words

Span = Sequence[int]  # start and end, in characters


def explained_units(
    splitter: TextSplitter, split: SplitText, answers: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return an ``ExplainedUnit`` for each unit of a text that has words, as a dictionary.

    Args:
        splitter: Took the text apart.
        split: The text.
        answers: Those of a worker, about the units that have words.
    """
    left = iter(answers)
    found = [next(left) if has_words(unit) else None for unit in split.units]
    texts = [
        answer["texts"][0] if answer else unit
        for unit, answer in zip(split.units, found, strict=True)
    ]
    places = splitter.places(split, texts)
    return [
        _explained(unit, text, place, answer["explanation"])
        for unit, text, place, answer in zip(split.units, texts, places, found, strict=True)
        if answer
    ]


def _explained(
    unit: str, text: str, place: tuple[int, int], about: dict[str, Any]
) -> dict[str, Any]:
    """Return the explanation of a unit, with places in the whole text and its translation."""
    source, target = place
    words = zip(
        about["target_words"], about["weights"], about["skipped"], about["confidences"], strict=True
    )
    begin = target - (len(text) - len(text.lstrip()))  # units are joined without their space
    return {
        "source": [source, source + len(unit)],
        "target": [target, target + len(text.strip())],
        "sourceWords": _moved(about["source_words"], source),
        "targetWords": [
            {
                "span": [begin + span[0], begin + span[1]],
                "weights": weights,
                "skipped": skipped,
                "confidence": confidence,
            }
            for span, weights, skipped, confidence in words
            if span
        ],
        "cps": about["cps"],
        "positions": about["positions"],
        "milliseconds": about["milliseconds"],
    }


def _moved(spans: Sequence[Span | None], by: int) -> list[list[int]]:
    """Return spans that begin later; a word that was not found is an empty one after another."""
    moved: list[list[int]] = []
    for span in spans:
        end = moved[-1][1] if moved else by
        moved.append([by + span[0], by + span[1]] if span else [end, end])
    return moved
