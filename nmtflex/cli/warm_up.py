"""``nmtflex warm-up``."""

from __future__ import annotations

import time

from nmtflex.cli.app import app
from nmtflex.cli.bind import command
from nmtflex.cli.console import note, stderr
from nmtflex.compiling import NOTICE_OF_COMPILING
from nmtflex.config import DeviceConfig


@command(app, "warm-up")
def warm_up(device: DeviceConfig) -> None:
    """Compile kernels in advance that training and translating would compile on first use.

    This takes a minute or two, once per machine and version; after that it does nothing.
    """
    from rich.progress import track

    from nmtflex.training.warm_up import warm_up_steps

    NOTICE_OF_COMPILING.tell = lambda _: None  # this command reports it itself
    begin = time.monotonic()
    steps = list(warm_up_steps(device))
    hidden = not stderr.is_terminal
    for step in track(steps, "compiling", console=stderr, transient=True, disable=hidden):
        step.run()
    note(f"everything is compiled ({time.monotonic() - begin:.1f} s)")
