"""What every command has: --quiet, the version, completion; and the word about compiling."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import nmtflex
from nmtflex.cli.console import note, stderr
from nmtflex.compiling import Notice


def test_short_version(command_line):
    assert command_line("-V") == (0, f"nmtflex {nmtflex.__version__}\n", "")


@pytest.mark.parametrize("flag", ["--quiet", "-q"])
def test_quiet_leaves_the_product_alone(command_line, tiny_run, flag):
    loud = command_line("eval", tiny_run, "--split", "test")
    quiet = command_line("eval", tiny_run, "--split", "test", flag)
    assert "3 sentences of test" in loud.err
    assert quiet.code == 0
    assert all("warning: " in line for line in quiet.err.splitlines())
    assert quiet.out == loud.out
    assert "3 sentences" in command_line("eval", tiny_run).err  # it does not last


def test_quiet_keeps_warnings_and_errors(command_line, tmp_path, capsys):
    assert command_line("eval", tmp_path / "none", "--quiet").err.startswith("nmtflex: error: ")
    stderr.quiet = True
    note("warning: this remains")
    note("this does not")
    assert stderr.quiet
    stderr.quiet = False
    assert capsys.readouterr().err == "nmtflex: warning: this remains\n"


def test_quiet_in_a_file(command_line, tiny_run, tmp_path):
    path = tmp_path / "options.toml"
    path.write_text("quiet = true\n")
    found = command_line("eval", tiny_run, "--config", path).err
    assert all("warning: " in line for line in found.splitlines())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell):
    program = "from nmtflex.cli.app import main; import sys; sys.argv[0] = 'nmtflex'; main()"
    start = [sys.executable, "-c", program]
    words = {"bash": "COMP_WORDS", "zsh": "_TYPER_COMPLETE_ARGS", "fish": "_TYPER_COMPLETE_ARGS"}
    asked = {
        "_NMTFLEX_COMPLETE": f"complete_{shell}",
        words[shell]: "nmtflex train --encoder-",
        "COMP_CWORD": "2",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    done = subprocess.run(
        start, env={**os.environ, **asked}, capture_output=True, text=True, check=False
    )
    for option in ("--encoder-size", "--encoder-layers", "--encoder-scoring"):
        assert option in done.stdout
    assert "--decoder-size" not in done.stdout
    assert done.stderr == ""


def test_compiling_is_told_once_by_the_first_process(monkeypatch):
    monkeypatch.delenv("NMTFLEX_COMPILE_NOTICE", raising=False)
    monkeypatch.delenv("RANK", raising=False)
    told: list[str] = []
    notice = Notice(told.append)
    notice.compiling()
    notice.compiling()
    assert len(told) == 1
    assert "warm-up" in told[0]
    for name, value in (("RANK", "1"), ("NMTFLEX_COMPILE_NOTICE", "off")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            Notice(told.append).compiling()
    assert len(told) == 1


def test_numba_s_compiling_is_noticed(monkeypatch):
    import numba

    from nmtflex.compiling import NOTICE_OF_COMPILING

    told: list[str] = []
    monkeypatch.delenv("NMTFLEX_COMPILE_NOTICE", raising=False)
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.setattr(NOTICE_OF_COMPILING, "tell", told.append)
    monkeypatch.setattr(NOTICE_OF_COMPILING, "_told", False)
    twice = numba.njit(lambda x: 2 * x)
    assert twice(3) == 6
    assert len(told) == 1


def test_warm_up_compiles_what_is_needed_and_nothing_twice(command_line):
    from nmtflex.ops.attend import loops
    from nmtflex.ops.recurrent import loops as pointwise_loops
    from nmtflex.ops.recurrent import ssru_loops

    outcome = command_line("warm-up", "--threads", 1)
    assert (outcome.code, outcome.out) == (0, ""), outcome.err
    assert outcome.err.count("\n") == 1
    entries = (
        *(loops.forward, loops.backward_queries, pointwise_loops.lstm, pointwise_loops.gate),
        *(ssru_loops.ssru, ssru_loops.backward_ssru),
    )
    before = [len(entry.signatures) for entry in entries]
    assert min(before) >= 1
    assert command_line("warm-up", "--threads", 1).code == 0
    assert [len(entry.signatures) for entry in entries] == before
