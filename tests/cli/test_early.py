"""What goes wrong before the work begins: one line, and soon."""

from __future__ import annotations

import errno
import subprocess
import sys

import pytest


def run(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("module", ["typer", "nmtflex.cli.train", "rich.console"])
def test_ctrl_c_during_the_imports_is_one_line(module):
    program = (
        "import runpy, sys\n"
        "class Interrupting:\n"
        "    wanted = sys.argv.pop(1)\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == self.wanted:\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "runpy.run_module('nmtflex', run_name='__main__')\n"
    )
    found = run(program, module, "--help")
    assert (found.returncode, found.stdout) == (130, "")
    assert found.stderr == "nmtflex: error: interrupted\n"


def test_data_that_is_not_there_is_named_before_pytorch_is_imported(tmp_path):
    program = (
        "import sys\n"
        "from nmtflex.cli.app import main\n"
        "code = main(sys.argv[1:])\n"
        "sys.exit('torch was imported' if 'torch' in sys.modules else code)\n"
    )
    found = run(program, "train", tmp_path / "nowhere", "--run", tmp_path / "run")
    assert found.returncode == 1
    assert found.stderr.count("\n") == 1
    assert f"{tmp_path / 'nowhere'}: no such folder" in found.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["report", "RUN", "--out", "FILE.html"],
        ["eval", "RUN", "--output", "FILE.txt"],
        ["eval", "RUN", "--sentence-scores", "FILE.tsv"],
        ["plot", "RUN", "--output", "FILE.png"],
    ],
    ids=lambda words: " ".join(words[::2]),
)
def test_a_place_that_cannot_be_written_is_found_first(
    command_line, tiny_run, tmp_path, monkeypatch, command
):
    def refuse(**_):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    file = tmp_path / "made"
    words = [word.replace("RUN", str(tiny_run)).replace("FILE", str(file)) for word in command]
    outcome = command_line(*words)
    assert outcome.code == 2
    assert outcome.err == (
        f"nmtflex: error: {words[-2]} {words[-1]}: cannot be written: Read-only file system\n"
    )
