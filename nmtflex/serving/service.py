"""Translating texts of any length: taken apart, sent through one model or several, put together."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from nmtflex.markup.document import Linked
from nmtflex.markup.units import HtmlUnits
from nmtflex.serving.explained import explained_units
from nmtflex.serving.languages import Languages, Pair
from nmtflex.serving.queueing import Dispatcher, Work
from nmtflex.serving.splitting import SplitText, TextSplitter, has_words

SPARE = 3  # combinations for each alternative


@dataclass(frozen=True)
class Model:
    """A run, or an ensemble of runs, that the server translates with."""

    runs: Sequence[Path]
    pair: Pair
    splitter: TextSplitter
    aligned: bool = False  # whether it has weights over source positions
    gated: bool = False  # whether it has flexible attention, which takes a threshold
    tau: float | None = None  # that threshold, if one was given


class Translated(NamedTuple):
    """The translation of a text, and others, better ones first."""

    text: str
    alternatives: list[str]


class Service:
    """Translates texts with the models of a server.

    Args:
        models: In the order in which the workers have them.
        dispatcher: Gives sentences to the workers.
    """

    def __init__(self, models: Sequence[Model], dispatcher: Dispatcher) -> None:
        self.models = models
        self.languages = Languages([model.pair for model in models])
        self.dispatcher = dispatcher

    async def translate(
        self, texts: Sequence[str], ways: Sequence[Sequence[int]], alternatives: int = 0
    ) -> list[Translated]:
        """Translate texts.

        Args:
            texts: Of any length.
            ways: For each text the models that lead to the target, in order.
            alternatives: Other translations of each text, at most.

        Raises:
            Busy: Too many sentences wait.
            Lost: Worker processes ended, again and again.
            Faulty: A worker could not translate.
        """
        alike: dict[tuple[int, ...], list[int]] = {}
        for place, way in enumerate(ways):
            alike.setdefault(tuple(way), []).append(place)
        found = dict[int, Translated]()
        for way, places in alike.items():
            group = await self._along(way, [texts[place] for place in places], alternatives)
            found |= zip(places, group, strict=True)
        return [found[place] for place in range(len(texts))]

    async def translate_html(
        self, pages: Sequence[str], ways: Sequence[Sequence[int]]
    ) -> list[Translated]:
        """Translate HTML; tags go where their words go. There are no alternatives.

        Args:
            pages: Pages, or fragments of them.
            ways: As for ``translate``.

        Raises:
            Busy, Lost, Faulty: As ``translate``.
        """
        found = map(self._page_along, ways, pages)
        return [Translated(html, []) for html in await asyncio.gather(*found)]

    async def _page_along(self, way: Sequence[int], html: str) -> str:
        """Translate HTML through one model after another."""
        for model in way:
            splitter = self.models[model].splitter.sentences
            document = await asyncio.to_thread(HtmlUnits, html, splitter)
            work = Work(model, _options(links=True))
            found = iter(await self.dispatcher.translate(work, _with_words(document.units)))
            linked = [
                _linked(next(found)) if has_words(unit) else (unit, []) for unit in document.units
            ]
            html = await asyncio.to_thread(document.join, linked)
        return html

    async def _along(
        self, way: Sequence[int], texts: Sequence[str], alternatives: int
    ) -> list[Translated]:
        """Translate texts through one model after another."""
        found = [Translated(text, []) for text in texts]
        for model in way:
            others = alternatives if model == way[-1] else 0
            found = await self._through(model, [one.text for one in found], others)
        return found

    async def _through(
        self, number: int, texts: Sequence[str], alternatives: int
    ) -> list[Translated]:
        """Translate texts with one model."""
        splitter = self.models[number].splitter
        split = [splitter.split(text) for text in texts]
        units = [unit for text in split for unit in text.units]
        work = Work(number, _options(alternatives))
        answers = iter(await self.dispatcher.translate(work, _with_words(units)))
        return [_joined(splitter, text, answers, alternatives) for text in split]

    async def explain(
        self, text: str, way: Sequence[int], alternatives: int, tau: float | None
    ) -> tuple[Translated, list[dict[str, Any]]]:
        """Translate a text, and say where its words come from.

        Args:
            text: Of any length; its sentences are translated one by one.
            way: The models that lead to the target; of several, nothing is explained.
            alternatives: Other translations, at most.
            tau: Threshold in place of the model's, or None.

        Returns:
            The translation, and for each sentence an ``ExplainedUnit`` as a dictionary.

        Raises:
            Busy: Too many sentences wait.
            Lost: Worker processes ended, again and again.
            Faulty: A worker could not translate.
        """
        if len(way) != 1:
            return (await self._along(way, [text], alternatives))[0], []
        model = self.models[way[0]]
        split = model.splitter.split(text)
        options = {"explain": True, "thresholds": model.gated, "tau": tau}
        work = Work(way[0], (*_options(alternatives), *options.items()))
        answers = await self.dispatcher.translate(work, _with_words(split.units))
        translated = _joined(model.splitter, split, iter(answers), alternatives)
        return translated, explained_units(model.splitter, split, answers)


def _options(alternatives: int = 0, *, links: bool = False) -> tuple[tuple[str, Any], ...]:
    """Return the options of ``translate.translate_units``, for a sentence's batch."""
    return (("n_best", 1 + alternatives), ("links", links))


def _with_words(units: Sequence[str]) -> list[str]:
    return [unit for unit in units if has_words(unit)]


def _linked(answer: dict[str, Any]) -> Linked:
    """Return the translation of a unit, and the links from it."""
    return answer["texts"][0], answer["links"]


def _joined(
    splitter: TextSplitter, text: SplitText, answers: Iterator[Any], alternatives: int
) -> Translated:
    """Put a text together, of the answers about those of its units that have words."""
    choices: list[list[tuple[str, float]]] = []
    for unit in text.units:
        if has_words(unit):
            answer = next(answers)
            choices.append(list(zip(answer["texts"], answer["scores"], strict=True)))
        else:
            choices.append([(unit, 0.0)])
    # Some of them may be the same text.
    best = combinations(choices, 1 + SPARE * alternatives)
    texts = dict.fromkeys(splitter.join(text, chosen) for chosen in best)
    first, *others = islice(texts, 1 + alternatives)
    return Translated(first, others)


def combinations(choices: Sequence[Sequence[tuple[str, float]]], most: int) -> Iterator[list[str]]:
    """Yield the ``most`` best ways to take one text of each list, by the sum of their scores.

    Args:
        choices: For each place texts with their scores, the best first.
        most: How many to yield, if there are so many.
    """
    # As many places, those that lose the least by their second text, are enough to change.
    open_places = (place for place, choice in enumerate(choices) if len(choice) > 1)
    changed = heapq.nsmallest(most, open_places, key=lambda x: choices[x][0][1] - choices[x][1][1])
    losses = [[choices[place][0][1] - score for _, score in choices[place]] for place in changed]
    first = (0,) * len(changed)
    open_ends, seen = [(0.0, first)], {first}
    for _ in range(most):
        if not open_ends:
            return
        _, taken = heapq.heappop(open_ends)
        texts = [choice[0][0] for choice in choices]
        for place, number in zip(changed, taken, strict=True):
            texts[place] = choices[place][number][0]
        yield texts
        for place, number in enumerate(taken):
            after = (*taken[:place], number + 1, *taken[place + 1 :])
            if number + 1 < len(losses[place]) and after not in seen:
                seen.add(after)
                loss = sum(own[number] for own, number in zip(losses, after, strict=True))
                heapq.heappush(open_ends, (loss, after))
