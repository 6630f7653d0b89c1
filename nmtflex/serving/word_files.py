"""Word files: each paragraph is translated as HTML, and its runs go where their words go."""

from __future__ import annotations

import asyncio
import html
import io
import zipfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from nmtflex.markup.parsing import Node, parse
from nmtflex.serving.fields import Refused

LARGEST = 200_000_000  # bytes of what is packed in a file
WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
PARAGRAPH, RUN, LINK = f"{WORD}p", f"{WORD}r", f"{WORD}hyperlink"
TEXT, LOOKS, PARAGRAPH_LOOKS = f"{WORD}t", f"{WORD}rPr", f"{WORD}pPr"
SPACE = "{http://www.w3.org/XML/1998/namespace}space"

Element = Any  # of lxml


async def translate_word(
    data: bytes, translate: Callable[[Sequence[str]], Awaitable[Sequence[str]]]
) -> bytes:
    """Translate a Word file.

    Args:
        data: The file.
        translate: Translates fragments of HTML.

    Raises:
        Refused: The file is damaged, or unpacks to too much.
    """
    document, paragraphs, texts = await asyncio.to_thread(_taken_apart, data)
    found = await translate(texts)
    return await asyncio.to_thread(_put_together, document, paragraphs, found)


def _taken_apart(data: bytes) -> tuple[Any, list[Element], list[str]]:
    """Return a document, its paragraphs, and these as HTML."""
    document = _open(data)
    paragraphs = [part for root in _roots(document) for part in root.iter(PARAGRAPH)]
    for paragraph in paragraphs:
        _merge_runs(paragraph)
    return document, paragraphs, list(map(_as_html, paragraphs))


def _put_together(document: Any, paragraphs: Sequence[Element], found: Sequence[str]) -> bytes:
    """Return the file with the translations of its paragraphs."""
    for paragraph, text in zip(paragraphs, found, strict=True):
        _rebuild(paragraph, parse(text))
    written = io.BytesIO()
    document.save(written)
    return written.getvalue()


def _open(data: bytes) -> Any:
    import docx

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            size = sum(one.file_size for one in packed.infolist())
        if size <= LARGEST:
            return docx.Document(io.BytesIO(data))
    except Exception as error:  # the libraries have no error of their own for damaged files
        raise Refused(400, "Invalid request: the file is damaged") from error
    raise Refused(400, f"Invalid request: the file unpacks to more than {LARGEST} bytes")


def _roots(document: Any) -> Iterator[Element]:
    """Yield the body, and the headers and footers that are there."""
    yield document.element.body
    for section in document.sections:
        for part in (section.header, section.footer):
            if not part.is_linked_to_previous:
                yield part._element


def _merge_runs(paragraph: Element) -> None:
    """Join neighbouring runs of text that look the same: Word splits them within words."""
    before = None
    for child in list(paragraph):
        if before is not None and _is_text(child) and _looks(child) == _looks(before):
            _write(before, _read(before) + _read(child))
            paragraph.remove(child)
        else:
            before = child if _is_text(child) else None


def _is_text(element: Element) -> bool:
    """Whether an element is a run with nothing but text."""
    return element.tag == RUN and all(part.tag in (TEXT, LOOKS) for part in element)


def _looks(run: Element) -> bytes:
    from lxml import etree

    looks = run.find(LOOKS)
    return b"" if looks is None else bytes(etree.tostring(looks, method="c14n"))


def _read(element: Element) -> str:
    return "".join(part.text or "" for part in element.iter(TEXT))


def _write(element: Element, text: str) -> None:
    """Give an element one text; others in it go."""
    first, *others = element.iter(TEXT)
    first.text = text
    first.set(SPACE, "preserve")
    for other in others:
        other.getparent().remove(other)


def _as_html(paragraph: Element) -> str:
    """Return a paragraph as HTML: a span for each text, an image for all else, by number."""
    pieces = []
    for number, child in enumerate(paragraph):
        if child.tag == PARAGRAPH_LOOKS:
            continue
        if (_is_text(child) or child.tag == LINK) and _read(child):
            pieces.append(f'<span id="{number}">{html.escape(_read(child))}</span>')
        else:
            pieces.append(f'<img id="{number}">')
    return "".join(pieces)


def _rebuild(paragraph: Element, root: Node) -> None:
    """Put the elements of a paragraph where its translation has them."""
    old = list(paragraph)
    placed: list[tuple[Element, str]] = []
    lead = ""  # text before any element that can hold it
    for node in root.children:
        text = _text_of(node)
        if node.name in ("span", "img"):
            placed.append((old[int(node.attributes["id"])], text))
        elif holders := [at for at, (one, _) in enumerate(placed) if _holds(one)]:
            element, before = placed[holders[-1]]
            placed[holders[-1]] = element, before + text
        else:
            lead += text
    for element, _ in placed:
        paragraph.remove(element)
    for element, text in placed:
        if _holds(element):
            _write(element, lead + text)
            lead = ""
        paragraph.append(element)


def _holds(element: Element) -> bool:
    """Whether the text of an element was translated."""
    return (_is_text(element) or element.tag == LINK) and next(element.iter(TEXT), None) is not None


def _text_of(node: Node) -> str:
    return node.text if node.text is not None else "".join(map(_text_of, node.children))
