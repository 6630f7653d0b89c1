"""Files of text that the server translates, by the suffix of their names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, NamedTuple

from nmtflex.serving.fields import Refused
from nmtflex.serving.word_files import translate_word

Translate = Callable[[Sequence[str]], Awaitable[Sequence[str]]]


class Format(NamedTuple):
    """A format of files.

    ``translate`` takes a file's bytes, and a function that translates texts, or fragments of HTML.
    """

    kind: str  # media type
    html: bool  # what is translated
    translate: Callable[[bytes, Translate], Coroutine[Any, Any, bytes]]


async def _whole(data: bytes, translate: Translate) -> bytes:
    """Translate a text file, in UTF-8 or UTF-16 with a mark of it."""
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        raise Refused(400, "Invalid request: the file is not UTF-8 text") from None
    (found,) = await translate([text])
    return found.encode()


_PAGE = Format("text/html; charset=utf-8", True, _whole)
FORMATS = {
    ".txt": Format("text/plain; charset=utf-8", False, _whole),
    ".md": Format("text/markdown; charset=utf-8", False, _whole),
    ".html": _PAGE,
    ".htm": _PAGE,
    ".docx": Format(
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        True,
        translate_word,
    ),
}
