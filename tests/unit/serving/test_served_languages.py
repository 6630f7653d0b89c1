"""Ways from language to language, and the language of a text."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtflex.serving.detection import Detector
from nmtflex.serving.languages import Languages, Pair, base_of, english_name

CODES = ["de", "en", "fr", "ja", "zh"]
PAIRS = [Pair(*pair) for pair in itertools.permutations(CODES, 2)]


def shortest(pairs: list[Pair], source: str, target: str) -> int | None:
    """Return how many pairs lead from one language to another, trying all chains of them."""
    reached = {source}
    for length in range(len(CODES)):
        if target in reached:
            return length
        reached |= {pair.target for pair in pairs if pair.source in reached}
    return None


@given(st.lists(st.sampled_from(PAIRS), unique=True, min_size=1, max_size=8))
def test_a_way_is_a_chain_and_no_chain_is_shorter(pairs):
    languages = Languages(pairs)
    for source, target in itertools.product(languages.codes, repeat=2):
        way = languages.way(source, target)
        assert (None if way is None else len(way)) == shortest(pairs, source, target)
        here = source
        for number in way or []:
            assert pairs[number].source == here
            here = pairs[number].target
        assert way is None or here == target


def test_targets_are_what_can_be_reached_and_the_language_itself():
    languages = Languages([Pair("de", "en"), Pair("en", "ja"), Pair("fr", "de")])
    assert languages.codes == ["de", "en", "fr", "ja"]
    assert languages.sources == ["de", "en", "fr"]
    assert {code: languages.targets(code) for code in languages.codes} == {
        "de": ["de", "en", "ja"],
        "en": ["en", "ja"],
        "fr": ["de", "en", "fr", "ja"],
        "ja": ["ja"],
    }


@pytest.mark.parametrize(
    ("served", "asked", "found"),
    [
        (["de", "en"], "DE", "de"),
        (["de_AT", "en"], "de-at", "de_AT"),
        (["de_AT", "en"], "de", "de_AT"),
        (["de", "en"], "de-CH", "de"),
        (["de_AT", "de", "en"], "de", "de"),
        (["de_AT", "en"], "de_CH", None),
        (["de", "en"], "d", None),
        (["de", "en"], "", None),
    ],
)
def test_codes_with_and_without_countries(served, asked, found):
    assert Languages([Pair(*served[-2:]), Pair(*served[:2])]).find(asked) == found


def test_names():
    assert english_name("de") == "German"
    assert english_name("de_AT") == "German (AT)"
    assert english_name("xx1") == "xx1"
    assert base_of("zh-Hant_TW") == "zh"


@pytest.fixture(scope="module")
def detector():
    return Detector(["de_AT", "en", "ja"])


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Das ist ein ganz gewöhnlicher Satz auf Deutsch.", "de_AT"),
        ("This is quite an ordinary sentence in English.", "en"),
        ("これはごく普通の日本語の文です。", "ja"),
    ],
)
def test_a_text_is_in_one_of_the_languages_served(detector, text, language):
    found = detector.ranked(text)
    assert found[0].language == language
    assert {one.language for one in found} == {"de_AT", "en", "ja"}
    assert [one.confidence for one in found] == sorted((x.confidence for x in found), reverse=True)
    assert sum(one.confidence for one in found) == pytest.approx(100, abs=0.2)


@pytest.mark.parametrize("text", ["", "123", "😀 ... \n", "\0\x1b"])
def test_a_text_without_letters_is_as_much_in_one_as_in_another(detector, text):
    assert {(one.language, one.confidence) for one in detector.ranked(text)} == {
        ("de_AT", 0.0),
        ("en", 0.0),
        ("ja", 0.0),
    }


@given(text=st.text(max_size=50))
def test_any_text_has_a_language(detector, text):
    assert len(detector.ranked(text)) == 3


def test_languages_that_the_library_does_not_know_are_never_found():
    assert [one.language for one in Detector(["qqx", "en"]).ranked("Hello there")] == ["en"]


def test_without_languages_that_the_library_knows_there_is_no_answer(monkeypatch, detector):
    monkeypatch.setattr(detector, "_codes", {})
    assert detector.ranked("Hello there") == []
