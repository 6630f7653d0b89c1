"""ASPEC's own files: Japanese and English on one line, fields parted by ``|||`` between blanks.

ASPEC-JE (Nakazawa et al. 2016, https://aclanthology.org/L16-1350)::

    train-1.txt ...:     score ||| id ||| number ||| Japanese ||| English
    dev.txt, test.txt:            id ||| number ||| Japanese ||| English

Parting is strict, so that no line is taken for what it is not: a sentence may hold ``|||`` with no
blank on one side of it, but between blanks it makes a field too many, which is an error. An empty
sentence is one, even where the blank beside it was cut off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from nmtflex.corpus.readers import SUFFIXES, read_lines, siblings
from nmtflex.errors import DataError

LANGUAGES = ("ja", "en")  # in the order of their fields, the last ones
TEXT_FIELDS = ("id", "number", "Japanese", "English")
TRAIN_FIELDS = ("score", *TEXT_FIELDS)

_SEPARATOR = re.compile(r"(?:^| )\|\|\|(?= |$)")
_SHOWN = 40  # characters of a wrong field


def find_aspec(path: Path) -> Path:
    """Return the file of this name, or else the one with ``.gz``, ``.xz`` or ``.zst`` after it.

    Raises:
        DataError: There is none; says what was tried and what else there is.
    """
    names = [path.name + suffix for suffix in SUFFIXES]
    for name in names:
        if (file := path.with_name(name)).is_file():
            return file
    if path.is_dir():
        raise DataError(
            f"{path} is a folder; --format aspec takes files, as {path / 'train-1.txt'}"
        )
    message = f"{path}: no such file; tried {', '.join(names)}"
    if others := siblings(path):
        message += f"; there is {', '.join(others)}"
    elif not path.parent.is_dir():
        message += f"; there is no folder {path.parent}"
    raise DataError(message)


def read_aspec(
    path: Path, languages: tuple[str, str], fields: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a file, as they stand there; the end of a line may be a DOS one.

    Args:
        path: The file.
        languages: Source and target: "en" and "ja", or the other way round.
        fields: What its lines hold: ``TRAIN_FIELDS`` or ``TEXT_FIELDS``.

    Raises:
        DataError: A line has other fields; or what ``read_lines`` raises.
    """
    source, target = (LANGUAGES.index(language) - len(LANGUAGES) for language in languages)
    for number, line in enumerate(read_lines(path), 1):
        found = _split(line.removesuffix("\r"), len(fields))
        if fault := _fault(found, fields):
            raise DataError(f"{path}:{number}: {fault}")
        yield found[source], found[target]


def _split(line: str, expected: int) -> list[str]:
    """Part a line's fields, quickly where nothing is odd about them."""
    fields = line.split(" ||| ")
    if len(fields) == expected == line.count("|||") + 1:
        return fields
    return [field.removeprefix(" ") for field in _SEPARATOR.split(line)]


def _fault(found: list[str], fields: tuple[str, ...]) -> str | None:
    """Say what is wrong with a line, what is expected and what to do, or None."""
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
    return f"where a line is {' ||| '.join(fields)}"


def _count(found: list[str]) -> str:
    if len(found) > 1:
        return f"{len(found)} fields"
    return f"1 field, {_shown(found[0])}" if found[0] else "an empty line"


def _remedy(found: list[str], fields: tuple[str, ...]) -> str:
    """Say what may help against a wrong number of fields."""
    scored = _is_number(found[0])
    if fields == TRAIN_FIELDS and len(found) == len(TEXT_FIELDS) and not scored:
        return "a file without scores, as ASPEC's dev.txt, is for --valid or --test"
    if fields == TEXT_FIELDS and len(found) == len(TRAIN_FIELDS) and scored:
        return "a file with scores, as ASPEC's train-1.txt, is for --train"
    if len(found) > len(fields):
        return "no sentence may hold ' ||| '; correct the line or remove it"
    if len(found) == 1 and found[0]:
        return "correct it, or take --format plain for two files of a line a sentence"
    return "correct the line or remove it"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")
