from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtflex.errors import DataError
from nmtflex.text.normalize import NORMALIZERS, build_normalizer
from nmtflex.text.width import FULL_TO_HALF, HALF_TO_FULL

# Characters that interact: marks in and out of order, Korean letters, half-width voicing marks.
MEETING = st.text([
    *"aAe\u0301\u0316\u0315\u0345\u0323ｶﾞﾊﾟか\u3099\u1112\u1161\u11ab\uac00\u0dd9\u0dcf\ufb01①㍿\u3000\ud800",
])


def test_every_ascii_sign_has_a_full_width():
    for code in range(0x21, 0x7F):
        usual = chr(code + 0xFEE0)
        expected = {'"': "”", "'": "’", "-": "−", "~": "〜"}.get(chr(code), usual)
        assert chr(code).translate(HALF_TO_FULL) == expected
    assert "Az 09!@[".translate(HALF_TO_FULL) == "Ａｚ ０９！＠［"
    assert "ｶﾅ\u3000\u00a5é".translate(HALF_TO_FULL) == "ｶﾅ\u3000\u00a5é"


def test_what_has_a_half_width():
    for code in range(0x20, 0x7F):
        assert chr(code).translate(HALF_TO_FULL).translate(FULL_TO_HALF) == chr(code)
    assert "“”‘’—‐−〜〔〕〈〉′″゛´\u00a5\u3000".translate(FULL_TO_HALF) == "\"\"''---~[]<>'\"\"'\\ "
    assert (
        "＂＇－～ｶﾅ、。「」【】".translate(FULL_TO_HALF) == "＂＇－～ｶﾅ、。「」【】"
    )  # WAT leaves these


@pytest.mark.parametrize(
    ("name", "line", "expected"),
    [
        ("none", "Ａ ｶﾞ①", "Ａ ｶﾞ①"),
        ("nfkc", "Ａ\u3000ｶﾞ①㍿e\u0301", "A ガ1株式会社é"),
        ("wat-width", "A-1 ｶﾞ①", "Ａ−１ ｶﾞ①"),
        ("wat-half-width", "Ａ−１\u3000“ｶﾞ”", 'A-1 "ｶﾞ"'),
    ],
)
def test_by_hand(name, line, expected):
    assert build_normalizer(name)(line) == expected


@given(st.sampled_from(sorted(NORMALIZERS)), MEETING | st.text())
def test_every_character_has_its_place_in_the_raw_line(name, line):
    normalizer = build_normalizer(name)
    text, places = normalizer.align(line)
    assert text == normalizer(line)
    assert len(places) == len(text)
    assert all(0 <= start < end <= len(line) for start, end in places)
    assert list(places) == sorted(places)


@given(MEETING)
def test_places_of_nfkc_are_of_what_became_the_text(line):
    text, places = build_normalizer("nfkc").align(line)
    for place in set(places):
        made = "".join(text[number] for number, each in enumerate(places) if each == place)
        if place[1] - place[0] > 1 or len(made) > 1:
            assert unicodedata.normalize("NFKC", line[slice(*place)]) == made


def test_places_by_hand():
    text, places = build_normalizer("nfkc").align("aｶﾞ㍿e\u0301b")
    assert text == "aガ株式会社éb"
    assert places == [(0, 1), (1, 3), *[(3, 4)] * 4, (4, 6), (6, 7)]


def test_a_million_marks_on_one_letter():
    text, places = build_normalizer("nfkc").align("x" + "\u0301" * 1_000_000)
    assert len(text) == len(places) == 1_000_001


def test_an_unknown_normalisation_names_the_nearest():
    with pytest.raises(DataError, match="unknown normalisation 'nfk'; did you mean nfkc"):
        build_normalizer("nfk")
