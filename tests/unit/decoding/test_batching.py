from __future__ import annotations

import pytest

from nmtflex.decoding.batching import MAX_POSITIONS, batches, buffers
from nmtflex.errors import DataError


def test_batches_go_by_length_and_leave_out_what_is_empty() -> None:
    assert list(batches([3, 0, 5, 1, 4, 0], 2)) == [[2, 4], [0, 3]]
    assert list(batches([0, 0], 2)) == []


def test_long_sentences_make_smaller_batches() -> None:
    half = MAX_POSITIONS // 2
    assert list(batches([1, half, 10 * MAX_POSITIONS, half, 1], 64)) == [[2], [1, 3], [0, 4]]


def test_a_wide_beam_makes_smaller_batches() -> None:
    length = MAX_POSITIONS // 8
    assert [len(batch) for batch in batches([length] * 8, 64)] == [8]
    assert [len(batch) for batch in batches([length] * 8, 64, beam=4)] == [2, 2, 2, 2]


def test_buffers_yield_what_came_before_a_fault() -> None:
    def items():
        yield from range(5)
        raise DataError("line 6 is broken")

    found = buffers(items(), 3)
    assert next(found) == [0, 1, 2]
    assert next(found) == [3, 4]
    with pytest.raises(DataError, match="line 6 is broken"):
        next(found)
    assert list(buffers(range(4), 2)) == [[0, 1], [2, 3]]
    assert list(buffers([], 2)) == []
