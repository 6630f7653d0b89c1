"""The throw-away command, in the place of nmtflex's own."""

from __future__ import annotations

import pytest
from toy_command import Toy

from nmtflex.cli import app as nmtflex_app


@pytest.fixture
def toy(monkeypatch):
    toy = Toy()
    monkeypatch.setattr(nmtflex_app, "app", toy.app)
    monkeypatch.setattr(nmtflex_app, "_register", lambda: None)
    return toy
