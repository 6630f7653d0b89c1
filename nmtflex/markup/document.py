"""A page or a fragment of HTML, taken apart into texts and put together with translations."""

from __future__ import annotations

from collections.abc import Sequence

from nmtflex.markup.elements import (
    STRUCTURE,
    TRANSLATED_ATTRIBUTES,
    embedded,
    holders,
    note_mark,
    translates,
    words_in,
)
from nmtflex.markup.parsing import VOID, Node, markup, parse
from nmtflex.markup.passages import Passage, PassageReader, Pieces
from nmtflex.markup.placing import Link
from nmtflex.markup.rendering import render
from nmtflex.markup.tags import write_value

Linked = tuple[str, Sequence[Link]]  # a translation, and links from its text


class HtmlDocument:
    """HTML whose texts are translated while its markup stays.

    ``texts`` are what to translate: headings, paragraphs and cells, each without its tags. A line
    break, ``<br>``, ends a text. Not among them are scripts, ``<code>`` and its like, ``<pre>``,
    what has the attribute ``translate="no"`` or the class ``notranslate``, and texts without a
    letter.

    For an untranslatable element inside a text, such as ``<code>ls -l</code>``, the text has a
    word, so that the model sees a whole sentence; the element replaces the word's translation.

    Args:
        html: A page, or a fragment of one.
        attributes: Whether the attributes alt, title and placeholder are translated too.

    Raises:
        OptionError: justhtml is not installed.
    """

    def __init__(self, html: str, attributes: bool = False) -> None:
        self.texts: list[str] = []
        self._attributes = attributes
        self._passages: dict[int, Passage] = {}  # by the number of their text
        self._pieces: Pieces = []
        root = parse(html)
        if "<plaintext" in html.lower():  # all that follows is its text, and nothing ends it
            self._pieces.append(markup(root))
        else:
            self._walk(root)

    def render(self, translations: Sequence[Linked]) -> str:
        """Return the HTML with translated texts.

        Every tag is kept, once and in its place in the tree. An element goes around the words that
        are linked to its own; see ``place``.

        Args:
            translations: The translation of each of ``texts`` and its links: pairs of a span of the
                text and a span of the translation. Without links, tags go where they stood in
                proportion.

        Raises:
            ValueError: There is another number of them, or a link is outside of its texts.
        """
        if len(translations) != len(self.texts):
            raise ValueError(f"{len(translations)} translations of {len(self.texts)} texts")
        found: list[str] = []
        stack: Pieces = self._pieces[::-1]
        while stack:
            piece = stack.pop()
            if isinstance(piece, str):
                found.append(piece)
            elif piece in self._passages:
                text, links = translations[piece]
                stack += render(self._passages[piece], text, links)[::-1]
            else:
                found.append(write_value(translations[piece][0]))
        return "".join(found)

    def _walk(self, root: Node) -> None:
        """Read the whole tree."""
        self._holders = holders(root)
        side: list[Node] = []  # nodes of one passage
        stack: list[tuple[Node | str | None, bool]] = [(root, True)]
        while stack:
            node, around = stack.pop()
            if isinstance(node, Node) and not self._separates(node, around):
                side.append(node)
                continue
            self._read(side, around)
            side = []
            if node is None:
                continue
            if isinstance(node, str):
                self._pieces.append(node)
                continue
            own = translates(node, around)
            if (not own and id(node) not in self._holders) or embedded(node):
                self._pieces += self._whole(node)
                continue
            self._pieces += self._start_tag(node) if around or own else [node.opening]
            stack += [(node.closing, around), (None, own)]
            stack += [(child, own) for child in reversed(node.children)]

    def _separates(self, node: Node, around: bool) -> bool:
        """Whether a node separates texts; ``around``: whether what is around it is translated."""
        if node.name in STRUCTURE or id(node) in self._holders:
            return True
        return bool(node.name) and not around and translates(node, around)

    def _read(self, nodes: list[Node], translated: bool) -> None:
        """Read the nodes of a passage, and what stands around it."""
        start, end = 0, len(nodes)
        while start < end and not _readable(nodes[start]):
            start += 1
        while end > start and not _readable(nodes[end - 1]):
            end -= 1
        inner = nodes[start:end]
        if not translated or not _speaks(inner):
            start = end = len(nodes)
        for node in nodes[:start]:
            self._pieces += self._whole(node, translated)
        if start < end:
            passage = PassageReader(self._start_tag, self._whole).read(inner)
            number = len(self.texts)
            self.texts.append(passage.text)
            self._passages[number] = passage
            self._pieces.append(number)
        for node in nodes[end:]:
            self._pieces += self._whole(node, translated)

    def _whole(self, node: Node, around: bool = True) -> Pieces:
        """Return a node with all that it contains, of which only attributes are translated."""
        if not self._attributes:
            return [markup(node)]
        found: Pieces = []
        stack: list[tuple[Node | str, bool]] = [(node, around)]
        while stack:
            part, around = stack.pop()
            if isinstance(part, str):
                found.append(part)
                continue
            own = translates(part, around)
            found += self._start_tag(part) if own else [part.opening]
            stack.append((part.closing, own))
            stack += [(child, own) for child in reversed(part.children)]
        return found

    def _start_tag(self, node: Node) -> Pieces:
        """Return a start tag, with numbers for the attributes that are translated."""
        chosen = [
            key
            for key in TRANSLATED_ATTRIBUTES
            if self._attributes and _has_letter(node.attributes.get(key, ""))
        ]
        if not chosen or (node.opening.endswith("/>") and node.name not in VOID):
            return [node.opening]
        found: Pieces = [node.opening[: 1 + len(node.name)]]
        for key, value in node.attributes.items():
            if key in chosen:
                found += [f' {key}="', len(self.texts), '"']
                self.texts.append(" ".join(value.split()))
            else:
                found.append(f' {key}="{write_value(value)}"')
        return [*found, node.opening[node.opening.rindex(">") :]]


def _readable(node: Node) -> bool:
    """Whether a node has characters in its passage."""
    return not note_mark(node) and bool(words_in([node]).strip())


def _has_letter(text: str) -> bool:
    return any(character.isalpha() for character in text)


def _speaks(nodes: Sequence[Node]) -> bool:
    """Whether there is anything to translate in the texts of a passage."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if node.text is not None and _has_letter(node.text):
            return True
        if node.name and translates(node) and not embedded(node):
            stack += node.children
    return False
