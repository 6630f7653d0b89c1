"""What a person sees while training."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from nmtflex.training.display import Display


def show(terminal: bool, width: int = 120) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=width, highlight=False)
    with Display(console, total=10, done=0) as display:
        for update in range(1, 11):
            display.advance(1, update, tokens=100, loss=2.5, norm=0.75)
        display.line("BLEU 30.00  [best]")
    return out.getvalue()


def test_a_terminal_gets_a_bar_with_speed_loss_and_norm():
    text = show(terminal=True)
    assert "10/10" in text
    assert "tokens/s  loss 2.500  norm 0.75" in text


@pytest.mark.parametrize("terminal", [True, False])
def test_lines_are_printed_as_they_are(terminal):
    assert "BLEU 30.00  [best]" in show(terminal)


def test_elsewhere_lines_come_now_and_then(monkeypatch):
    assert show(terminal=False) == "BLEU 30.00  [best]\n"
    clock = iter(range(0, 10_000, 20))  # each look at the clock is 20 seconds later
    monkeypatch.setattr("time.monotonic", lambda: float(next(clock)))
    lines = show(terminal=False).splitlines()
    assert lines[0] == ("epoch 1  update 2 of 10  5 tokens/s  loss 2.500  norm 0.75  left 0:02:40")
