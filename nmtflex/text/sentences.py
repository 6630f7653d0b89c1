"""Sentences in running text, and the white space that is usual between them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

BLOCK = 1 << 12  # characters searched at once: the library's time grows with their square
_ODD = re.compile(r"[^\S ]|[\ud800-\udfff]")  # white space but " ", and halves of characters
_HANGUL = "HANGUL"  # wide characters of a script with spaces


def sentences(text: str, language: str) -> Iterator[str]:
    """Yield the sentences of a text; joined, they are the text.

    White space after a sentence belongs to it. The rules are those of sentencex, which has lists of
    abbreviations for many languages and reads others like English.

    Args:
        text: A line, or several.
        language: Its code, such as en or de_AT.
    """
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


def usual_space(text: str) -> str:
    """Return the white space that usually follows a sentence: nothing after full-width characters.

    Text that has a space before its last character, as tokenized Japanese has, is followed by one.
    """
    if not text or unicodedata.east_asian_width(text[-1]) not in ("W", "F"):
        return " "
    if text[-2:-1].isspace() or unicodedata.name(text[-1], "").startswith(_HANGUL):
        return " "
    return ""
