"""Flag over file over default; every fault of the file is one line that names what is right."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from toy_command import Slots, ToyConfig, Whole, Window, built, complaint


@pytest.fixture
def options_file(tmp_path):
    def write(text: str) -> Path:
        path = tmp_path / "options.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


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


def test_mechanism_table_of_the_file(toy, command_line, options_file):
    path = options_file('[mechanism]\nkind = "window"\nwidth = 3\nscore = "general"\n')
    assert built(toy, command_line, "-c", path).mechanism == Window(width=3, score="general")
    seen = built(toy, command_line, "-c", path, "--width", "4")
    assert seen.mechanism == Window(width=4, score="general")


def test_mechanism_name_alone_in_the_file(toy, command_line, options_file):
    path = options_file('mechanism = "slots"\n')
    assert built(toy, command_line, "-c", path, "--K", "2").mechanism == Slots(num_slots=2)


def assert_noted(err, *values):
    """Check that there is one note, and that it has these values."""
    assert err.startswith("nmtflex: ")
    assert err.count("\n") == 1
    assert [value for value in values if value not in err] == []


def test_another_mechanism_keeps_what_both_have_alike(toy, command_line, options_file):
    path = options_file('[mechanism]\nkind = "window"\nwidth = 3\nscore = "general"\n')
    outcome = command_line("work", "here", "-c", path, "--mechanism", "whole")
    assert toy.seen.mechanism == Whole(score="general")
    assert_noted(outcome.err, "--mechanism whole", "width", "--config")


def test_options_of_a_kind_may_stand_beside_their_table(toy, command_line, options_file):
    path = options_file('mechanism = "slots"\nnum-slots = 4\n')
    assert built(toy, command_line, "-c", path).mechanism == Slots(num_slots=4)
    path = options_file("width = 4\n")
    assert built(toy, command_line, "-c", path, "--mechanism", "window").mechanism.width == 4
    message = complaint(command_line, "work", "here", "-c", path)
    assert message.startswith("--width belongs to --mechanism window, not to whole; ")
    assert str(path) in message
    assert message.endswith(" --width")


def test_same_mechanism_keeps_the_table(toy, command_line, options_file):
    path = options_file('[mechanism]\nkind = "window"\nwidth = 3\n')
    outcome = command_line("work", "here", "-c", path, "--mechanism", "window")
    assert toy.seen.mechanism == Window(width=3)
    assert outcome.err == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hidden-sise = 4", "unknown option 'hidden-sise'; did you mean hidden_size?"),
        (
            'width = 4\n[mechanism]\nkind = "window"\nwidth = 5',
            "option 'width' has two values: 4 and 5",
        ),
        ('hidden-size = "4"', "option 'hidden_size' must be an integer, not '4'"),
        ("hidden-size = 4.0", "option 'hidden_size' must be an integer, not 4.0"),
        ("hidden-size = true", "option 'hidden_size' must be an integer, not True"),
        ('rate = "fast"', "option 'rate' must be a number, not 'fast'"),
        ("tie = 1", "option 'tie' must be true or false, not 1"),
        ('verbose = "no"', "option 'verbose' must be true or false, not 'no'"),
        ('cell = "lst"', "option 'cell' must be one of lstm, gru, not 'lst'"),
        ("corpora = 3", "option 'corpora' must be a path, not 3"),
        ("corpora = [1]", "option 'corpora' must be a path, not 1"),
        ("[hidden-size]", "option 'hidden_size' must be an integer, not {}"),
        (
            'mechanism = "windw"',
            "option 'mechanism' must be one of whole, window, slots, not 'windw'; "
            "did you mean window?",
        ),
        (
            "[mechanism]\nwidth = 3",
            "option 'mechanism' needs a kind (whole, window, slots)",
        ),
        (
            '[mechanism]\nkind = "window"\nwidht = 3',
            "unknown option 'widht'; did you mean width?",
        ),
        (
            '[mechanism]\nkind = "slots"\nscore = "dot"',
            "option 'score' belongs to mechanism whole and window, not to slots",
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


def test_a_flag_drops_what_does_not_go_with_it(toy, command_line, options_file):
    path = options_file('hours = 3\ndays = ["a"]\n')
    outcome = command_line("work", "here", "-c", path, "--steps", "2")
    assert (toy.seen.steps, toy.seen.hours, toy.seen.days) == (2, None, [])
    assert_noted(outcome.err, "--steps", "hours and days", "--config")


@pytest.mark.parametrize(
    ("text", "arguments", "given"),
    [
        ("steps = 2\nhours = 3\n", (), "--steps, --hours"),
        ("steps = 2\ndays = ['a']\n", ("--seed", "1"), "--steps, --days"),
        ("", ("--steps", "2", "--hours", "3"), ""),
        ("hours = 4\n", ("--steps", "2", "--hours", "3"), ""),
    ],
)
def test_options_of_one_origin_that_do_not_go_together(
    toy, command_line, options_file, text, arguments, given
):
    path = options_file(text)
    message = complaint(command_line, "work", "here", "-c", path, *arguments)
    end = f"; --config {path} sets {given}" if given else ""
    assert message == f"give --steps, or --hours and --days, not both{end}"


@pytest.mark.parametrize(
    ("command", "text", "arguments", "replacing"),
    [
        ("train x --run y", "epochs = 2", "--updates 10", "--updates replaces epochs"),
        ("train x --run y", "updates = 2", "--epochs 10", "--epochs replaces updates"),
        (
            "finetune x --run y",
            'batch-tokens = "auto"',
            "--batch-sentences 3",
            "--batch-sentences replaces batch-tokens",
        ),
        ("eval x", 'wat = "ja"', "--tokenize 13a", "--tokenize replaces wat"),
        (
            "eval",
            'hypothesis = "h"',
            "x",
            "RUNS replaces hypothesis",
        ),
        ("bench", "synthetic = true\nsteps = 3", "x", "RUNS replaces synthetic and steps"),
        ("tokenize", 'tokenizer = "kytea"', "--wat en", "--wat replaces tokenizer"),
        (
            "preprocess --out p --source-lang a --target-lang b --train t",
            "bpe = 9\njoint = true",
            "--like x",
            "--like replaces bpe and joint",
        ),
    ],
)
def test_flags_that_replace_options_of_the_file(
    command_line, monkeypatch, tmp_path, options_file, command, text, arguments, replacing
):
    monkeypatch.chdir(tmp_path)  # nothing of the command line is there
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    path = options_file(text)
    outcome = command_line(*command.split(), "-c", path, *arguments.split())
    note, *faults = outcome.err.splitlines()
    assert_noted(f"{note}\n", *replacing.split(" replaces "), "--config")
    assert [fault for fault in faults if "not both" in fault or "no effect" in fault] == []


def test_value_out_of_bounds_in_the_file(toy, command_line, options_file):
    path = options_file("hidden-size = 0")
    message = complaint(command_line, "work", "here", "-c", path)
    assert message == f"--hidden-size must be at least 1, not 0; --config {path} sets --hidden-size"
    message = complaint(command_line, "work", "here", "-c", path, "--hidden-size", "-1")
    assert message == "--hidden-size must be at least 1, not -1"


def test_fault_of_options_of_the_file_and_of_flags(toy, command_line, options_file):
    path = options_file("hidden-size = 0\nseed = -1\njoint = true")
    message = complaint(command_line, "work", "here", "-c", path, "--rate", "3")
    assert message == (
        "--hidden-size must be at least 1, not 0; --rate must be less than 1, not 3.0; "
        f"--seed must be at least 0, not -1; --config {path} sets --hidden-size, --seed"
    )


def test_byte_order_mark(toy, command_line, options_file):
    path = options_file("\ufeffhidden-size = 5")
    assert built(toy, command_line, "-c", path).hidden_size == 5


def test_file_that_is_no_utf8(toy, command_line, options_file):
    path = options_file("")
    path.write_bytes(b'cell = "l\xffstm"')
    message = complaint(command_line, "work", "here", "-c", path)
    assert message == f"{path}: not valid UTF-8"


def test_file_that_is_no_toml(toy, command_line, options_file):
    path = options_file("hidden-size: 4")
    message = complaint(command_line, "work", "here", "-c", path)
    assert message.startswith(f"{path}: not a TOML file: ")


@pytest.mark.parametrize(
    ("name", "text", "yaml"),
    [
        ("options.toml", "hidden-size: 4", True),
        ("options.toml", "# mine\n\nmechanism:\n  kind: window\n", True),
        ("options.yaml", "- 1", True),
        ("options.toml", "hidden-size = ", False),
    ],
)
def test_yaml_is_called_so(toy, command_line, tmp_path, name, text, yaml):
    path = tmp_path / name
    path.write_text(text)
    message = complaint(command_line, "work", "here", "-c", path)
    assert message.startswith(f"{path}: not a TOML file: ")
    assert ("YAML" in message) == yaml


def test_a_runs_options_are_for_training_alone(toy, command_line, tmp_path):
    path = tmp_path / "config.json"
    path.write_text("{}")
    message = complaint(command_line, "work", "here", "-c", path)
    assert str(path) in message
    assert "train and finetune" in message


@pytest.mark.parametrize(
    "text",
    [
        "a = " + 5000 * "[",
        "hidden-size = " + 5000 * "9",
        f"hidden-size = 0x{5000 * 'f'}",
        "a = [[18446744073709551616]]",
    ],
)
def test_file_that_no_reader_should_follow(toy, command_line, options_file, text):
    path = options_file(text)
    message = complaint(command_line, "work", "here", "-c", path)
    assert message.startswith(f"{path}: not a TOML file: ")
    assert len(message) < 4200


def test_missing_file(toy, command_line, tmp_path):
    path = tmp_path / "missing.toml"
    message = complaint(command_line, "work", "here", "-c", path)
    assert message == f"--config {path}: No such file or directory"
