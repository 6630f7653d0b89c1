"""The benchmark runs and tells what it timed; times themselves are not tested."""

from __future__ import annotations

import torch

from nmtflex.bench.attend import Case, _rounds, bench_decoding, bench_training
from nmtflex.bench.decoding import clock, now
from nmtflex.ops.launch import wait_for


def test_decoding():
    (row,) = bench_decoding((Case(5, 8, sentences=2, beam=3),), seconds=0)
    assert list(row.milliseconds) == ["expand", "reference", "fused", "penalty", "window"]
    assert all(len(times) >= 3 for times in row.milliseconds.values())
    assert 0 < min(row.milliseconds["fused"]) <= row.median("fused")


def test_training():
    (row,) = bench_training((Case(5, 8, sentences=2, beam=1, steps=2),), seconds=0)
    assert list(row.milliseconds) == ["reference", "fused", "apart", "forward"]
    assert min(row.milliseconds["forward"]) > 0


def test_every_clock_waits_for_the_device_that_it_measures(monkeypatch):
    waited = []
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    second = torch.device("cuda:1")
    wait_for(second)
    now(second)
    clock(second, lambda: None)
    _rounds({"nothing": lambda: None}, "cuda:1", seconds=0, repeats=1)
    assert waited == [second] * (1 + 1 + 2 + 2)
    waited.clear()
    for device in ("cpu", "meta"):
        wait_for(torch.device(device))
    assert waited == []
