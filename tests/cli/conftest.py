"""The throw-away command in the place of nmtflex's own; runs of every mechanism, and figures."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer.main
from drawings import texts_of
from toy_command import Toy

from nmtflex.cli import app as nmtflex_app
from nmtflex.config import AttentionConfig


@pytest.fixture
def toy(monkeypatch):
    toy = Toy()
    monkeypatch.setattr(nmtflex_app, "command", lambda: typer.main.get_command(toy.app))
    return toy


@pytest.fixture
def run_of(make_tiny_run):
    """Make a run by the name of its mechanism."""

    def make(kind: str, **options: object) -> Path:
        return make_tiny_run(kind, AttentionConfig.variants()[kind](**options))

    return make


@pytest.fixture
def golden_run() -> Path:
    """Return a run of an older version that ``train`` made."""
    return Path(__file__).parents[1] / "golden" / "bahdanau-global"


@pytest.fixture
def draw(command_line, tmp_path):
    """Draw an SVG and return its texts as one, a line each."""

    def plot(*arguments: object) -> str:
        path = tmp_path / "drawn.svg"
        result = command_line("plot", *arguments, "--output", path)
        assert (result.code, result.out) == (0, ""), result.err
        assert result.err.endswith(f"nmtflex: wrote {path}\n")
        return "\n".join(texts_of(path))

    return plot
