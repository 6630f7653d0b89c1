"""The ``nmtflex`` command: its subcommands, and what it does with errors."""

from __future__ import annotations

import errno
import importlib
import io
import os
import re
import shlex
import sys
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
    help="Neural machine translation whose attention is cheap.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

LONGEST_MESSAGE = 4000  # characters
INTERRUPTED = 130  # exit code, 128 + SIGINT

# The modules of the subcommands, in the order in which a run goes; --help lists them so.
COMMANDS = (
    "generate",
    "preprocess",
    "train",
    "finetune",
    "average",
    "info",
    "translate",
    "evaluate",
    "sweep",
    "bench",
    "plot",
    "report",
    "score",
    "tokenize",
    "warm_up",
)

# What newer Typers, which ask pydantic, tell of a value that should be a number.
NO_NUMBER = {
    "int_parsing": "is no whole number",
    "int_parsing_size": "is too large a number",
    "float_parsing": "is no number",
}

_given: list[str] = []  # the arguments that ``main`` runs with

# The base of what a wrong command line raises. Typer ships its own Click, so there is no module
# to import it from that every version has.
ClickException: type[Exception] = typer.BadParameter.__mro__[2]


def _version(value: bool) -> None:
    if value:
        sys.stdout.write(f"nmtflex {nmtflex.__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", "-V", help="Print the version.", callback=_version, is_eager=True
    ),
) -> None:
    """Neural machine translation whose attention is cheap."""


def given_arguments() -> list[str]:
    """Return the arguments of the command line that is being run."""
    return list(_given)


def given_line() -> str:
    """Return the command line that is being run, as a shell takes it."""
    return shlex.join(["nmtflex", *_given])


def main(arguments: list[str] | None = None) -> int:
    """Run one command line and return its exit code: 0, 1 (data, run) or 2 (options)."""
    _register()
    _open_closed_streams()
    arguments = sys.argv[1:] if arguments is None else arguments
    _given[:] = arguments
    if isinstance(sys.stdout, io.TextIOWrapper):  # whatever the locale and the system say
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    try:
        check_shared(arguments)
        code = app(arguments or ["--help"], standalone_mode=False)
        sys.stdout.flush()
        if code == INTERRUPTED:  # what newer Typers make of Ctrl-C
            _complain("interrupted")
    except (Exception, KeyboardInterrupt) as error:
        code = _report(error)
    return code or 0


def _report(error: BaseException) -> int:
    """Print a user's mistake as one line and return the exit code; anything else is a bug.

    Of several processes one prints it.
    """
    complain = _complain if SPEAKER.speaks() else _keep_quiet
    if isinstance(error, typer.Abort) and error.__cause__:
        error = error.__cause__  # Click makes it of Ctrl-C, but of a stray EOFError too
    if isinstance(error, NmtflexError):
        complain(str(error))
        return error.exit_code
    if isinstance(error, ClickException):
        message = _command_line_message(error)
        if not message:  # no command was given, and Typer has printed the help
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
            return 1  # whoever read the output has gone, and needs no message
        if error.errno == errno.EBADF:
            complain("standard output is closed")
            return 1
        where = f"{error.filename}: " if error.filename else ""
        remedy = "; make room and give the same command again" if is_full(error) else ""
        complain(f"{where}{error.strerror or error}{remedy}")
        return 1
    raise error


def _is_out_of_memory(error: BaseException) -> bool:
    """Whether memory was short, in Python or, where it is loaded, in PyTorch."""
    if "torch" not in sys.modules:
        return isinstance(error, MemoryError)
    from nmtflex.training.memory import is_out_of_memory

    return is_out_of_memory(error)


def _keep_quiet(message: str) -> None:
    """Leave it to another process to print the line."""


def _complain(message: str) -> None:
    """Print one line, without what a terminal would obey, and not endless: it may quote a file."""
    line = re.sub(r"\s*\n\s*", " ", message)
    line = re.sub(r"[\0-\x1f\x7f-\x9f]", lambda found: repr(found[0])[1:-1], line)
    if len(line) > LONGEST_MESSAGE:
        half = LONGEST_MESSAGE // 2
        line = f"{line[:half]} [...] {line[-half:]}"
    sys.stderr.write(f"nmtflex: error: {line}\n")


def _command_line_message(error: Exception) -> str:
    """Return Click's message, with the nearest option or the value where it leaves them out."""
    if name := getattr(error, "option_name", None) if hasattr(error, "possibilities") else None:
        context: Any = getattr(error, "ctx", None)
        known = [flag for item in context.command.params for flag in item.opts] if context else []
        return (
            f"No such option: {name}{nearest(name, [flag for flag in known if flag[:2] == '--'])}"
        )
    message: str = error.format_message()  # type: ignore[attr-defined]
    message = message.replace("Value error, ", "")  # pydantic's own words for any refusal
    refusal: Any = error.__cause__
    if hasattr(refusal, "errors"):
        message = _in_our_words(message, refusal.errors()[0])
    if found := re.search(r"'(\S+)' is not one of (.+?)\.?$", message):
        word, choices = found.groups()
        return message.removesuffix(".") + nearest(word, re.findall("'([^']+)'", choices))
    return message


def _in_our_words(message: str, refusal: dict[str, Any]) -> str:
    """Return a message of pydantic's with our words for what is no number, and with the value."""
    value = repr(refusal["input"])
    if ours := NO_NUMBER.get(refusal["type"]):
        return message.replace(refusal["msg"], f"{value} {ours}")
    return message if value in message else f"{message}: {value}"


def _open_closed_streams() -> None:
    """Open what the caller closed: no input, output that fails, messages that nobody reads."""
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open()  # noqa: SIM115
    if sys.stdout is None:  # whatever is written is lost, and that is told
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115


def _discard_output() -> None:
    """Keep the interpreter from writing to a closed pipe or a full disk once more at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _register() -> None:
    """Import the subcommands; each adds itself to ``app`` and imports torch only when it runs."""
    for name in COMMANDS:
        importlib.import_module(f"nmtflex.cli.{name}")
