"""What a request asks, from JSON, a form or the address, checked."""

from __future__ import annotations

import contextlib
import json
import math
from collections import Counter
from typing import Any

from starlette.datastructures import UploadFile
from starlette.requests import Request

from nmtflex.errors import DataError
from nmtflex.text.glossary import Glossary

MOST_TERMS = 1000  # of a glossary
FLAGS = {"true": True, "1": True, "on": True, "": False, "false": False, "0": False, "off": False}
AUTO = "auto"  # the source language is to be found out
QUOTED = 60  # characters of a field that an error repeats


class Refused(Exception):  # noqa: N818
    """A request that cannot be answered, with its status and what the client should know."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


async def read_fields(request: Request) -> dict[str, Any]:
    """Return the fields of a request.

    Raises:
        Refused: Its body is damaged.
    """
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind == "application/json" or kind.endswith("+json"):
        return _from_json(await request.body())
    fields: dict[str, Any] = dict(request.query_params)
    if kind in ("application/x-www-form-urlencoded", "multipart/form-data"):
        form = await request.form(max_files=1, max_fields=100)
        fields |= {name: _single(form.getlist(name)) for name in form}
    return fields


def _single(values: list[Any]) -> Any:
    """Return the value of a field of a form, a list if it was sent more than once."""
    return values[0] if len(values) == 1 else values


def _from_json(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise Refused(400, "Invalid JSON format")
    return fields


def take(fields: dict[str, Any], name: str) -> str:
    """Return a field that must be there.

    Raises:
        Refused: It is not there, or is not text.
    """
    value = fields.get(name)
    if not value:
        raise Refused(400, f"Invalid request: missing {name} parameter")
    return _checked(name, value)


def take_texts(fields: dict[str, Any], name: str = "q") -> tuple[list[str], bool]:
    """Return the texts of a request, and whether they came as a list.

    Raises:
        Refused: There are none, or they are not text.
    """
    value = fields.get(name)
    if not value:
        raise Refused(400, f"Invalid request: missing {name} parameter")
    if isinstance(value, list):
        return [_checked(name, text) for text in value], True
    return [_checked(name, value)], False


def take_file(fields: dict[str, Any], name: str = "file") -> UploadFile:
    """Return the file of a request.

    Raises:
        Refused: There is none.
    """
    value = fields.get(name)
    if not isinstance(value, UploadFile):
        raise Refused(400, f"Invalid request: missing {name} parameter")
    if not value.filename:
        raise Refused(400, "Invalid request: empty file")
    return value


def take_number(fields: dict[str, Any], name: str, most: int) -> int:
    """Return a whole number from 0 to ``most``; 0 if it is not there.

    Raises:
        Refused: It is something else.
    """
    value = fields.get(name)
    if value is None or value == "":
        return 0
    digits = value.strip() if isinstance(value, str) else ""
    if digits.isascii() and digits.isdecimal():
        value = int(digits[:20])
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Refused(400, f"Invalid request: {name} parameter is not a number")
    if value > most:
        raise Refused(400, f"Invalid request: {name} parameter must be <= {most}")
    return value


def take_threshold(fields: dict[str, Any], name: str = "tau") -> float | None:
    """Return a threshold, infinite for "inf"; None if it is not there.

    Raises:
        Refused: It is not a number of at least 0.
    """
    value = fields.get(name)
    if value is None or value == "":
        return None
    number = math.nan
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        with contextlib.suppress(ValueError, OverflowError):
            number = float(value[:50] if isinstance(value, str) else value)
    if not number >= 0:
        raise Refused(400, f"Invalid request: {name} parameter is not a number of at least 0")
    return number


def take_choice(fields: dict[str, Any], name: str, choices: tuple[str, ...]) -> str:
    """Return one of some words, the first if there is none.

    Raises:
        Refused: It is another one.
    """
    value = _checked(name, fields.get(name) or choices[0])
    if value not in choices:
        raise Refused(400, f"{quoted(value)} {name} is not supported")
    return value


def take_terms(fields: dict[str, Any], name: str = "glossary") -> tuple[tuple[str, str], ...]:
    """Return the terms of a glossary: an object, or as text one a line with a tab in between.

    Raises:
        Refused: It is something else, too long, or no glossary.
    """
    value = fields.get(name)
    if not value:
        return ()
    if isinstance(value, str):
        lines = filter(None, _checked(name, value).splitlines())
        pairs: Any = [line.split("\t") for line in lines]
    else:
        pairs = list(value.items()) if isinstance(value, dict) else [()]
    if not all(len(pair) == 2 for pair in pairs):
        raise Refused(400, f"Invalid request: {name} parameter is not a list of terms")
    terms = tuple((_checked(name, term), _checked(name, target)) for term, target in pairs)
    if len(terms) > MOST_TERMS:
        raise Refused(400, f"Invalid request: {name} has more than {MOST_TERMS} terms")
    if twice := [term for term, count in Counter(term for term, _ in terms).items() if count > 1]:
        raise Refused(400, f"Invalid request: {name} has {twice[0]!r} twice")
    try:
        Glossary(dict(terms))
    except DataError as error:
        raise Refused(400, f"Invalid request: {error}") from error
    return terms


def take_flag(fields: dict[str, Any], name: str) -> bool:
    """Return whether something is asked for: true, 1, "true", "1" or "on"; without it False.

    Raises:
        Refused: It is neither that nor false, 0, "false", "0" or "off".
    """
    value = fields.get(name)
    if (found := FLAGS.get("" if value is None else str(value).lower())) is None:
        raise Refused(400, f"Invalid request: {name} parameter is not true or false")
    return found


def quoted(value: str) -> str:
    """Return a field as an error repeats it: not at any length."""
    return value if len(value) <= QUOTED else f"{value[:QUOTED]}..."


def _checked(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise Refused(400, f"Invalid request: {name} parameter is not text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Refused(400, f"Invalid request: {name} parameter is not Unicode text") from None
    return value
