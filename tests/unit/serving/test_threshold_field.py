"""Thresholds in requests."""

from __future__ import annotations

import math

import pytest

from nmtflex.serving.fields import Refused, take_threshold


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1.5, 1.5),
        (0, 0.0),
        ("0.7", 0.7),
        ("inf", math.inf),
        (math.inf, math.inf),
        ("", None),
        (None, None),
    ],
)
def test_a_threshold_is_a_number_or_inf(value, expected):
    assert take_threshold({"tau": value}) == expected


def test_a_threshold_may_be_left_out():
    assert take_threshold({}) is None


@pytest.mark.parametrize("value", [-1, "auto", math.nan, "nan", True, [1], {}, 10**400, "-inf"])
def test_anything_else_is_refused(value):
    with pytest.raises(Refused, match="tau") as refused:
        take_threshold({"tau": value})
    assert refused.value.status == 400
