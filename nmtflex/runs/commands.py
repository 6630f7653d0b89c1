"""The command lines that started or resumed a run: ``commands.jsonl``, one object per line."""

from __future__ import annotations

import datetime as dt
import json
from typing import NamedTuple

import nmtflex
from nmtflex.errors import RunError
from nmtflex.files import atomic_file
from nmtflex.runs.folder import RunFolder


class Command(NamedTuple):
    """A command line, and when it was given."""

    time: str  # ISO 8601, in UTC
    command: str  # as a shell takes it
    update: int  # optimiser steps that the run had made before
    nmtflex: str  # version


def record_command(folder: RunFolder, command: str, update: int) -> None:
    """Add a command line to those of a run.

    Raises:
        OSError: The disk is full, say; earlier lines stay as they were.
    """
    now = dt.datetime.now(tz=dt.UTC).isoformat(timespec="seconds")
    line = json.dumps(
        Command(now, command, update, nmtflex.__version__)._asdict(), ensure_ascii=False
    )
    before = folder.commands.read_bytes() if folder.commands.exists() else b""
    with atomic_file(folder.commands) as file:  # appended whole or not at all
        file.write(before + line.encode("utf-8", "backslashreplace") + b"\n")


def read_commands(folder: RunFolder) -> list[Command]:
    """Return the command lines of a run, the oldest first; none if a run has no such file.

    Raises:
        RunError: The file is damaged.
    """
    if not folder.commands.exists():
        return []
    found = []
    try:
        lines = folder.commands.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"{folder.commands}: cannot be read: {error}") from error
    for number, line in enumerate(lines, start=1):
        try:
            record = Command(**json.loads(line))
            if list(map(type, record)) != [str, str, int, str]:
                raise TypeError("a value of a wrong type")
        except (ValueError, TypeError, RecursionError) as error:
            raise RunError(f"{folder.commands}:{number}: damaged: {error}") from error
        found.append(record)
    return found
