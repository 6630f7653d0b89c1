"""``nmtflex serve``: what keeps it from starting is one line."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys

import pytest


def refused(command_line, *arguments):
    result = command_line("serve", *arguments)
    assert result.out == ""
    assert result.err.count("\n") == 1
    assert result.err.startswith("nmtflex: error: ")
    return result.code, result.err


def test_a_port_that_is_taken(command_line, golden_run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, error = refused(command_line, golden_run, "--port", port)
    assert code == 2
    assert f"--port {port}" in error


def test_a_host_that_is_none(command_line, golden_run):
    code, error = refused(command_line, golden_run, "--host", "no host")
    assert code == 2
    assert "--host no host" in error


@pytest.mark.parametrize("kind", ["missing", "empty", "file"])
def test_a_folder_that_is_no_run(command_line, tmp_path, kind):
    path = tmp_path / "folder"
    if kind == "empty":
        path.mkdir()
    elif kind == "file":
        path.write_text("text")
    code, error = refused(command_line, path)
    assert code == 1
    assert f"{path}: no " in error or f"{path} is " in error  # not a file inside


def test_keys_that_are_needed_must_be_somewhere(command_line, golden_run, tmp_path):
    code, error = refused(command_line, golden_run, "--require-key")
    assert code == 2
    assert "--api-keys" in error
    code, error = refused(command_line, golden_run, "--api-keys", tmp_path / "missing")
    assert code == 2
    assert "missing" in error


def test_without_the_extra_it_says_what_to_install(command_line, golden_run, monkeypatch):
    found = importlib.util.find_spec
    missing = {"uvicorn", "py3langid"}
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in missing else found(name)
    )
    code, error = refused(command_line, golden_run)
    assert code == 2
    assert "py3langid, uvicorn" in error
    assert "pip install 'nmtflex[serve]'" in error


def test_the_process_in_front_does_not_load_torch():
    code = "import sys, nmtflex.serving.server; sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=False, env=os.environ)
    assert done.returncode == 0
