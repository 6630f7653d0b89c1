"""ASPEC's own files: Japanese and English on one line, fields separated by ``|||`` in spaces.

ASPEC-JE (Nakazawa et al. 2016, https://aclanthology.org/L16-1350)::

    train-1.txt ...:     score ||| id ||| number ||| Japanese ||| English
    dev.txt, test.txt:            id ||| number ||| Japanese ||| English

Splitting is strict, so that no malformed line passes: a sentence may contain ``|||`` with a space
missing on one side, but with both spaces it makes one field too many, which is an error. An empty
sentence is a field, even if the space beside it was cut off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from nmtflex.corpus.readers import SUFFIXES, find_packed, read_lines
from nmtflex.errors import DataError

LANGUAGES = ("ja", "en")  # in the order of their fields, the last ones
TEXT_FIELDS = ("id", "number", "Japanese", "English")
TRAIN_FIELDS = ("score", *TEXT_FIELDS)

_SEPARATOR = re.compile(r"(?:^| )\|\|\|(?= |$)")
_SHOWN = 40  # characters of a wrong field


def find_aspec(path: Path) -> Path:
    """Return the file of this name, or with ``.gz``, ``.xz`` or ``.zst`` after it.

    Raises:
        DataError: There is no such file; the message lists what was tried and what exists.
    """
    hint = ""
    if path.is_dir():
        hint = f"it is a folder, but --format aspec takes files such as {path / 'train-1.txt'}"
    return find_packed(path, [path.name + suffix for suffix in SUFFIXES], "no such file", hint)


def read_aspec(
    path: Path, languages: tuple[str, str], fields: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a file unchanged; DOS line ends are accepted.

    Args:
        path: The file.
        languages: Source and target: "en" and "ja", or the other way round.
        fields: The fields of a line: ``TRAIN_FIELDS`` or ``TEXT_FIELDS``.

    Raises:
        DataError: A line has other fields, or ``read_lines`` raises it.
    """
    source, target = (LANGUAGES.index(language) - len(LANGUAGES) for language in languages)
    for number, line in enumerate(read_lines(path), 1):
        found = _split(line.removesuffix("\r"), len(fields))
        if fault := _fault(found, fields):
            raise DataError(f"{path}:{number}: {fault}")
        yield found[source], found[target]


def _split(line: str, expected: int) -> list[str]:
    """Split a line into fields, with a fast path for ordinary lines."""
    fields = line.split(" ||| ")
    if len(fields) == expected == line.count("|||") + 1:
        return fields
    return [field.removeprefix(" ") for field in _SEPARATOR.split(line)]


def _fault(found: list[str], fields: tuple[str, ...]) -> str | None:
    """Return what is wrong with a line, what is expected and what to do, or None."""
    if len(found) != len(fields):
        return f"{_count(found)}, {_expected(fields)}; {_remedy(found, fields)}"
    if fields[0] == "score" and not _is_number(found[0]):
        fault = f"the score is {_shown(found[0])}, not a number"
    elif not found[-4].strip():
        fault = "the id is empty"
    elif not found[-3].strip():
        fault = "the number is empty"
    else:
        return None
    return f"{fault}, {_expected(fields)}; correct the line or remove it"


def _expected(fields: tuple[str, ...]) -> str:
    return f"but a line must be {' ||| '.join(fields)}"


def _count(found: list[str]) -> str:
    if len(found) > 1:
        return f"{len(found)} fields"
    return f"1 field, {_shown(found[0])}" if found[0] else "an empty line"


def _remedy(found: list[str], fields: tuple[str, ...]) -> str:
    """Return what may help against a wrong number of fields."""
    scored = _is_number(found[0])
    if fields == TRAIN_FIELDS and len(found) == len(TEXT_FIELDS) and not scored:
        return "a file without scores, such as ASPEC's dev.txt, is for --valid or --test"
    if fields == TEXT_FIELDS and len(found) == len(TRAIN_FIELDS) and scored:
        return "a file with scores, such as ASPEC's train-1.txt, is for --train"
    if len(found) > len(fields):
        return "a sentence must not contain ' ||| '; correct the line or remove it"
    if len(found) == 1 and found[0]:
        return "correct it, or use --format plain for two files with a sentence a line"
    return "correct the line or remove it"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")
