from __future__ import annotations

import random
import re

import pytest

from nmtflex.decoding.cut_off import cut_off, looping


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", False),
        ("a b c", False),
        ("a b c d " * 2, False),
        ("a b c d " * 3, True),
        ("x a b c d y a b c d z a b c d", True),
        ("a a a a a", False),  # four in a row stand there twice
        ("a a a a a a", True),
        ("a b c a b c a b c a b c", True),
        ("a b c a b c a b c", False),
    ],
)
def test_a_loop_is_four_tokens_that_occur_three_times(text, expected):
    assert looping(text.split()) is expected


def test_the_same_by_comparing_every_place_with_every_other():
    numbers = random.Random(7)
    for _ in range(200):
        tokens = numbers.choices("abc", weights=[6, 3, 1], k=numbers.randrange(40))
        places = range(len(tokens) - 3)
        times = [sum(tokens[i : i + 4] == tokens[j : j + 4] for j in places) for i in places]
        assert looping(tokens) == any(count >= 3 for count in times)


def test_the_warning_names_options_of_the_caller():
    command = cut_off("7 translations", 5, " (line 2)", flags=True)
    assert re.findall(r"[0-9]+", command) == ["7", "2", "5"]
    assert re.findall(r"--[a-z-]+", command) == [
        "--max-length-ratio", "--max-length", "--retry-loops"
    ]  # fmt: skip
    python = cut_off("7 translations", 5, flags=False)
    assert "--" not in python
    assert "retry_loops=True" in python
    assert "retry_loops" not in cut_off("7 translations", 0, flags=False)
