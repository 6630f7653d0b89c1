"""Ctrl-C and SIGTERM while training: finish the update, save, then stop."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Self


class StopSignals:
    """Catches the first SIGINT or SIGTERM; a second one ends the program at once."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            if signal.getsignal(number) == self._note:  # nobody has set another one meanwhile
                signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.received = signal.Signals(number)
        for each, handler in self._before.items():
            signal.signal(each, handler)
