from __future__ import annotations

from pathlib import Path

import pytest

from nmtflex.config import PreprocessConfig
from nmtflex.corpus.filters import Filter, build_filter, describe_reasons


def options(**given):
    return PreprocessConfig(
        out=Path("o"), source_lang="en", target_lang="ja", train=[Path("t")], bpe=9, **given
    )


def test_reasons_are_checked_in_order():
    rules = Filter((2, 3), 1.5)
    assert rules.reason([], ["x"]) == "empty"
    assert rules.reason(["a"] * 3, ["x"]) == "too_long"
    assert rules.reason(["a"] * 2, ["x"] * 4) == "too_long"
    assert rules.reason(["a"] * 2, ["x"]) == "ratio"
    assert rules.reason(["a"] * 2, ["x"] * 3) is None
    assert Filter().reason(["a"] * 999, ["x"]) is None


def test_subwords_are_limited_on_the_sides_that_have_a_limit():
    rules = Filter(max_subwords=(2, 0))
    assert rules.fits(2, 9999)
    assert not rules.fits(3, 1)
    assert not Filter(max_subwords=(2, 3)).fits(2, 4)
    assert Filter().fits(9999, 9999)


@pytest.mark.parametrize(
    ("tokenizers", "with_bpe", "given", "rules"),
    [
        (("none", "moses"), (False, False), {}, Filter((100, 100))),
        (("none", "char"), (True, False), {}, Filter((100, 500), 0, (1000, 0))),
        (("char", "char"), (False, False), {"max_length": 50}, Filter((50, 50))),
        (("char", "none"), (False, True), {"max_subwords": 7}, Filter((500, 100), 0, (0, 7))),
        (
            ("none", "none"),
            (True, True),
            {"max_length": 0, "max_ratio": 2.5, "max_subwords": 0},
            Filter((0, 0), 2.5, (0, 0)),
        ),
    ],
)
def test_defaults_follow_tokenizers_and_bpe(tokenizers, with_bpe, given, rules):
    assert build_filter(options(**given), tokenizers, with_bpe) == rules


def test_reasons_in_words_name_the_limits():
    assert describe_reasons((100, 100), 0)["too_long"] == "longer than 100 tokens"
    assert "100 (source) or 500 (target)" in describe_reasons((100, 500), 0)["too_long"]
    assert describe_reasons((1, 1), 2.5)["ratio"] == "with a length ratio above 2.5"
    assert describe_reasons((0, 0), 0, (9, 9))["subwords"] == "longer than 9 subwords"
    assert describe_reasons((0, 0), 0, (0, 9))["subwords"] == "longer than 9 (target) subwords"


def test_a_rule_that_is_off_is_no_reason():
    assert list(describe_reasons((0, 0), 0)) == ["empty"]
    assert list(describe_reasons((0, 7), 0)) == ["empty", "too_long"]
