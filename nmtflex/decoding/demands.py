"""What a caller demands of the translation of a line: terms of a glossary, and its beginning."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from nmtflex.decoding.constraints import Constraints
from nmtflex.decoding.ensemble import Ids
from nmtflex.decoding.search import Hypothesis
from nmtflex.decoding.substitution import Region, Wanted, marked, placed, present
from nmtflex.decoding.traces import Numbers
from nmtflex.text.edges import Edges
from nmtflex.text.glossary import Glossary
from nmtflex.text.pipeline import SidePipeline, TextPipeline

Pairs = list[tuple[Ids, Ids]]


class Demand(NamedTuple):
    """What is demanded for one line: its beginning as text and tokens, and terms."""

    prefix: str
    ids: Ids
    terms: Sequence[Wanted]

    def constraints(self, side: SidePipeline, aligned: bool) -> Constraints | None:
        """Return what the search must see to, if anything.

        Args:
            side: The target side.
            aligned: Whether terms are put in later, where attention finds their places.
        """
        terms = [] if aligned else [side.encode(term.text) for term in self.terms]
        terms = [ids for ids in terms if ids]
        return Constraints(self.ids, terms) if self.ids or terms else None


def demands_of(
    pipeline: TextPipeline,
    lines: Sequence[str],
    glossary: Glossary | None,
    prefixes: Sequence[str] | None,
) -> list[Demand | None]:
    """Return what is demanded for each line; None if nothing is.

    Args:
        pipeline: The model's.
        lines: Raw lines.
        glossary: Terms, each of which must come out as often as it stands in the line.
        prefixes: For each line the text that its translation begins with; perhaps empty.

    Raises:
        TypeError: ``prefixes`` is a single string, or does not consist of strings.
        ValueError: There are not as many prefixes as lines.
    """
    starts = [""] * len(lines) if prefixes is None else _checked(prefixes, len(lines))
    found: list[Demand | None] = []
    for line, start in zip(lines, starts, strict=True):
        terms = [] if glossary is None else _wanted(pipeline.source, line, glossary)
        prefix = start.strip()
        ids = pipeline.target.encode(prefix) if prefix else []
        found.append(Demand(prefix, ids, terms) if ids or terms else None)
    return found


def _checked(prefixes: Any, count: int) -> list[str]:
    """Return prefixes as a list.

    Raises:
        TypeError: They are one string, or not strings.
        ValueError: There are not ``count`` of them.
    """
    if isinstance(prefixes, str):
        raise TypeError("prefixes are a list, one for each line, not one string")
    starts = list(prefixes)
    for index, start in enumerate(starts):
        if not isinstance(start, str):
            raise TypeError(
                f"prefixes are of str; prefix {index} (from 0) is of {type(start).__name__}"
            )
    if len(starts) != count:
        raise ValueError(f"there are {len(starts):,} prefixes for {count:,} lines; give one each")
    return starts


def _wanted(side: SidePipeline, line: str, glossary: Glossary) -> list[Wanted]:
    """Return the terms of a line; of a line that is cut, those that are left."""
    occurrences = glossary.find(line)
    if not occurrences:
        return []
    spans = side.spans(line)[: side.longest]
    numbers = side.word_numbers(side.split_words(side.words(line)))
    found = []
    for start, end, target in occurrences:
        inside = [place for place, (a, b) in enumerate(spans) if a < end and start < b]
        if inside:
            words = {numbers[place] for place in inside} - {-1}
            found.append(Wanted(target, inside[0], inside[-1] + 1, len(words)))
    return found


def lacking(
    side: SidePipeline,
    edges: Edges,
    demands: Sequence[Demand | None],
    found: Sequence[Sequence[Hypothesis]],
) -> Iterator[tuple[int, int]]:
    """Yield the line and the rank of each translation that lacks a term."""
    for line, (demand, hypotheses) in enumerate(zip(demands, found, strict=True)):
        for rank, hypothesis in enumerate(hypotheses):
            if demand and None in present(
                side, edges, hypothesis.ids, demand.terms, len(demand.ids)
            ):
                yield line, rank


class Met(NamedTuple):
    """A translation that meets a demand: its text, and what each word of its tokens became."""

    text: str
    filled: list[list[str]]


def met(
    side: SidePipeline,
    edges: Edges,
    ids: Ids,
    demand: Demand,
    weights: Numbers | None,
    filled: list[list[str]],
    join: Callable[[list[list[str]]], str],
    line: str,
) -> Met:
    """Return a translation with the terms and the beginning exactly as they are demanded.

    Args:
        side: The target side.
        edges: Of its words.
        ids: The translation; it begins with the tokens of the demand.
        demand: What is demanded.
        weights: Attention weights, if a term is lacking and the model has some.
        filled: What each word of the tokens becomes otherwise.
        join: Makes a text out of such words.
        line: The raw source.
    """
    fixed = len(demand.ids) if ids[: len(demand.ids)] == demand.ids else 0
    regions = placed(side, edges, ids, demand.terms, weights, fixed)

    def written(regions: list[Region]) -> Met:
        with_marks = marked(side, ids, regions, filled, line)
        return Met(with_marks.unmarked(join(with_marks.filled)), with_marks.words(side))

    result = written(regions)
    if fixed and not result.text.startswith(demand.prefix):  # such as one with an unknown word
        result = written([Region(0, fixed, demand.prefix), *regions])
    return result
