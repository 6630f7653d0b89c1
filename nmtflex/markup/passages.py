"""A passage: text that is translated at once, with the elements inside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from nmtflex.markup.elements import embedded, note_mark, translates, words_in
from nmtflex.markup.parsing import Node
from nmtflex.markup.tags import SPACES, write_text

Pieces = list[str | int]  # markup, and numbers of texts that stand in it, translated
# Read by a model in place of what is not translated, unless that is one word, such as a name: a
# model copies a letter, and makes something up of foo.bar().
STAND_IN = "X"
ROOT = -1
_RUNS = re.compile(f"([{SPACES}]+)")


@dataclass(slots=True)
class Mark:
    """An element in a passage, or what is placed as a whole.

    Attributes:
        parent: The number of the element around it, or ROOT.
        opening: Start tag; all of what is placed as a whole.
        closing: End tag.
        whole: Whether ``opening`` replaces the translation of its characters.
        start: Its first character in the text.
        end: The end; equal to ``start`` if it has no characters.
        spaced: Whether white space stands before it, and after it.
    """

    parent: int
    opening: Pieces
    closing: str = ""
    whole: bool = False
    start: int = 0
    end: int = 0
    spaced: tuple[bool, bool] = (False, False)


@dataclass(slots=True)
class Passage:
    """A text and its markup.

    Attributes:
        text: With a single space for any white space inside, and none at its ends.
        lead: The white space before it.
        tail: The white space after it.
        marks: In the order of their start tags.
    """

    text: str = ""
    lead: str = ""
    tail: str = ""
    marks: list[Mark] = field(default_factory=list)


class PassageReader:
    """Reads the nodes of one passage.

    Args:
        start_tag: Returns the start tag of an element.
        whole: Returns a node with all that it contains.
    """

    def __init__(
        self, start_tag: Callable[[Node], Pieces], whole: Callable[[Node], Pieces]
    ) -> None:
        self._start_tag = start_tag
        self._whole = whole
        self._found = Passage()
        self._characters: list[str] = []
        self._length = 0
        self._space = ""  # read last, and not yet in the text
        self._waiting: list[Mark] = []  # begin with the next character
        self._ended: list[tuple[Mark, int]] = []  # and how much white space came before their end

    def read(self, nodes: Sequence[Node]) -> Passage:
        """Return the passage of nodes that stand side by side."""
        stack: list[tuple[Node | None, int]] = [(node, ROOT) for node in reversed(nodes)]
        while stack:
            node, number = stack.pop()
            if node is None:
                self._close(self._found.marks[number])
            elif node.text is not None:
                self._read_text(node.text)
            elif _indivisible(node):
                self._read_whole(node, number)
            else:
                own = self._open(Mark(number, self._start_tag(node), node.closing))
                stack.append((None, own))
                stack += [(child, own) for child in reversed(node.children)]
        for mark, length in self._ended:
            mark.spaced = mark.spaced[0], len(self._space) > length
        self._found.text, self._found.tail = "".join(self._characters), self._space
        _strip(self._found)
        return self._found

    def _read_text(self, text: str) -> None:
        for part in _RUNS.split(text):
            if not part or part[0] in SPACES:
                self._space += part
                continue
            if self._length:
                part = " " * bool(self._space) + part
            else:
                self._found.lead = self._space
            for mark in self._waiting:
                mark.start = self._length + part.startswith(" ")
            for mark, length in self._ended:
                mark.spaced = mark.spaced[0], len(self._space) > length
            self._waiting, self._ended, self._space = [], [], ""
            self._characters.append(part)
            self._length += len(part)

    def _read_whole(self, node: Node, parent: int) -> None:
        """Read what is placed as a whole: one word in the text, or none."""
        number = self._open(Mark(parent, self._whole(node), whole=True))
        words = words_in(node.children).strip()
        if words and not embedded(node) and not note_mark(node):
            self._read_text(words if words.isalpha() else STAND_IN)
        self._close(self._found.marks[number])

    def _open(self, mark: Mark) -> int:
        mark.spaced = bool(self._space), False
        self._found.marks.append(mark)
        self._waiting.append(mark)
        return len(self._found.marks) - 1

    def _close(self, mark: Mark) -> None:
        mark.end = self._length
        if self._waiting and self._waiting[-1] is mark:  # it has no characters
            self._waiting.pop()
            mark.start = self._length
        self._ended.append((mark, len(self._space)))


def _indivisible(node: Node) -> bool:
    """Whether a node that is no text is placed as a whole."""
    return not node.name or embedded(node) or note_mark(node) or not translates(node)


def _strip(passage: Passage) -> None:
    """Move white space that is not HTML's, such as U+00A0, from the ends to lead and tail."""
    text = passage.text.strip()
    lead = len(passage.text) - len(passage.text.lstrip())
    tail = passage.text[lead + len(text) :]
    passage.lead += write_text(passage.text[:lead])
    passage.tail = write_text(tail) + passage.tail
    for mark in passage.marks:
        mark.start, mark.end = (
            min(max(0, place - lead), len(text)) for place in (mark.start, mark.end)
        )
    passage.text = text
