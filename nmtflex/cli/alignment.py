"""An alignment as text for a terminal: each target word beside the source word it looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from nmtflex.text.visible import visible

if TYPE_CHECKING:
    from nmtflex.decoding.alignment import Alignment

COLOURS = ("cyan", "yellow", "magenta", "green", "blue", "red")  # as the terminal's theme has them


def alignment_text(index: int, alignment: Alignment) -> Text:
    """Return two lines: the source, and the target with the words it was read from.

    A source word and what was read from it have one colour; the words themselves are written out,
    so nothing is lost without colours.

    Args:
        index: Of the sentence, from 0.
        alignment: Of its best translation.
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
