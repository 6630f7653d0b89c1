"""The steps of a comparison: nmtflex commands, each done once and noted down.

A note says what a step did: its command, hashes of what it read, and its result. A training that
was interrupted, or whose options have changed, is left to ``train`` and ``finetune``, which go on
with it or refuse; anything else that does not fit its note is done again.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nmtflex.errors import NmtflexError, OptionError, RunError, StoppedError
from nmtflex.files import file_hash, read_json, write_json

NOTES = "steps"  # folder of the notes
# What tells the contents of a folder: of a run its best weights, of prepared data the manifest,
# which has the hashes of all that it was made from.
TELLING = ("checkpoints/best.safetensors", "manifest.json")
STOPPED = (signal.SIGINT, signal.SIGTERM)

Caller = Callable[[Sequence[str]], tuple[int, str]]  # words to exit code and standard output


class Step(NamedTuple):
    """One command of nmtflex."""

    name: str
    words: Sequence[str]
    reads: Sequence[Path]  # files and folders
    run: Path | None = None  # the run folder that it makes; otherwise its JSON counts


class Journal:
    """What is done of a comparison.

    Args:
        out: Folder of the comparison.
        call: Runs a command.
    """

    def __init__(self, out: Path, call: Caller) -> None:
        self.folder = out / NOTES
        self._call = call

    def result(self, step: Step) -> dict[str, Any] | None:
        """Return the result of a step; None if it has to be done, or done again.

        Raises:
            RunError: A run began with other weights or data than there are now, or a note is
                damaged.
        """
        note = self._note(step.name)
        if not note:
            return None
        reads = _fingerprints(step.reads)
        if step.run is not None and step.run.exists() and note["reads"] != reads:
            other = next(path for path in reads if note["reads"].get(path) != reads[path])
            raise RunError(
                f"{step.run} was made from another {other}; delete {step.run}, and run the "
                f"comparison again"
            )
        if (note["words"], note["reads"]) != (list(step.words), reads):
            return None
        if step.run is not None and _fingerprint(step.run) != note["result"]["weights"]:
            return None
        return dict(note["result"])

    def do(self, step: Step) -> dict[str, Any]:
        """Run the command of a step, and note down its result.

        Raises:
            NmtflexError: It failed; it has said why itself.
        """
        code, printed = self._call(step.words)
        if code:
            raise _failure(step, code)
        if step.run is not None:
            result = {"weights": _fingerprint(step.run)}
        else:
            result = json.loads(printed)
        self.keep(step, result)
        return result

    def keep(self, step: Step, result: dict[str, Any]) -> None:
        """Note down the result of a step."""
        self.folder.mkdir(parents=True, exist_ok=True)
        note = {"words": list(step.words), "reads": _fingerprints(step.reads), "result": result}
        write_json(self.folder / f"{step.name}.json", note)

    def _note(self, name: str) -> dict[str, Any]:
        path = self.folder / f"{name}.json"
        if not path.exists():
            return {}
        note = read_json(path, RunError)
        kinds = {"words": list, "reads": dict, "result": dict}
        if any(type(note.get(key)) is not kind for key, kind in kinds.items()):
            raise RunError(f"{path}: not a note of nmtflex compare; delete it")
        return note


def _failure(step: Step, code: int) -> NmtflexError:
    """Return the error for a command that ended with an exit code other than 0."""
    command = f"{step.name}: nmtflex {step.words[0]}"
    for number in STOPPED:
        if code in (128 + number, -number):
            return StoppedError(
                f"{command} was interrupted; run the comparison again to go on", number
            )
    if code < 0:
        name = signal.Signals(-code).name
        return RunError(f"{command} was killed by {name}; run the comparison again to go on")
    remedy = ""
    if step.run is not None and step.run.exists():
        remedy = f" (to train anew, delete {step.run})"
    message = f"{command} failed; mend that and run the comparison again{remedy}"
    return OptionError(message) if code == OptionError.exit_code else RunError(message)


def _fingerprints(paths: Sequence[Path]) -> dict[str, str]:
    """Return the hashes of all files and folders of a name, by that name."""
    found: dict[str, list[str]] = {}
    for path in paths:
        found.setdefault(path.name, []).append(_fingerprint(path))
    return {name: " ".join(hashes) for name, hashes in found.items()}


def _fingerprint(path: Path) -> str:
    """Return a hash of a file, or of what tells a folder's contents; "" if there is neither."""
    files = (path, *(path / name for name in TELLING))
    file = next((one for one in files if one.is_file()), None)
    return "" if file is None else file_hash(file)
