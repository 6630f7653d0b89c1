"""The benchmark runs and tells what it timed; times themselves are not tested."""

from __future__ import annotations

from nmtflex.kernels.bench import Case, bench_decoding, bench_training


def test_decoding():
    (row,) = bench_decoding((Case(5, 8, sentences=2, beam=3),), seconds=0)
    assert list(row.milliseconds) == ["expand", "reference", "fused", "penalty", "window"]
    assert all(len(times) >= 3 for times in row.milliseconds.values())
    assert 0 < row.least("fused") <= row.median("fused")


def test_training():
    (row,) = bench_training((Case(5, 8, sentences=2, beam=1, steps=2),), seconds=0)
    assert list(row.milliseconds) == ["reference", "fused", "apart", "forward"]
    assert row.least("forward") > 0
