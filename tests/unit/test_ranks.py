"""Shares of the work, and how processes meet."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.distributed import HashStore

from nmtflex import meeting
from nmtflex.config import DeviceConfig
from nmtflex.errors import OptionError
from nmtflex.launch import Launch
from nmtflex.meeting import meet
from nmtflex.ranks import Ranks, merge

SIZES = st.integers(1, 9)


def shares(items, size):
    return [Ranks(Launch(rank, size)).share(items) for rank in range(size)]


@given(st.lists(st.integers()), SIZES)
def test_shares_lose_nothing_double_nothing_and_are_even(items, size):
    parts = shares(items, size)
    assert merge(parts) == items
    assert sum(map(len, parts)) == len(items)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@given(st.lists(st.integers(1, 50), min_size=1), SIZES)
def test_shares_of_items_by_length_differ_by_less_than_the_longest(lengths, size):
    totals = [int(part.sum()) for part in shares(np.sort(np.array(lengths)), size)]
    assert max(totals) - min(totals) <= max(lengths)


def test_one_process_alone_exchanges_nothing():
    ranks = Ranks()
    weight = torch.nn.Parameter(torch.ones(2))
    ranks.sum_gradients([weight])
    ranks.spread([weight])
    assert ranks.alone
    assert ranks.first
    assert weight.grad is None
    assert ranks.sum([1, 2.5]) == [1, 2.5]
    assert ranks.from_first({"a": 1}) == {"a": 1}
    assert ranks.gather("x") == ["x"]
    assert ranks.agree(None) is None
    assert ranks.clock(1.5) == 1.5
    assert ranks.device(DeviceConfig(device="cpu")) == DeviceConfig(device="cpu")
    assert not torch.distributed.is_initialized()


def test_processes_of_a_machine_share_its_cores(monkeypatch):
    monkeypatch.setattr("nmtflex.ranks.usable_cores", lambda: 7)
    ranks = Ranks(Launch(2, 6, 0, 3))
    assert ranks.device(DeviceConfig(device="cpu")).threads == 2
    assert ranks.device(DeviceConfig(device="cpu", threads=5)).threads == 5
    assert Ranks(Launch(0, 9, 0, 9)).device(DeviceConfig(device="cpu")).threads == 1


def test_one_gpu_for_several_processes_is_refused():
    with pytest.raises(OptionError, match="cuda:1 names one GPU for 2 processes"):
        Ranks(Launch(0, 2, 0, 2)).device(DeviceConfig(device="cuda:1"))


def names(store, size, late=()):
    """Let processes meet, in threads; the late ones come after the others have begun to look."""
    order = [rank for rank in range(size) if rank not in late] + list(late)
    with ThreadPoolExecutor(size) as pool:
        found = {rank: pool.submit(meet, store, rank, size) for rank in order}
    for rank in order:
        found[rank].result().set(f"of{rank}", str(rank))
    any_store = found[0].result()
    return [any_store.get(f"of{rank}") for rank in range(size)]


@pytest.mark.parametrize("late", [[0], [2], [1, 0]])
def test_processes_meet_in_a_store_that_keeps_earlier_attempts(late):
    store = HashStore()
    assert names(store, 3) == [b"0", b"1", b"2"]
    assert names(store, 3, late) == [b"0", b"1", b"2"]
    assert names(store, 2) == [b"0", b"1"]


def test_each_attempt_has_a_store_of_its_own():
    store = HashStore()
    meet(store, 0, 1).set("address", "old")
    assert not meet(store, 0, 1).check(["address"])


def test_a_process_that_does_not_come_is_not_waited_for_without_end(monkeypatch):
    monkeypatch.setattr(meeting, "PATIENCE", 0.1)
    with pytest.raises(RuntimeError, match="not all 2 processes"):
        meet(HashStore(), 0, 2)
