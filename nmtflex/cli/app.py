"""The ``nmtflex`` command: subcommands and error handling."""

from __future__ import annotations

import errno
import functools
import importlib
import io
import os
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

import nmtflex
from nmtflex.config import nearest
from nmtflex.errors import NmtflexError
from nmtflex.files import is_full
from nmtflex.launch import SPEAKER, check_shared

app = typer.Typer(
    name="nmtflex",
    help="Neural machine translation with cheap attention.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

LONGEST_MESSAGE = 4000  # characters
SIGNALLED = 128  # exit codes beyond it are 128 + a signal
INTERRUPTED = 130  # SIGINT

# Modules of the subcommands, in the order of a typical workflow, which --help keeps.
COMMANDS = (
    "generate",
    "preprocess",
    "train",
    "finetune",
    "average",
    "export",
    "info",
    "translate",
    "calibrate",
    "evaluate",
    "sweep",
    "bench",
    "compare",
    "serve",
    "plot",
    "report",
    "score",
    "tokenize",
    "warm_up",
)

# Our words for what newer Typers, through pydantic, report about values that should be numbers.
NO_NUMBER = {
    "int_parsing": "is not an integer",
    "int_parsing_size": "is too large",
    "float_parsing": "is not a number",
}

_given: list[str] = []  # the arguments of ``main``

# Base class of command-line errors. Newer Typers ship their own Click, so no import path works for
# every version.
ClickException: type[Exception] = typer.BadParameter.__mro__[2]


def _version(value: bool) -> None:
    if value:
        sys.stdout.write(f"nmtflex {nmtflex.__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False,
        "--version",
        "-V",
        help="Print the version and exit.",
        callback=_version,
        is_eager=True,
    ),
) -> None:
    """Neural machine translation with cheap attention."""


def given_arguments() -> list[str]:
    """Return the arguments of the current command line."""
    return list(_given)


def given_line() -> str:
    """Return the current command line, quoted for a shell."""
    return shlex.join(["nmtflex", *_given])


def main(arguments: list[str] | None = None) -> int:
    """Run one command line and return its exit code: 0, 1 (data, run) or 2 (options)."""
    _open_closed_streams()
    arguments = sys.argv[1:] if arguments is None else arguments
    _given[:] = arguments
    if isinstance(sys.stdout, io.TextIOWrapper):  # regardless of locale and system
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    try:
        check_shared(arguments)
        code = command()(arguments or ["--help"], prog_name="nmtflex", standalone_mode=False)
        sys.stdout.flush()
        if code == INTERRUPTED:  # how newer Typers report Ctrl-C
            _complain("interrupted")
    except (Exception, KeyboardInterrupt) as error:
        code = _report(error)
    return code or 0


def _report(error: BaseException) -> int:
    """Print an expected error as one line and return the exit code; reraise any other.

    Of several processes, one prints it.
    """
    complain = _complain if SPEAKER.speaks() else _other_than_first(error)
    if isinstance(error, typer.Abort) and error.__cause__:
        error = error.__cause__  # Click raises it for Ctrl-C, but also for a stray EOFError
    if isinstance(error, NmtflexError):
        complain(str(error))
        return error.exit_code
    if isinstance(error, ClickException):
        message = _command_line_message(error)
        if not message:  # no command was given, so Typer has printed the help
            return 0
        complain(message)
        return 2
    if isinstance(error, KeyboardInterrupt):
        complain("interrupted")
        return INTERRUPTED
    if _is_out_of_memory(error):
        complain(f"not enough memory: {error}" if str(error) else "not enough memory")
        return 1
    if isinstance(error, OSError):
        _discard_output()
        if isinstance(error, BrokenPipeError):
            return 1  # the reader has gone away; no message is needed
        if error.errno == errno.EBADF:
            complain("standard output is closed")
            return 1
        where = f"{error.filename}: " if error.filename else ""
        remedy = "; free some space and run the same command again" if is_full(error) else ""
        complain(f"{where}{error.strerror or error}{remedy}")
        return 1
    raise error


def _is_out_of_memory(error: BaseException) -> bool:
    """Return whether Python, or PyTorch if loaded, ran out of memory."""
    if "torch" not in sys.modules:
        return isinstance(error, MemoryError)
    from nmtflex.training.memory import is_out_of_memory

    return is_out_of_memory(error)


def _other_than_first(error: BaseException) -> Callable[[str], None]:
    """Return what becomes of the message of a process that leaves it to another one.

    A signal ends the launcher too, which waits for all processes: then none waits for another.
    """
    interrupted = isinstance(error, KeyboardInterrupt) or getattr(error, "exit_code", 0) > SIGNALLED
    return _keep_quiet if interrupted else _complain_late


def _keep_quiet(message: str) -> None:
    """Print nothing: another process prints the line."""


def _complain_late(message: str) -> None:
    """Print a line that another process should print, if none does."""
    SPEAKER.wait()
    _complain(message)


def _complain(message: str) -> None:
    """Print one line, escaping control characters and cutting long text, which may quote a file."""
    line = re.sub(r"\s*\n\s*", " ", message)
    line = re.sub(r"[\0-\x1f\x7f-\x9f]", lambda found: repr(found[0])[1:-1], line)
    if len(line) > LONGEST_MESSAGE:
        half = LONGEST_MESSAGE // 2
        line = f"{line[:half]} [...] {line[-half:]}"
    sys.stderr.write(f"nmtflex: error: {line}\n")


def _command_line_message(error: Exception) -> str:
    """Return Click's message with a remedy: the nearest option, the value, or where help is."""
    context: Any = getattr(error, "ctx", None)
    if name := getattr(error, "option_name", None) if hasattr(error, "possibilities") else None:
        known = [flag for item in context.command.params for flag in item.opts] if context else []
        hint = nearest(name, [flag for flag in known if flag[:2] == "--"])
        if not hint and context and context.parent is None:
            hint = "; options stand after the command"
        return f"No such option: {name}{hint or _help(context)}"
    message: str = error.format_message()  # type: ignore[attr-defined]
    message = message.replace("Value error, ", "")  # pydantic's prefix for any error
    refusal: Any = error.__cause__
    if hasattr(refusal, "errors"):
        message = _in_our_words(message, refusal.errors()[0])
    if found := re.search(r"'(\S+)' is not one of (.+?)\.?$", message):
        word, choices = found.groups()
        return message.removesuffix(".") + nearest(word, re.findall("'([^']+)'", choices))
    wrong_value = isinstance(error, typer.BadParameter) and not hasattr(error, "param_type")
    if not message or wrong_value or message.endswith("?"):  # "Did you mean X?"
        return message
    return message.removesuffix(".") + _help(context)


def _help(context: Any) -> str:
    """Return where the help of a command is."""
    return f"; see {context.command_path} --help" if context else ""


def _in_our_words(message: str, refusal: dict[str, Any]) -> str:
    """Return a message from pydantic with our words for numbers, and with the value."""
    value = repr(refusal["input"])
    if ours := NO_NUMBER.get(refusal["type"]):
        return message.replace(refusal["msg"], f"{value} {ours}")
    return message if value in message else f"{message}: {value}"


def _open_closed_streams() -> None:
    """Replace streams that the caller closed: empty input, failing output, discarded messages."""
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open()  # noqa: SIM115
    if sys.stdout is None:  # writing fails, so that lost output is reported
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115


def _discard_output() -> None:
    """Keep the interpreter from flushing to a closed pipe or a full disk again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@functools.cache
def command() -> Any:
    """Return ``nmtflex`` with all subcommands as one Click command, which takes a while to make.

    Each subcommand adds itself to ``app`` and imports torch only when run.
    """
    for name in COMMANDS:
        importlib.import_module(f"nmtflex.cli.{name}")
    return typer.main.get_command(app)
