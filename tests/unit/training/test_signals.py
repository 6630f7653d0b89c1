"""Signals while training."""

from __future__ import annotations

import os
import signal

import pytest
import torch.distributed as dist

from nmtflex.errors import RunError
from nmtflex.launch import Launch
from nmtflex.ranks import Ranks
from nmtflex.training.signals import StopSignals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_is_noted_and_the_handlers_come_back(number):
    before = signal.getsignal(number)
    with StopSignals() as signals:
        assert signals.received is None
        os.kill(os.getpid(), number)
        assert signals.received == number
        assert signal.getsignal(number) == before  # a second one ends the program
    assert signal.getsignal(number) == before


def test_the_launcher_cannot_end_a_process_that_has_lost_another_before_it_says_so(monkeypatch):
    def lose(*_):
        raise RuntimeError("Connection closed by peer [127.0.0.1]:1234")

    monkeypatch.setattr(dist, "all_reduce", lose)
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(RunError, match="Connection closed by peer"), StopSignals():
            Ranks(Launch(0, 2)).sum([1.0])
        os.kill(os.getpid(), signal.SIGTERM)  # its default would end this process
    finally:
        signal.signal(signal.SIGTERM, before)
