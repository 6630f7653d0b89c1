"""How long the stages of a command took."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from nmtflex.cli.stages import Stages, stages


def test_a_stage_lasts_until_the_next(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    shown = []
    progress = Stages(lambda *stage: shown.append(stage))
    for stage, done, seconds in (("read", 1, 2.0), ("learn", 0, 5.0), ("read", 2, 1.0)):
        progress(stage, done)
        now[0] += seconds
    progress("end", 0)
    assert progress.seconds["learn"] == pytest.approx(5)
    assert progress.seconds["read"] == pytest.approx(3)
    assert progress.total == pytest.approx(8)
    assert shown == [("read", 1), ("learn", 0), ("read", 2), ("end", 0)]


def test_a_terminal_counts_what_a_stage_counts(monkeypatch):
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80)
    monkeypatch.setattr("nmtflex.cli.stages.stderr", console)
    with stages() as progress:
        progress("learning BPE", 1240)
        progress("encoding valid", 1)
    assert "learning BPE: 1,240 merges" in out.getvalue()
    assert "encoding valid: 1 pair " in out.getvalue()
