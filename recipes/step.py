"""One step of a recipe: an nmtflex command that is left out where its output is there already.

    step.py [--stdin FILE] [--stdout] OUTPUT COMMAND OPTION...

Beside OUTPUT stands a stamp, OUTPUT.step: the command, the version of nmtflex and what its inputs
hold, written as "begun" before the command runs and as "done" after it. An output that belongs to
the same step is not made again; one that does not is never reused: the recipe stops and says what
differs. Paths count by what they lead to and not by their names, so folders may move. A training
that was interrupted goes on; any other half-made output is made anew. While the command runs,
OUTPUT.lock is locked.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RESUMED = ("train", "finetune")
WRITTEN = ("--out", "--run", "--output", "--attention-output")
SWEPT = (".csv", ".png")  # what sweep writes
LANGUAGES = ("--source-lang", "--target-lang")
ENDINGS = ("", ".gz", ".xz", ".zst")
# What tells a folder's contents: a prepared corpus, whose manifest has the hashes of all it was
# made from; and a run, by the weights that decode.
TELLING = ("manifest.json", "checkpoints/best.safetensors")

Print = dict[str, Any]  # of a file: size, mtime and sha256


class StepError(Exception):
    """What a person has to put right; one line."""


def fingerprint(path: Path, known: Print | None = None) -> Print:
    """Say what a file holds, or the files that tell what a folder holds.

    Args:
        path: File or folder.
        known: An earlier fingerprint: a file of its size and time is not read again.
    """
    if path.is_dir():
        telling = [path / name for name in TELLING if (path / name).is_file()]
        files = telling or sorted(file for file in path.rglob("*") if file.is_file())
        parts = {str(file.relative_to(path)): fingerprint(file) for file in files}
        text = json.dumps({name: part["sha256"] for name, part in parts.items()}, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()
        return {"size": sum(part["size"] for part in parts.values()), "sha256": digest}
    status = path.stat()
    if known and (known["size"], known.get("mtime")) == (status.st_size, status.st_mtime_ns):
        return known
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"size": status.st_size, "mtime": status.st_mtime_ns, "sha256": digest}


@contextlib.contextmanager
def locked(path: Path, output: Path) -> Iterator[int]:
    """Hold a lock while it lasts, by its file descriptor; a kill leaves a file, and no lock.

    Raises:
        StepError: Another process holds it.
    """
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StepError(
                f"{output} is being made by another recipe, or by what is left of one; wait for "
                f"it or end it"
            ) from error
        try:
            yield file.fileno()
        finally:
            path.unlink(missing_ok=True)


class Step:
    """A command and its output.

    Args:
        output: What the command makes.
        command: Arguments of nmtflex; one with a slash names a file, a folder or the prefix of a
            corpus, and is an input unless it follows an option of ``WRITTEN``.
        stdin: File to read as standard input.
        stdout: Whether what the command prints is its output.
    """

    def __init__(
        self, output: Path, command: list[str], stdin: Path | None = None, stdout: bool = False
    ) -> None:
        self.output = output
        self.command = command
        self.stdin = stdin
        self.stdout = stdout
        self.stamp = output.with_name(output.name + ".step")
        self.written = [output]
        self.inputs = [stdin] if stdin else []
        for option, argument in zip(["", *command], command, strict=False):
            if "/" not in argument:
                continue
            path = Path(argument)
            if command[0] == "sweep" and option == "--output":  # stands without ending
                self.written += [path.with_name(path.name + ending) for ending in SWEPT]
            else:
                written = option in WRITTEN or path == output
                (self.written if written else self.inputs).append(path)

    def run(self) -> int:
        """Leave the step out, go on with it or do it; return the command's exit code."""
        self.output.parent.mkdir(parents=True, exist_ok=True)
        with locked(self.output.with_name(self.output.name + ".lock"), self.output) as self.lock:
            return self._run()

    def _run(self) -> int:
        stamp = self._read_stamp()
        now = self._describe(stamp)
        if self.output.exists():
            self._check(stamp, now)
            whole = all(path.exists() for path in self.written)
            if stamp["state"] == "done" and whole:
                sys.stderr.write(f"-- {self.output} is there\n")
                return 0
            if self.command[0] not in RESUMED:
                self._remove()
        sys.stderr.write(f"== {self.output}: nmtflex {shlex.join(self.command)}\n")
        self._write_stamp(now | {"state": "begun"})
        if code := self._call():
            return code
        if not self.output.exists():
            raise StepError(f"nmtflex {self.command[0]} made no {self.output}; report this")
        self._write_stamp(now | {"state": "done", "output": fingerprint(self.output)})
        return 0

    def _remove(self) -> None:
        """Remove what is half made; the stamp shows that it is this step's own."""
        if self.output.is_dir():
            shutil.rmtree(self.output)
        else:
            self.output.unlink()

    def _describe(self, stamp: dict[str, Any]) -> dict[str, Any]:
        """Return what the output belongs to."""
        before = stamp.get("inputs", {})
        inputs: dict[str, Print] = {}
        for path in self.inputs:
            for file in self._files(path):
                name = f"{file.parent.name}/{file.name}" if file.name in inputs else file.name
                inputs[name] = fingerprint(file, before.get(name))
        return {
            "nmtflex": os.environ.get("NMTFLEX_VERSION", "nmtflex"),
            "command": [Path(one).name if "/" in one else one for one in self.command],
            "inputs": inputs,
        }

    def _files(self, path: Path) -> list[Path]:
        """Return a path, or the files of a corpus of that prefix, compressed ones too."""
        values = dict(zip(self.command, self.command[1:], strict=False))
        languages = [values[option] for option in LANGUAGES if option in values]
        names = [path.name, *(f"{path.name}.{language}" for language in languages)]
        files = [path.with_name(name + ending) for name in names for ending in ENDINGS]
        found = [file for file in files if file.exists()]
        if not found:
            raise StepError(
                f"{path} is missing, which {self.output} is made from; if an earlier step made it, "
                f"delete what it made, with its .step file, and run the recipe again"
            )
        return found

    def _check(self, stamp: dict[str, Any], now: dict[str, Any]) -> None:
        """Refuse an output that is not this step's.

        Raises:
            StepError: It is not; says what differs.
        """
        if not stamp:
            fault = "is there, and no recipe made it"
        elif stamp["nmtflex"] != now["nmtflex"]:
            fault = f"was made by {stamp['nmtflex']}, and this is {now['nmtflex']}"
        elif stamp["command"] != now["command"]:
            fault = f"was made with {_difference(stamp['command'], now['command'])}"
        elif changed := _changed(stamp["inputs"], now["inputs"]):
            fault = f"was made from {changed}"
        elif stamp["state"] == "done" and not _same(stamp["output"], fingerprint(self.output)):
            fault = "was changed since a recipe made it"
        else:
            return
        raise StepError(f"{self.output} {fault}; delete it, or set OUT to another folder")

    def _call(self) -> int:
        """Run the command to its end: an interrupt is for it to answer, and we wait for that."""
        program = shlex.split(os.environ.get("NMTFLEX", "nmtflex"))
        part = self.output.with_name(self.output.name + ".part")
        # A handler, and not SIG_IGN, which the command would inherit.
        signal.signal(signal.SIGINT, lambda *_: None)
        with (
            (self.stdin or Path(os.devnull)).open("rb") as source,
            (part if self.stdout else Path(os.devnull)).open("wb") as sink,
        ):
            child = subprocess.Popen(
                [*program, *self.command],
                stdin=source,
                stdout=sink if self.stdout else None,
                pass_fds=[self.lock],  # locked as long as the command lives, whoever else is killed
            )
            signal.signal(signal.SIGTERM, lambda *_: child.terminate())
            code = child.wait()
        if self.stdout and code == 0:
            part.replace(self.output)
        elif self.stdout:
            part.unlink()
        if code not in (0, 1, 2):  # with 1 and 2 nmtflex has said itself what is wrong
            ended = "was interrupted" if code in (130, 143, -2, -15) else f"ended with exit {code}"
            raise StepError(f"{self.output}: nmtflex {self.command[0]} {ended}; run the recipe "
                            f"again to go on")  # fmt: skip
        return code

    def _read_stamp(self) -> dict[str, Any]:
        try:
            return dict(json.loads(self.stamp.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise StepError(
                f"{self.stamp}: damaged; delete it together with {self.output}"
            ) from error

    def _write_stamp(self, stamp: dict[str, Any]) -> None:
        part = self.stamp.with_name(self.stamp.name + ".part")
        part.write_text(json.dumps(stamp, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        part.replace(self.stamp)


def _same(one: Print, other: Print) -> bool:
    return bool(one["sha256"] == other["sha256"])


def _changed(before: dict[str, Print], now: dict[str, Print]) -> str:
    """Name the first input that was another one, or nothing."""
    for name, found in now.items():
        if name not in before:
            return f"other files: {name} is new"
        if not _same(before[name], found):
            return (
                f"another {name} (sha256 {before[name]['sha256'][:12]}, {before[name]['size']} "
                f"bytes; now {found['sha256'][:12]}, {found['size']} bytes)"
            )
    gone = [name for name in before if name not in now]
    return f"other files: {gone[0]} is gone" if gone else ""


def _difference(before: list[str], now: list[str]) -> str:
    """Say which options differ, in the words of the command line."""
    old, new = _options(before), _options(now)
    had = " ".join(option for option in old if option not in new) or "nothing"
    has = " ".join(option for option in new if option not in old) or "nothing"
    return f"other settings: {had}, now {has}" if had != has else "its options in another order"


def _options(command: list[str]) -> list[str]:
    """Join each option with its values."""
    found: list[str] = []
    for argument in command:
        if argument.startswith("--") or not found:
            found.append(argument)
        else:
            found[-1] += f" {argument}"
    return found


def main(arguments: list[str]) -> int:
    """Run one step; return the exit code."""
    stdin = None
    stdout = False
    while arguments[0].startswith("--"):
        if arguments.pop(0) == "--stdout":
            stdout = True
        else:
            stdin = Path(arguments.pop(0))
    output, *command = arguments
    try:
        return Step(Path(output), command, stdin, stdout).run()
    except StepError as error:
        message = str(error)
    except OSError as error:  # a full disk, say
        message = (
            f"{error.filename or output}: {error.strerror}; mend that and run the recipe again"
        )
    sys.stderr.write(f"{os.environ.get('RECIPE', 'step.py')}: {message}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
