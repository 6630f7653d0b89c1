"""Which part of a raw line each subword comes from."""

from __future__ import annotations

from collections.abc import Sequence

from nmtflex.text.subwords import Subwords
from nmtflex.text.tokenizers import Tokenizer

LOOKAHEAD = 16  # characters searched where a tokenizer dropped or changed some


def spans_of(
    line: str, words: Sequence[str], tokenizer: Tokenizer, subwords: Subwords | None
) -> list[tuple[int, int]]:
    """Return [start, end) in the raw line, in characters, for each subword of the words."""
    text, places = tokenizer.align(line)
    spans = _spans_in(text, words, tokenizer, subwords)
    return spans if places is None else raw_spans(spans, places, len(line))


def raw_spans(
    spans: Sequence[tuple[int, int]], places: Sequence[tuple[int, int]], length: int
) -> list[tuple[int, int]]:
    """Return where spans of a normalised line stand in the raw one.

    Args:
        spans: In the normalised line.
        places: Where each of its characters comes from; see ``Tokenizer.align``.
        length: Of the raw line.
    """
    starts = [*(start for start, _ in places), length]
    ends = [0, *(end for _, end in places)]
    return [(starts[start], max(starts[start], ends[end])) for start, end in spans]


def _spans_in(
    line: str, words: Sequence[str], tokenizer: Tokenizer, subwords: Subwords | None
) -> list[tuple[int, int]]:
    """Return [start, end) in the text that was split into the words."""
    spans, cursor = [], 0
    for word in words:
        raw, owners = tokenizer.surface(word)
        places = []
        for character in raw:
            start = _find(line, character, cursor)
            cursor = min(start + 1, len(line))
            places.append((start, cursor))
        characters = [places[owner] for owner in owners]
        if subwords is None:
            spans.append((characters[0][0] if characters else cursor, cursor))
            continue
        for start, end in subwords.bounds(word):
            first = characters[start][0]
            spans.append((first, characters[end - 1][1] if end > start else first))
    return spans


def _find(line: str, character: str, cursor: int) -> int:
    """Return the place of a token's next character, or the cursor's if it is not near."""
    while cursor < len(line) and line[cursor] != character and line[cursor].isspace():
        cursor += 1
    found = line.find(character, cursor, cursor + LOOKAHEAD)
    return cursor if found < 0 else found
