"""The markup of a passage around its translation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nmtflex.markup.passages import ROOT, Passage, Pieces
from nmtflex.markup.placing import Link, Span, place
from nmtflex.markup.proportion import by_position
from nmtflex.markup.tags import write_text
from nmtflex.text.sentences import usual_space


def render(passage: Passage, text: str, links: Sequence[Link]) -> Pieces:
    """Return a passage with its translation.

    Args:
        passage: The source.
        text: The translation.
        links: Of words; without any, words are linked by their position.

    Raises:
        ValueError: A link is outside of its text.
    """
    target = text.strip()
    known = _checked(passage, text, links) or by_position(passage.text, target)
    spans = place(passage, target, known)
    return [passage.lead, *_written(passage, target, spans), passage.tail]


def _checked(passage: Passage, text: str, links: Sequence[Link]) -> list[Link]:
    """Return links in target order, each of other words, for a text without space at its ends.

    Raises:
        ValueError: A link is outside of its text.
    """
    lead, length = len(text) - len(text.lstrip()), len(text.strip())
    found: list[Link] = []
    last = 0
    for source, target in sorted(links, key=lambda link: link[1]):
        for (start, end), size in ((source, len(passage.text)), (target, len(text))):
            if not 0 <= start <= end <= size:
                raise ValueError(f"the span {start}-{end} is outside of a text of {size}")
        start, end = max(last, target[0] - lead), min(length, target[1] - lead)
        if start < end:
            last = end
            found.append(((source[0], source[1]), (start, end)))
    return found


def _written(passage: Passage, target: str, spans: Sequence[Span]) -> Iterator[str | int]:
    """Yield a translation with its marks, whose spans are nested."""
    order = sorted(range(len(spans)), key=lambda number: (*spans[number], number))
    children: dict[int, list[int]] = {}
    for number in order:
        children.setdefault(passage.marks[number].parent, []).append(number)
    stack: list[tuple[int, Iterator[int]]] = [(ROOT, iter(children.get(ROOT, [])))]
    done = 0
    while stack:
        parent, left = stack[-1]
        number = next(left, ROOT)
        if number == ROOT:
            end = len(target) if parent == ROOT else spans[parent][1]
            yield write_text(target[done:end])
            done = end
            stack.pop()
            if parent != ROOT:
                yield passage.marks[parent].closing
                yield _space_after(passage, target, spans, parent)
            continue
        mark, (start, end) = passage.marks[number], spans[number]
        yield write_text(target[done:start])
        yield _space_before(passage, target, spans, number)
        yield from mark.opening
        done = end if mark.whole else start
        stack.append((number, iter(children.get(number, []))))


def _space_before(passage: Passage, target: str, spans: Sequence[Span], number: int) -> str:
    """Return the space before a mark without words, where the source has one."""
    start, end = spans[number]
    if start < end or not start or not passage.marks[number].spaced[0]:
        return ""
    return "" if target[start - 1].isspace() else usual_space(target[:start])


def _space_after(passage: Passage, target: str, spans: Sequence[Span], number: int) -> str:
    """Return the space behind a mark without words, where the source has one."""
    start, end = spans[number]
    if start < end or end == len(target) or not passage.marks[number].spaced[1]:
        return ""
    return "" if target[end].isspace() else usual_space(target[end])
