"""Links by position, for translations without an alignment."""

from __future__ import annotations

from nmtflex.text.tokenizers import CharTokenizer

Span = tuple[int, int]  # start and end, in characters


def by_position(source: str, target: str) -> list[tuple[Span, Span]]:
    """Link each word of a translation to the source word at the same place in proportion.

    A word stands between white space; a character of a script without white space is a word.
    """
    sources, targets = _words(source), _words(target)
    if not sources:
        return []
    return [
        (sources[(2 * place + 1) * len(sources) // (2 * len(targets))], span)
        for place, span in enumerate(targets)
    ]


def _words(text: str) -> list[Span]:
    found: list[Span] = []
    for place, number in enumerate(CharTokenizer().word_numbers(list(text))):
        if number == len(found):
            found.append((place, place + 1))
        elif number >= 0:
            found[-1] = found[-1][0], place + 1
    return found
