"""Files of word alignments."""

from __future__ import annotations

import pytest

from nmtflex.corpus.links import Links, check_inside, parse_links, read_links
from nmtflex.errors import DataError


def test_sure_and_possible_links(tmp_path):
    path = tmp_path / "gold"
    path.write_text("0-0 2p1\n\n 3?0  1-2 1-2 1p2\t0-1 \n")
    assert list(read_links(path)) == [
        Links([(0, 0)], [(0, 0), (2, 1)]),
        Links([], []),
        Links([(0, 1), (1, 2)], [(0, 1), (1, 2), (3, 0)]),
    ]


def test_words_from_1():
    assert parse_links("1-1 3p2", "gold:1", base=1) == Links([(0, 0)], [(0, 0), (2, 1)])
    with pytest.raises(DataError, match=r"gold:7: 0-1 .* from 1"):
        parse_links("1-1 0-1", "gold:7", base=1)


@pytest.mark.parametrize(
    "part", ["0", "0-", "-0", "0-1-2", "a-b", "0--1", "0:1", "٣-1", "1-1234567890", "0-1,"]
)
def test_anything_else_is_named(tmp_path, part):
    path = tmp_path / "gold"
    path.write_text(f"0-0\n0-0 {part} 1-1\n")
    with pytest.raises(DataError) as caught:
        list(read_links(path))
    assert f"{path}:2: {part!r}" in str(caught.value)


def test_links_stay_inside_their_sentences():
    check_inside([(0, 0), (2, 1)], (3, 2), "gold:4")
    with pytest.raises(DataError, match=r"gold:4: link 3-1 .* source, which has 3 words.* from 0"):
        check_inside([(0, 0), (3, 1)], (3, 2), "gold:4")
    with pytest.raises(DataError, match=r"gold:4: link 1-3 .* target, which has 2 words.* from 1"):
        check_inside([(0, 2)], (3, 2), "gold:4", base=1)
