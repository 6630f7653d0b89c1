"""Sentences in running text, and the white space that is usual between them."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from itertools import chain

BLOCK = 1 << 12  # characters searched at once: the library's time grows with their square
_TOKENIZED = re.compile(r"\s[.,](?!\S)")  # punctuation apart from the word before it
_END = re.compile(r"\.|[?!]+")  # a token that ends a sentence; "..." may not
# What a closing token may have been opened by; a straight quotation mark opens and closes.
_OPENING = {
    ")": ["("], "]": ["["], "&#93;": ["&#91;"], "''": ["``"], "”": ["“", "„"], "“": ["„"],
    "»": ["«"], "«": ["»"], '"': ['"'], "&quot;": ["&quot;"],
}  # fmt: skip
_ODD = re.compile(r"[^\S ]|[\ud800-\udfff]")  # white space but " ", and halves of characters
_HANGUL = "HANGUL"  # wide characters of a script with spaces


def sentences(text: str, language: str) -> Iterator[str]:
    """Yield the sentences of a text; joined, they are the text.

    White space after a sentence belongs to it. The rules are those of sentencex, which has lists of
    abbreviations for many languages and reads others like English. It ends no sentence before a
    small letter. In tokenized text, which is often lower-cased, a mark apart from its word does.

    Args:
        text: A line, or several.
        language: Its code, such as en or de_AT.
    """
    found = _running(text, language)
    return chain.from_iterable(map(_tokenized, found)) if _TOKENIZED.search(text) else found


def _running(text: str, language: str) -> Iterator[str]:
    """Yield the sentences of running text."""
    from sentencex import segment

    code = re.split("[-_]", language.lower())[0]
    # A space stands for any of these: the library fails on some.
    plain = _ODD.sub(" ", text)
    start, size = 0, BLOCK
    while start < len(text):
        found = list(segment(code, plain[start : start + size]))
        if start + size < len(text):
            found.pop()  # it may go on
            size = BLOCK if found else 2 * size
        for sentence in found:
            yield text[start : start + len(sentence)]
            start += len(sentence)


def _tokenized(text: str) -> Iterator[str]:
    """Yield the sentences of tokenized text, each with the tokens that close it."""
    start, ended, seen = 0, False, Counter[str]()
    for match in re.finditer(r"\S+", text):
        token = match[0]
        ends = bool(_END.fullmatch(token))
        if ended and not ends and not _closes(token, seen):
            yield text[start : match.start()]
            start, ended = match.start(), False
            seen.clear()
        ended |= ends
        seen[token] += 1
    yield text[start:]


def _closes(token: str, seen: Counter[str]) -> bool:
    """Return whether a token closes what one of its sentence has opened."""
    opening = _OPENING.get(token, [])
    if token in opening:
        return seen[token] % 2 == 1
    return sum(seen[one] for one in opening) > seen[token]


def usual_space(text: str) -> str:
    """Return the white space that usually follows a sentence: nothing after full-width characters.

    Text that has a space before its last character, as tokenized Japanese has, is followed by one.
    """
    if not text or unicodedata.east_asian_width(text[-1]) not in ("W", "F"):
        return " "
    if text[-2:-1].isspace() or unicodedata.name(text[-1], "").startswith(_HANGUL):
        return " "
    return ""
