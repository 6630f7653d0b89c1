"""A worker process of the server: reads sentences from standard input, and answers.

It ends where its input ends, so it never outlives the server.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, get_type_hints

from nmtflex.config import Decoding
from nmtflex.deferred import defer_unused
from nmtflex.errors import NmtflexError
from nmtflex.garbage import collect_seldom
from nmtflex.serving.messages import finite, packed, read_message

# Translated before what clients send, so that nobody waits for what is compiled or read once.
FIRST = ("a", "b c")

if TYPE_CHECKING:
    from nmtflex.decoding.opening import Opened
    from nmtflex.decoding.translator import Translator


def main() -> None:
    """Open the runs that the first message names, then translate one message after another.

    The first message has ``models``, lists of run folders, and ``options``, those of ``Decoding``.
    Each one after it has a model's number, options of the call, and texts.
    """
    collect_seldom()
    defer_unused()
    for ending in (signal.SIGINT, signal.SIGTERM):  # sent to all: the server drains, then ends this
        signal.signal(ending, signal.SIG_IGN)
    answers = _answers()
    requests = sys.stdin.buffer
    setup = read_message(requests)
    try:
        models = _open(setup)
    except NmtflexError as error:
        _answer(answers, {"error": str(error)})
        return
    _answer(answers, {"models": list(map(_about, models))})
    while (message := read_message(requests)) is not None:
        _answer(answers, _translated(models[message["model"]].translator, message))


def _answers() -> BinaryIO:
    """Take standard output for the answers; whatever else is printed goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def _answer(stream: BinaryIO, message: Any) -> None:
    stream.write(packed(message))
    stream.flush()


def _open(setup: dict[str, Any]) -> list[Opened]:
    """Open every model; one of several runs is an ensemble."""
    from nmtflex.decoding.opening import open_ensemble

    groups = get_type_hints(Decoding)
    options = [groups[name].from_dict(values) for name, values in setup["options"].items()]
    models = [open_ensemble(list(map(Path, runs)), *options) for runs in setup["models"]]
    for model in models:
        model.translator.warm_up(FIRST)
    return models


def _about(opened: Opened) -> dict[str, Any]:
    """Return what the server must know about a model; see ``service.Model``."""
    return {
        "gated": opened.run.model.gated,
        "tau": finite(opened.tau),
        "scored": _scored(opened.translator),
    }


def _scored(translator: Translator) -> bool:
    """Whether a model has been calibrated to score words."""
    try:
        translator.load_confidence()
    except NmtflexError:
        return False
    return True


def _translated(translator: Translator, message: dict[str, Any]) -> dict[str, Any]:
    """Translate the texts of a message."""
    from nmtflex.serving.translate import translate_units

    try:
        return {"results": translate_units(translator, message["texts"], dict(message["options"]))}
    except (NmtflexError, ValueError, RuntimeError) as error:
        return {"error": str(error)}


if __name__ == "__main__":
    main()
