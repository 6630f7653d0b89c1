"""The benchmark of sizes: its commands are ones that the program takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from nmtflex.cli import app as cli

FOLDER = Path(__file__).parents[2] / "recipes"
STAND_IN = """#!/bin/sh
[ "$1" = --version ] && { echo nmtflex 1.2.3; exit; }
printf '%s\\037' "$@" >> "$LOG"
printf '\\036' >> "$LOG"
"""


@pytest.fixture
def commands(bash, tmp_path):
    program, log = tmp_path / "program", tmp_path / "log"
    program.write_text(STAND_IN)
    program.chmod(0o755)
    done = bash(FOLDER / "benchmark_sizes.sh", NMTFLEX=program, LOG=log, PAIRS=700)
    assert done.returncode == 0, done.stderr
    return [line.split("\x1f")[:-1] for line in log.read_text().split("\x1e")[:-1]]


def test_the_program_takes_every_command(commands, command_line):
    assert [command for command, *_ in commands] == ["generate", "preprocess"] + 3 * ["train"]
    groups = cli.command().commands["generate"].commands
    _, task, *options = commands[0]
    groups[task].make_context(task, options)
    for line in commands[1:]:  # nothing is there to read: exit 1; a mistake in the options is 2
        outcome = command_line(*line)
        assert outcome.code == 1, (line, outcome.err)


def test_the_number_of_pairs_may_be_set(commands):
    assert commands[0][commands[0].index("--train") + 1] == "700"
