"""Flag over default; every wrong option is one line that names what is right."""

from __future__ import annotations

import errno
import sys
from pathlib import Path

import pytest
from toy_command import Mechanism, Slots, ToyConfig, Window, built, complaint

from nmtflex.errors import DataError


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


def test_mechanism_with_own_options(toy, command_line):
    seen = built(toy, command_line, "--mechanism", "slots", "--K", "64", "--no-positions")
    assert seen.mechanism == Slots(num_slots=64, positions=False)


def test_option_that_two_mechanisms_have(toy, command_line):
    seen = built(toy, command_line, "--mechanism", "window", "--score", "general")
    assert seen.mechanism == Window(width=10, score="general")


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
    ("flag", "value", "ours", "clicks"),
    [
        ("--hidden-size", "8k", "is not an integer", "is not a valid integer."),
        ("--hidden-size", "8.5", "is not an integer", "is not a valid integer."),
        ("--rate", "fast", "is not a number", "is not a valid float."),
    ],
)
def test_words_that_are_no_numbers(toy, command_line, flag, value, ours, clicks):
    message = complaint(command_line, "work", "here", flag, value)
    start = f"Invalid value for '{flag}': {value!r}"
    assert message in (f"{start} {ours}", f"{start} {clicks}")


def test_a_number_that_no_reader_should_follow(toy, command_line):
    message = complaint(command_line, "work", "here", "--hidden-size", 5000 * "9")
    assert message.startswith("Invalid value for '--hidden-size': '999")
    assert message.endswith(("9' is too large", "9' is not a valid integer."))


@pytest.mark.parametrize(
    ("fault", "code", "message"),
    [
        (DataError("train.ja:7: bad"), 1, "train.ja:7: bad"),
        (DataError("two\n  lines"), 1, "two lines"),
        (
            OSError(errno.ENOSPC, "No space left on device", "a/b"),
            1,
            "a/b: No space left on device; free some space and run the same command again",
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
