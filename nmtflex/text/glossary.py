"""Terms with the translations they must have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from nmtflex.errors import DataError
from nmtflex.text.edges import joins
from nmtflex.text.visible import counted

_SPACES = re.compile(r"\s+")
_ENDS = ".!?…。！？"  # of sentences
_BETWEEN = " \"'“”„‘’‚«»‹›()[]¿¡—–-"  # the end of a sentence and the next one's first letter


class Occurrence(NamedTuple):
    """A term in a raw line, its characters [start, end), and the text that translates it."""

    start: int
    end: int
    target: str


class Glossary:
    """Terms of a source language, each with the one translation that it must have.

    A term is found as whole words: an inflected form or a compound is another word. In scripts
    without spaces it is found anywhere. White space in it stands for any white space. A term that
    begins with a small letter is also found with a capital at the beginning of a sentence.

    Args:
        terms: Source term to target term; white space around them does not count.
        ignore_case: Whether terms are found in any case.
        name: The file, for messages.

    Raises:
        DataError: A term or its translation is not text, is empty or contains a line break, or a
            term is there twice.
    """

    def __init__(
        self, terms: Mapping[str, str], ignore_case: bool = False, name: str = "glossary"
    ) -> None:
        self.ignore_case = ignore_case
        self._targets: dict[str, str] = {}
        lengths: dict[str, set[int]] = {}
        for source, target in terms.items():
            _check(source, target, name)
            key = self._folded(_SPACES.sub(" ", source.strip()))
            if key in self._targets:
                raise DataError(f"{name}: {source!r} is there twice; remove one")
            self._targets[key] = target.strip()
            lengths.setdefault(key[0], set()).add(len(key))
        self._lengths = lengths  # by the first character

    def __len__(self) -> int:
        return len(self._targets)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Glossary) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @cached_property  # lines with the same glossary are grouped by it
    def _key(self) -> tuple[bool, frozenset[tuple[str, str]]]:
        return self.ignore_case, frozenset(self._targets.items())

    @classmethod
    def read(cls, path: Path | str, ignore_case: bool = False) -> Glossary:
        """Read a file of one ``source<TAB>target`` a line, in UTF-8.

        Empty lines are skipped. There are no comments: a term may begin with ``#``.

        Args:
            path: The file.
            ignore_case: Whether terms are found in any case.

        Raises:
            DataError: The file cannot be read, or a line is not a new term and its translation.
        """
        try:
            text = Path(path).read_bytes().decode("utf-8-sig")
        except OSError as error:
            raise DataError(f"{path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: not valid UTF-8; convert the file with iconv") from error
        terms: dict[str, str] = {}
        for number, line in enumerate(text.split("\n"), 1):
            if not line.strip():
                continue
            place, columns = f"{path}:{number}", line.split("\t")
            if len(columns) != 2:
                raise DataError(
                    f"{place}: expected a term, a tab and its translation, but found "
                    f"{counted(len(columns), 'column')}"
                )
            source, target = (column.strip() for column in columns)
            _check(source, target, place)
            if source in terms:
                raise DataError(f"{place}: {source!r} is there twice; remove one")
            terms[source] = target
        return cls(terms, ignore_case, str(path))

    def find(self, line: str) -> list[Occurrence]:
        """Return the terms of a raw line: from the left, the longest first, without overlaps."""
        text, places = _single_spaces(line)
        found, start = list[Occurrence](), 0
        while start < len(text):
            if longest := self._longest(text, start):
                end, target = longest
                found.append(Occurrence(places[start], places[end - 1] + 1, target))
                start = end
            else:
                start += 1
        return found

    def _longest(self, text: str, start: int) -> tuple[int, str] | None:
        """Return the end and the translation of the longest term at a place of a text, if any."""
        first = text[start]
        if start and joins(text[start - 1]) and joins(first):
            return None
        lengths = {
            length
            for form in {self._folded(first), first.lower()}
            for length in self._lengths.get(form, ())
        }
        for length in sorted(lengths, reverse=True):
            end = start + length
            if end > len(text) or (end < len(text) and joins(text[end - 1]) and joins(text[end])):
                continue
            if target := self._target(text, start, end):
                return end, target
        return None

    def _target(self, text: str, start: int, end: int) -> str | None:
        """Return the translation of a part of a text, if it is a term."""
        term = text[start:end]
        if target := self._targets.get(self._folded(term)):
            return target
        small = self._targets.get(term[0].lower() + term[1:]) if term[0].isupper() else None
        if small:
            before = text[:start].rstrip(_BETWEEN)
            return small if not before or before[-1] in _ENDS else None
        return None

    def _folded(self, text: str) -> str:
        """Return what terms are compared by; it has as many characters."""
        if not self.ignore_case:
            return text
        return "".join(low if len(low := one.lower()) == 1 else one for one in text)


def _check(source: str, target: str, name: str) -> None:
    """Check an entry.

    Raises:
        DataError: A side is not text, is empty, or contains a line break.
    """
    for what, text in (("term", source), ("translation", target)):
        if not isinstance(text, str):
            raise DataError(f"{name}: the {what} {text!r} is not text")
        if not text.strip():
            raise DataError(f"{name}: {source!r} - {target!r} has an empty {what}")
        if "\n" in text.strip():
            raise DataError(f"{name}: the {what} {text!r} contains a line break")


def _single_spaces(line: str) -> tuple[str, list[int]]:
    """Return a line with one space for all white space that touches, and each one's place."""
    places = [
        place
        for place, character in enumerate(line)
        if not (character.isspace() and place and line[place - 1].isspace())
    ]
    return "".join(" " if line[place].isspace() else line[place] for place in places), places
