"""Alignments as terminal text: each target word with the source word it attends to most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from nmtflex.text.visible import visible

if TYPE_CHECKING:
    from nmtflex.decoding.alignment import Alignment

COLOURS = ("cyan", "yellow", "magenta", "green", "blue", "red")  # from the terminal's theme


def alignment_text(index: int, alignment: Alignment) -> Text:
    """Return two lines: the source, and the target with the source word of each target word.

    Aligned words share a colour. The source words are also written out, so the text is complete
    without colours.

    Args:
        index: Index of the sentence, from 0.
        alignment: Alignment of its best translation.
    """
    seen = sorted(set(alignment.attended))
    style = {place: COLOURS[number % len(COLOURS)] for number, place in enumerate(seen)}
    text = Text(f"{index} source:")
    for place, word in enumerate(alignment.source):
        text.append(" ").append(visible(word), style.get(place))
    text.append(f"\n{index} target:")
    for word, place in zip(alignment.target, alignment.attended, strict=True):
        read = f"{visible(word)}←{visible(alignment.source[place])}"
        text.append(" ").append(read, style[place])
    return text
