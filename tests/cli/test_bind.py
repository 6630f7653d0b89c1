"""Flag over file over default; every wrong option is one line that names what is right."""

from __future__ import annotations

import dataclasses
import errno
import sys
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import pytest
import typer

from nmtflex.cli import app as nmtflex_app
from nmtflex.cli.bind import command
from nmtflex.config import Config, Opt, Variant
from nmtflex.errors import DataError


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Mechanism(Variant):
    """A family of three."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Whole(Mechanism):
    """Options of the whole mechanism."""

    kind: ClassVar[str] = "whole"

    score: Annotated[Literal["dot", "general"], Opt("Score [function].")] = "dot"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Window(Mechanism):
    """Options of the window mechanism."""

    kind: ClassVar[str] = "window"

    width: Annotated[int, Opt("Positions to either side.", ge=1)] = 10
    score: Annotated[Literal["dot", "general"], Opt("Score [function].")] = "dot"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Slots(Mechanism):
    """Options of the slot mechanism."""

    kind: ClassVar[str] = "slots"

    num_slots: Annotated[int, Opt("Memory slots.", ge=1, flag="--K")] = 32
    positions: Annotated[bool, Opt("Encode positions.")] = True


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ToyConfig(Config):
    """The toy's options."""

    place: Annotated[Path, Opt("Where.", argument=True)]
    mechanism: Annotated[Mechanism, Opt("Which mechanism.")] = Whole()
    hidden_size: Annotated[int, Opt("Units [of a layer].", ge=1)] = 8
    rate: Annotated[float, Opt("Rate.", gt=0, lt=1)] = 0.5
    cell: Annotated[Literal["lstm", "gru"], Opt("Cell.")] = "lstm"
    tie: Annotated[bool, Opt("Tie.")] = False
    joint: Annotated[bool, Opt("Together.", flag="--joint/--separate")] = False
    corpora: Annotated[list[Path], Opt("Corpora.")] = dataclasses.field(default_factory=list)
    steps: Annotated[int | None, Opt("Steps.", ge=1)] = None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class OtherConfig(Config):
    """More options."""

    seed: Annotated[int, Opt("Seed.", ge=0)] = 1


class Toy:
    """A throw-away app whose one command keeps what it was called with."""

    def __init__(self) -> None:
        self.app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        self.app.callback()(lambda: None)
        self.seen: ToyConfig | None = None
        self.seed = 0
        self.verbose = False
        self.fault: BaseException | None = None
        command(self.app, "work")(self.work)
        command(self.app, "fail")(self.fail)

    def work(
        self,
        toy: ToyConfig,
        other: OtherConfig,
        verbose: Annotated[bool, typer.Option("--verbose", help="Say more.")] = False,
    ) -> None:
        """Work [hard]."""
        self.seen, self.seed, self.verbose = toy, other.seed, verbose

    def fail(self) -> None:
        """Fail."""
        assert self.fault is not None
        raise self.fault


@pytest.fixture
def toy(monkeypatch):
    toy = Toy()
    monkeypatch.setattr(nmtflex_app, "app", toy.app)
    monkeypatch.setattr(nmtflex_app, "_register", lambda: None)
    return toy


@pytest.fixture
def options_file(tmp_path):
    def write(text: str) -> Path:
        path = tmp_path / "options.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def built(toy, command_line, *arguments) -> ToyConfig:
    outcome = command_line("work", "here", *arguments)
    assert (outcome.code, outcome.out) == (0, ""), outcome.err
    return toy.seen


def complaint(command_line, *arguments, code=2) -> str:
    """Return the message of a command line that fails with one line."""
    outcome = command_line(*arguments)
    assert outcome.code == code
    assert outcome.out == ""
    start, _, message = outcome.err.rpartition("nmtflex: error: ")
    assert start == ""
    assert message.count("\n") == 1
    assert message.endswith("\n")
    return message[:-1]


def test_defaults(toy, command_line):
    assert built(toy, command_line) == ToyConfig(place=Path("here"))
    assert toy.seed == 1
    assert not toy.verbose


def test_flags(toy, command_line):
    seen = built(
        toy,
        command_line,
        *("--hidden-size", "3", "--rate", "0.25", "--cell", "gru", "--tie", "--joint"),
        *("--corpora", "a", "--corpora", "b", "--steps", "7", "--seed", "5", "--verbose"),
    )
    assert seen == ToyConfig(
        place=Path("here"),
        hidden_size=3,
        rate=0.25,
        cell="gru",
        tie=True,
        joint=True,
        corpora=[Path("a"), Path("b")],
        steps=7,
    )
    assert toy.seed == 5
    assert toy.verbose


def test_flag_over_file_over_default(toy, command_line, options_file):
    path = options_file('hidden-size = 3\nrate = 1e-1\ncell = "gru"\nseed = 4\nverbose = true\n')
    seen = built(toy, command_line, "--config", path, "--rate", "0.2")
    assert (seen.hidden_size, seen.rate, seen.cell, seen.tie) == (3, 0.2, "gru", False)
    assert toy.seed == 4
    assert toy.verbose


def test_a_required_argument_may_come_from_the_file(toy, command_line, options_file):
    path = options_file('place = "there"\ncorpora = ["a", "b"]\nsteps = 2\ntie = true\n')
    assert command_line("work", "-c", path).code == 0
    assert toy.seen == ToyConfig(
        place=Path("there"), corpora=[Path("a"), Path("b")], steps=2, tie=True
    )


def test_one_value_of_a_list_needs_no_brackets_in_the_file(toy, command_line, options_file):
    assert command_line("work", "-c", options_file('place = "there"\ncorpora = "a"\n')).code == 0
    assert toy.seen.corpora == [Path("a")]


def test_off_switch_wins_over_file(toy, command_line, options_file):
    path = options_file("tie = true\njoint = true\n")
    seen = built(toy, command_line, "--config", path, "--no-tie", "--separate")
    assert (seen.tie, seen.joint) == (False, False)


def test_mechanism_with_own_options(toy, command_line):
    seen = built(toy, command_line, "--mechanism", "slots", "--K", "64", "--no-positions")
    assert seen.mechanism == Slots(num_slots=64, positions=False)


def test_option_that_two_mechanisms_have(toy, command_line):
    seen = built(toy, command_line, "--mechanism", "window", "--score", "general")
    assert seen.mechanism == Window(width=10, score="general")


def test_mechanism_table_of_the_file(toy, command_line, options_file):
    path = options_file('[mechanism]\nkind = "window"\nwidth = 3\nscore = "general"\n')
    assert built(toy, command_line, "-c", path).mechanism == Window(width=3, score="general")
    seen = built(toy, command_line, "-c", path, "--width", "4")
    assert seen.mechanism == Window(width=4, score="general")


def test_mechanism_name_alone_in_the_file(toy, command_line, options_file):
    path = options_file('mechanism = "slots"\n')
    assert built(toy, command_line, "-c", path, "--K", "2").mechanism == Slots(num_slots=2)


def test_other_mechanism_drops_the_whole_table(toy, command_line, options_file):
    path = options_file('[mechanism]\nkind = "window"\nwidth = 3\nscore = "general"\n')
    outcome = command_line("work", "here", "-c", path, "--mechanism", "whole")
    assert toy.seen.mechanism == Whole(score="dot")
    assert outcome.err == (
        "nmtflex: --mechanism whole replaces the whole [mechanism] table of the --config file\n"
    )


def test_same_mechanism_keeps_the_table(toy, command_line, options_file):
    path = options_file('[mechanism]\nkind = "window"\nwidth = 3\n')
    outcome = command_line("work", "here", "-c", path, "--mechanism", "window")
    assert toy.seen.mechanism == Window(width=3)
    assert outcome.err == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--width", "4"), "--width belongs to --mechanism window, not to whole"),
        (("--K", "4"), "--K belongs to --mechanism slots, not to whole"),
        (
            ("--mechanism", "slots", "--score", "dot"),
            "--score belongs to --mechanism whole and window, not to slots",
        ),
    ],
)
def test_option_of_another_mechanism(toy, command_line, arguments, message):
    assert complaint(command_line, "work", "here", *arguments) == message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--hidden-size", "0"), "--hidden-size must be at least 1, not 0"),
        (("--rate", "1"), "--rate must be less than 1, not 1.0"),
        (("--rate", "-2"), "--rate must be greater than 0, not -2.0"),
        (("--rate", "nan"), "--rate must be greater than 0, not nan"),
        (("--mechanism", "window", "--width", "0"), "--width must be at least 1, not 0"),
        (("--mechanism", "slots", "--K", "-1"), "--K must be at least 1, not -1"),
        (
            ("--hidden-size", "0", "--rate", "2", "--seed", "-1"),
            "--hidden-size must be at least 1, not 0; --rate must be less than 1, not 2.0; "
            "--seed must be at least 0, not -1",
        ),
    ],
)
def test_out_of_bounds(toy, command_line, arguments, message):
    assert complaint(command_line, "work", "here", *arguments) == message


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("work", "here", "--hiden-size", "4"), ["--hiden-size", "--hidden-size"]),
        (("wrok", "here"), ["'wrok'", "'work'"]),
        (("work", "here", "--hidden-size", "four"), ["'--hidden-size'", "'four'"]),
        (("work", "here", "--cell", "lst"), ["'--cell'", "'lst'", "'lstm'", "'gru'"]),
        (("work", "here", "--mechanism", "windw"), ["'--mechanism': 'windw' is not one of"]),
        (("work", "here", "--mechanism", "windw"), ["'slots'; did you mean window?"]),
        (("work",), ["PLACE"]),
        (("work", "here", "there"), ["there"]),
    ],
)
def test_wrong_command_lines(toy, command_line, arguments, parts):
    message = complaint(command_line, *arguments)
    assert [part for part in parts if part not in message] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hidden-sise = 4", "unknown option 'hidden-sise'; did you mean hidden_size?"),
        ("width = 4", "unknown option 'width'"),
        ('hidden-size = "4"', "option 'hidden_size' must be a whole number, not '4'"),
        ("hidden-size = 4.0", "option 'hidden_size' must be a whole number, not 4.0"),
        ("hidden-size = true", "option 'hidden_size' must be a whole number, not True"),
        ('rate = "fast"', "option 'rate' must be a number, not 'fast'"),
        ("tie = 1", "option 'tie' must be true or false, not 1"),
        ('verbose = "no"', "option 'verbose' must be true or false, not 'no'"),
        ('cell = "lst"', "option 'cell' must be one of lstm, gru, not 'lst'"),
        ("corpora = 3", "option 'corpora' must be a path, not 3"),
        ("corpora = [1]", "option 'corpora' must be a path, not 1"),
        ("[hidden-size]", "option 'hidden_size' must be a whole number, not {}"),
        (
            'mechanism = "windw"',
            "option 'mechanism' needs a kind (whole, window, slots), not {'kind': 'windw'}",
        ),
        (
            "[mechanism]\nwidth = 3",
            "option 'mechanism' needs a kind (whole, window, slots), not {'width': 3}",
        ),
        (
            '[mechanism]\nkind = "window"\nwidht = 3',
            "unknown option 'widht'; did you mean width?",
        ),
        (
            '[mechanism]\nkind = "window"\nwidth = 0',
            "--width must be at least 1, not 0",
        ),
    ],
)
def test_wrong_files(toy, command_line, options_file, text, message):
    path = options_file(text)
    assert complaint(command_line, "work", "here", "-c", path) == f"{path}: {message}"


def test_value_out_of_bounds_in_the_file(toy, command_line, options_file):
    path = options_file("hidden-size = 0")
    message = complaint(command_line, "work", "here", "-c", path)
    assert message == "--hidden-size must be at least 1, not 0"


def test_file_that_is_no_toml(toy, command_line, options_file):
    path = options_file("hidden-size: 4")
    message = complaint(command_line, "work", "here", "-c", path)
    assert message.startswith(f"{path}: not a TOML file: ")


@pytest.mark.parametrize("text", ["a = " + 5000 * "[", "hidden-size = " + 5000 * "9"])
def test_file_that_no_reader_should_follow(toy, command_line, options_file, text):
    path = options_file(text)
    message = complaint(command_line, "work", "here", "-c", path)
    assert message.startswith(f"{path}: not a TOML file: ")
    assert len(message) < 4200


def test_missing_file(toy, command_line, tmp_path):
    path = tmp_path / "missing.toml"
    message = complaint(command_line, "work", "here", "-c", path)
    assert message == f"--config {path}: No such file or directory"


@pytest.mark.parametrize(
    ("fault", "code", "message"),
    [
        (DataError("train.ja:7: bad"), 1, "train.ja:7: bad"),
        (DataError("two\n  lines"), 1, "two lines"),
        (
            OSError(errno.ENOSPC, "No space left on device", "a/b"),
            1,
            "a/b: No space left on device; make room and give the same command again",
        ),
        (OSError("odd"), 1, "odd"),
    ],
)
def test_faults_in_a_command(toy, command_line, fault, code, message):
    toy.fault = fault
    assert complaint(command_line, "fail", code=code) == message


def test_interrupt(toy, command_line):
    toy.fault = KeyboardInterrupt()
    assert command_line("fail").code == 130


@pytest.mark.parametrize("fault", [ZeroDivisionError("a bug"), EOFError("a bug")])
def test_a_bug_keeps_its_traceback(toy, command_line, fault):
    toy.fault = fault
    with pytest.raises(type(fault), match="a bug"):
        command_line("fail")


def test_output_is_utf8_with_plain_line_ends(toy, command_line):
    sys.stdout.reconfigure(encoding="ascii", newline="\r\n")
    command_line("work", "here")
    assert sys.stdout.encoding == "utf-8"


def test_help_keeps_square_brackets(toy, command_line):
    text = " ".join(command_line("work", "--help").out.replace("│", " ").split())
    for part in ("Work [hard].", "Units [of a layer].", "Score [function]. (default dot)"):
        assert part in text
    for panel in ("Mechanism: whole, window", "Mechanism: window", "Mechanism: slots", "The toy's"):
        assert panel in text


def test_no_arguments_print_the_help(toy, command_line):
    assert command_line().out == command_line("--help").out
    assert "work" in command_line().out


def test_variants_in_order_of_definition():
    assert list(Mechanism.variants()) == ["whole", "window", "slots"]
    assert Mechanism.variants()["slots"] is Slots
