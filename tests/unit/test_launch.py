"""Who a process is among those that torchrun started, and which one speaks."""

from __future__ import annotations

import pytest

from nmtflex.cli.app import _report
from nmtflex.errors import OptionError, StoppedError
from nmtflex.launch import Launch, Speaker, check_shared, find_launch

NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")


@pytest.fixture
def place(monkeypatch):
    def set_place(*values: object) -> None:
        for name, value in zip(NAMES, values, strict=False):
            monkeypatch.setenv(name, str(value))

    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    return set_place


def test_a_plain_start_is_one_process(place):
    assert find_launch() == Launch(0, 1, 0, 1)


def test_torchrun_tells_the_place(place):
    place(3, 4, 1, 2)
    assert find_launch() == Launch(rank=3, size=4, local_rank=1, local_size=2)


def test_without_local_numbers_all_are_on_one_machine(place):
    place(1, 2)
    assert find_launch() == Launch(1, 2, 1, 2)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (("x", 2), "RANK is 'x', not a number"),
        ((0, -2), "WORLD_SIZE is '-2', not a number"),
        ((2, 2), "RANK 2 of WORLD_SIZE 2"),
        ((1, 2, 1, 3), "LOCAL_WORLD_SIZE 3 contradict"),
    ],
)
def test_what_makes_no_sense_is_named(place, values, message):
    place(*values)
    with pytest.raises(OptionError, match=message):
        find_launch()


def test_what_one_process_does_is_refused_to_several(place):
    check_shared(["eval", "run"])
    place(0, 2)
    check_shared(["train", "prepared"])
    check_shared(["--", "translate", "run"])
    check_shared(["--version"])
    with pytest.raises(OptionError, match="eval runs in one process, but torchrun started"):
        check_shared(["eval", "run"])


@pytest.mark.parametrize(("rank", "waits"), [(0, 0), (1, 1)])
def test_of_processes_that_fail_alike_one_speaks(place, command_line, monkeypatch, rank, waits):
    """The other one speaks only if it has waited in vain."""
    waited = []
    monkeypatch.setattr(Speaker, "wait", lambda _: waited.append(rank))
    place(rank, 2)
    outcome = command_line("train", "prepared", "--run", "run", "--clip", "-1")
    assert outcome.code == 2
    assert len(waited) == waits
    assert outcome.err.count("nmtflex: error") == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt(), StoppedError("saved", 15)])
def test_after_a_signal_none_waits(place, monkeypatch, capsys, error):
    """The launcher ends by itself, when all processes have."""
    monkeypatch.setattr(Speaker, "wait", lambda _: pytest.fail("it waits"))
    place(1, 2)
    assert _report(error) > 128
    assert capsys.readouterr().err == ""


def test_once_connected_the_first_to_fail_speaks(place):
    speaker = Speaker()
    speaker.claim = lambda: True
    place(1, 2)
    assert speaker.speaks()
