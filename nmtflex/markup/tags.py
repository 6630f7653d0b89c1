"""Tags and texts of HTML, read from a source and written."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

SPACES = "\t\n\f\r "
_NAME = re.compile(r"<([a-zA-Z][^\t\n\f\r />]*)")
_ATTRIBUTE = re.compile(
    r"[\t\n\f\r /]*([^\t\n\f\r />][^\t\n\f\r />=]*)"
    r"(?:[\t\n\f\r ]*=[\t\n\f\r ]*(?:\"([^\"]*)\"|'([^']*)'|([^\t\n\f\r >\"'][^\t\n\f\r >]*)))?"
)
_END = re.compile(r"[\t\n\f\r ]*(/?)>")
_TEXT = re.compile(r"[^<]*(?:<(?![a-zA-Z/!?])[^<]*)*")


# In a value, &copy=1 is no entity.
_ENTITY = re.compile(r"&(?:#\d+;?|#[xX][\da-fA-F]+;?|[a-zA-Z\d]+(?:;|(?![=a-zA-Z\d])))")


class Tag:
    """A start tag as it stands in a source."""

    def __init__(self, source: str, start: int) -> None:
        """Read the tag at a place, if there is one.

        Args:
            source: HTML.
            start: The place of its ``<``.
        """
        self.name = ""
        self.attributes: dict[str, str] = {}
        self.closed = False  # by a slash
        self.end = start
        found = _NAME.match(source, start)
        if found is None:
            return
        place = found.end()
        while (end := _END.match(source, place)) is None:
            one = _ATTRIBUTE.match(source, place)
            if one is None:
                return
            value = next(filter(None, one.group(2, 3, 4)), "")
            value = _ENTITY.sub(lambda entity: read_text(entity[0]), value)
            self.attributes.setdefault(one[1].lower(), value)
            place = one.end()
        self.name, self.closed, self.end = found[1], bool(end[1]), end.end()


def read_text(source: str) -> str:
    """Return the characters that the source of a text means."""
    return html.unescape(source.replace("\r\n", "\n").replace("\r", "\n"))


def text_at(source: str, start: int, characters: str) -> str | None:
    """Return the source of a text that begins at a place; None if it means something else."""
    found = _TEXT.match(source, start)
    return found[0] if found and read_text(found[0]) == characters else None


def write_text(characters: str) -> str:
    """Return the source of a text."""
    found = characters.replace("&", "&amp;").replace("\u00a0", "&nbsp;")
    return found.replace("<", "&lt;").replace(">", "&gt;")


def write_value(characters: str) -> str:
    """Return the source of an attribute's value between double quotes."""
    return characters.replace("&", "&amp;").replace("\u00a0", "&nbsp;").replace('"', "&quot;")


def write_tag(name: str, attributes: Mapping[str, str]) -> str:
    """Return a start tag."""
    values = [f' {key}="{write_value(value)}"' for key, value in attributes.items()]
    return f"<{name}{''.join(values)}>"
