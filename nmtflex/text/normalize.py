"""Normalisations of a raw line before tokenisation."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from functools import partial

from nmtflex.config import nearest
from nmtflex.errors import DataError
from nmtflex.text.width import FULL_TO_HALF, HALF_TO_FULL

Places = Sequence[tuple[int, int]]


class Normalizer:
    """Leaves a line as it is; the others build on it."""

    name = "none"

    def __call__(self, line: str) -> str:
        """Return the normalised line."""
        return line

    def align(self, line: str) -> tuple[str, Places]:
        """Return the normalised line, and each character's [start, end) in the raw one."""
        return self(line), [(place, place + 1) for place in range(len(line))]


class TableNormalizer(Normalizer):
    """Replaces single characters.

    Args:
        name: Its name in the options.
        table: For ``str.translate``.
    """

    def __init__(self, name: str, table: Mapping[int, str]) -> None:
        self.name = name
        self._table = table

    def __call__(self, line: str) -> str:
        """Replace the table's characters."""
        return line.translate(self._table)


class NfkcNormalizer(Normalizer):
    """Unicode's NFKC: compatibility characters become ordinary ones, marks join their letters."""

    name = "nfkc"

    def __call__(self, line: str) -> str:
        """Return the normal form."""
        return _nfkc(line)

    def align(self, line: str) -> tuple[str, Places]:
        """Return the normal form and the raw places, exact except for characters that interact."""
        text: list[str] = []
        places: list[tuple[int, int]] = []
        for start, end in _clusters(line):
            form = _nfkc(line[start:end])
            text.append(form)
            if len(form) == end - start:
                places += [(place, place + 1) for place in range(start, end)]
            else:
                places += [(start, end)] * len(form)
        return "".join(text), places


_nfkc = partial(unicodedata.normalize, "NFKC")


def _clusters(line: str) -> list[tuple[int, int]]:
    """Split a line so that the joined normal forms of the parts are the line's.

    A part can begin at a character whose form begins with a starter, which combines with nothing
    before it.
    """
    bounds = []
    start = 0
    for place in range(1, len(line)):
        own = _nfkc(line[place])
        if unicodedata.combining(own[0]):
            continue
        form = _nfkc(line[start:place])
        if _nfkc(form + own) == form + own:
            bounds.append((start, place))
            start = place
    return [*bounds, (start, len(line))] if line else []


NORMALIZERS: dict[str, Normalizer] = {
    normalizer.name: normalizer
    for normalizer in (
        Normalizer(),
        NfkcNormalizer(),
        TableNormalizer("wat-width", HALF_TO_FULL),
        TableNormalizer("wat-half-width", FULL_TO_HALF),
    )
}


def build_normalizer(name: str) -> Normalizer:
    """Return a normalisation by its name.

    Raises:
        DataError: There is none with that name.
    """
    if name not in NORMALIZERS:
        raise DataError(f"unknown normalisation {name!r}{nearest(name, NORMALIZERS)}")
    return NORMALIZERS[name]
