"""Files of text that the server translates, by the suffix of their names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, NamedTuple

from nmtflex.serving.fields import Refused

Translate = Callable[[Sequence[str]], Awaitable[Sequence[str]]]  # texts of any length


class Format(NamedTuple):
    """A format of files.

    ``translate`` takes a file's bytes and a function that translates texts.
    """

    kind: str  # media type
    translate: Callable[[bytes, Translate], Coroutine[Any, Any, bytes]]


async def _plain(data: bytes, translate: Translate) -> bytes:
    """Translate a text file, in UTF-8 or UTF-16 with a mark of it."""
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        raise Refused(400, "Invalid request: the file is not UTF-8 text") from None
    (found,) = await translate([text])
    return found.encode("utf-8")


FORMATS = {
    ".txt": Format("text/plain; charset=utf-8", _plain),
    ".md": Format("text/markdown; charset=utf-8", _plain),
}
