"""The garbage collector rests while a program starts, and only then."""

from __future__ import annotations

import gc

import pytest

from nmtflex import __main__ as program
from nmtflex import garbage


@pytest.fixture(autouse=True)
def as_before():
    threshold, enabled = gc.get_threshold(), gc.isenabled()
    yield
    gc.set_threshold(*threshold)
    gc.enable() if enabled else gc.disable()


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_left_as_it_was(enabled):
    gc.enable() if enabled else gc.disable()
    with garbage.uncollected():
        assert not gc.isenabled()
        with garbage.uncollected():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled() == enabled
    with pytest.raises(ValueError, match="fault"), garbage.uncollected():
        raise ValueError("fault")
    assert gc.isenabled() == enabled


def test_a_command_collects_seldom(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["nmtflex", "--version"])
    monkeypatch.setattr(program, "defer_unused", lambda: None)
    gc.set_threshold(700, 9, 8)
    assert program.main() == 0
    assert capsys.readouterr().out.startswith("nmtflex ")
    assert gc.get_threshold() == (garbage.SELDOM, 9, 8)
    assert gc.isenabled()
