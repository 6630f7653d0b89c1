"""Text shown to a person, in a terminal or a figure."""

from __future__ import annotations

import unicodedata


def visible(text: str) -> str:
    """Return a text with U+FFFD for control and invalid characters: escape, DEL, U+FFFF.

    A terminal would obey a control character, and SVG cannot contain one.
    """
    if text.isprintable():
        return text
    return "".join(
        "\ufffd" if unicodedata.category(character) in ("Cc", "Cn", "Cs") else character
        for character in text
    )


def counted(count: int, noun: str, nouns: str = "") -> str:
    """Return a count with its noun: "1 line", "2 lines".

    Args:
        count: How many.
        noun: The singular.
        nouns: The plural, unless it is the noun with an s.
    """
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"
