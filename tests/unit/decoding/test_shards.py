"""What processes tell each other of translations: everything, to the last bit."""

from __future__ import annotations

import json

import numpy as np

from nmtflex.decoding.shards import pack, unpack
from nmtflex.decoding.stream import Chunk
from nmtflex.decoding.tally import Tally
from nmtflex.decoding.traces import SentenceTrace
from nmtflex.decoding.translation import Translation


def test_a_chunk_survives_json():
    trace = SentenceTrace(
        np.array([3, 4]), np.array([[0.1, 1 / 3]]), None, np.array([1e-17]), None, None, None, None
    )
    best = Translation(
        "ä b", ["ä", "b"], ["ä", "b"], -1 / 3, -2 / 3, trace, [4, 5], [1, 1], 0, [1, 0],
        links=[(0, 1)], log_probabilities=[-1 / 3] * 2, word_scores=[1 / 7, 0.5],
        confidence=2 / 7, unaligned=0.5,
    )  # fmt: skip
    other = Translation("", [], [], 0.0, -0.1, None)
    tally = Tally.from_lists([1 / 3, 2.0], [0, 7], [8 / 3, 16.0])
    chunk = Chunk(["x", ""], [[best, other], [other]], tally)
    found = unpack(json.loads(json.dumps(pack(chunk))))
    assert found.lines == chunk.lines
    assert found.tally.to_lists() == ([1 / 3, 2.0], [0, 7], [8 / 3, 16.0])
    again = found.found[0][0]
    assert again._replace(trace=None) == best._replace(trace=None)
    for one, two in zip(again.trace, trace, strict=True):
        assert (one is None and two is None) or (one.dtype == two.dtype and (one == two).all())
    empty = ("ids", "cuts", "attended", "links", "log_probabilities", "word_scores")
    assert found.found[1] == [other._replace(**{name: [] for name in empty})]
