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
from nmtflex.serving.fields import Refused
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
    gated: bool = False  # whether it has flexible attention, which takes a threshold
    tau: float | None = None  # that threshold, if one was given
    scored: bool = False  # whether it has been calibrated to score words


class Wanted(NamedTuple):
    """What a request wants besides translations."""

    alternatives: int = 0  # other translations of each text, at most
    terms: tuple[tuple[str, str], ...] = ()  # that must come out as given
    confidence: bool = False


class Translated(NamedTuple):
    """The translation of a text.

    ``confidence`` is the expected share of right words, and ``unaligned`` that of words that come
    from nothing in the source; None where they are not known.
    """

    text: str
    alternatives: list[str]  # better ones first
    confidence: float | None = None
    unaligned: float | None = None


SHORT = 300  # characters, which are split in ten milliseconds at worst
NOTHING = Wanted()


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

    def check(self, wanted: Wanted, ways: Sequence[Sequence[int]]) -> None:
        """Check that models can give what is wanted.

        Raises:
            Refused: They cannot.
        """
        if wanted.terms and any(len(way) > 1 for way in ways):
            raise Refused(400, "Invalid request: glossary needs a run from source to target")
        last = {way[-1] for way in ways if way}
        if wanted.confidence and not all(self.models[model].scored for model in last):
            raise Refused(400, "Invalid request: confidence needs a run of nmtflex calibrate")

    async def translate(
        self, texts: Sequence[str], ways: Sequence[Sequence[int]], wanted: Wanted = NOTHING
    ) -> list[Translated]:
        """Translate texts.

        Args:
            texts: Of any length.
            ways: For each text the models that lead to the target, in order.
            wanted: What else is wanted.

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
            group = await self._along(way, [texts[place] for place in places], wanted)
            found |= zip(places, group, strict=True)
        return [found[place] for place in range(len(texts))]

    async def translate_html(
        self, pages: Sequence[str], ways: Sequence[Sequence[int]], wanted: Wanted = NOTHING
    ) -> list[Translated]:
        """Translate HTML; tags go where their words go. There are no alternatives.

        Args:
            pages: Pages, or fragments of them.
            ways: As for ``translate``.
            wanted: What else is wanted.

        Raises:
            Busy, Lost, Faulty: As ``translate``.
        """
        each = zip(pages, ways, strict=True)
        return await asyncio.gather(*(self._page_along(way, html, wanted) for html, way in each))

    async def _page_along(self, way: Sequence[int], html: str, wanted: Wanted) -> Translated:
        """Translate HTML through one model after another."""
        found = Translated(html, [])
        for model in way:
            splitter = self.models[model].splitter.sentences
            document = await asyncio.to_thread(HtmlUnits, found.text, splitter)
            own = wanted._replace(alternatives=0) if model == way[-1] else NOTHING
            work = Work(model, _options(own, links=True))
            answers = await self.dispatcher.translate(work, _with_words(document.units))
            left = iter(answers)
            linked = [
                _linked(next(left)) if has_words(unit) else (unit, []) for unit in document.units
            ]
            html = await asyncio.to_thread(document.join, linked)
            found = Translated(html, [], *_trust(answers))
        return found

    async def _along(
        self, way: Sequence[int], texts: Sequence[str], wanted: Wanted
    ) -> list[Translated]:
        """Translate texts through one model after another."""
        found = [Translated(text, []) for text in texts]
        for model in way:
            own = wanted if model == way[-1] else NOTHING
            found = await self._through(model, [one.text for one in found], own)
        return found

    async def _through(self, number: int, texts: Sequence[str], wanted: Wanted) -> list[Translated]:
        """Translate texts with one model."""
        splitter = self.models[number].splitter
        split = [await _split(splitter, text) for text in texts]
        units = [unit for text in split for unit in text.units]
        work = Work(number, _options(wanted))
        answers = iter(await self.dispatcher.translate(work, _with_words(units)))
        return [_joined(splitter, text, answers, wanted.alternatives) for text in split]

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
            return (await self._along(way, [text], Wanted(alternatives)))[0], []
        model = self.models[way[0]]
        split = await _split(model.splitter, text)
        about = {"thresholds": model.gated, "scored": model.scored, "tau": tau}
        options = {"explain": True, **about}
        work = Work(way[0], (*_options(Wanted(alternatives)), *options.items()))
        answers = await self.dispatcher.translate(work, _with_words(split.units))
        translated = _joined(model.splitter, split, iter(answers), alternatives)
        return translated, explained_units(model.splitter, split, answers)


def _options(wanted: Wanted, *, links: bool = False) -> tuple[tuple[str, Any], ...]:
    """Return the options of ``translate.translate_units``, for a sentence's batch."""
    return (
        ("n_best", 1 + wanted.alternatives),
        ("links", links),
        ("terms", wanted.terms),
        ("word_scores", wanted.confidence),
    )


def _trust(answers: Sequence[dict[str, Any]]) -> tuple[float | None, float | None]:
    """Return confidence and unaligned share of sentences together: their means over words."""
    return _mean(answers, "confidence"), _mean(answers, "unaligned")


def _mean(answers: Sequence[dict[str, Any]], name: str) -> float | None:
    known = [(answer[name], answer["words"]) for answer in answers if answer[name] is not None]
    words = sum(count for _, count in known)
    return round(sum(value * count for value, count in known) / words, 4) if words else None


def _with_words(units: Sequence[str]) -> list[str]:
    return [unit for unit in units if has_words(unit)]


def _linked(answer: dict[str, Any]) -> Linked:
    """Return the translation of a unit, and the links from it."""
    return answer["texts"][0], answer["links"]


async def _split(splitter: TextSplitter, text: str) -> SplitText:
    """Split a text, in a thread of its own if that takes long."""
    if len(text) <= SHORT:
        return splitter.split(text)
    return await asyncio.to_thread(splitter.split, text)


def _joined(
    splitter: TextSplitter, text: SplitText, answers: Iterator[Any], alternatives: int
) -> Translated:
    """Put a text together, of the answers about those of its units that have words."""
    choices: list[list[tuple[str, float]]] = []
    own = []
    for unit in text.units:
        if has_words(unit):
            own.append(answer := next(answers))
            choices.append(list(zip(answer["texts"], answer["scores"], strict=True)))
        else:
            choices.append([(unit, 0.0)])
    # Some of them may be the same text.
    best = combinations(choices, 1 + SPARE * alternatives)
    texts = dict.fromkeys(splitter.join(text, chosen) for chosen in best)
    first, *others = islice(texts, 1 + alternatives)
    return Translated(first, others, *_trust(own))


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
