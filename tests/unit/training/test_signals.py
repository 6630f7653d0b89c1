"""Signals while training."""

from __future__ import annotations

import os
import signal

import pytest

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
