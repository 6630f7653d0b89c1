"""Which fonts draw which characters."""

from __future__ import annotations

import pytest

matplotlib = pytest.importorskip("matplotlib")

from nmtflex.figures import fonts  # noqa: E402
from nmtflex.figures.fonts import FAMILIES, cover, describe_font, register_fonts  # noqa: E402


def test_german_greek_and_japanese_have_glyphs():
    register_fonts()
    assert cover("Straße ἀλήθεια τ β 日本語のカタカナ、。１０") == (list(FAMILIES), "")


def test_registering_changes_no_other_figure():
    before = list(matplotlib.rcParams["font.family"])
    register_fonts()
    register_fonts()
    assert matplotlib.rcParams["font.family"] == before
    names = [font.name for font in matplotlib.font_manager.fontManager.ttflist]
    assert names.count("IPAexGothic") == 1


@pytest.fixture
def faces(monkeypatch):
    """Replace the fonts there are: family to characters."""

    def put(**known):
        monkeypatch.setattr(fonts, "_faces", lambda: {key.replace("_", " "): key for key in known})
        monkeypatch.setattr(fonts, "_code_points", lambda name: frozenset(map(ord, known[name])))

    return put


def test_what_no_font_has_is_named_once_in_order(faces):
    faces(DejaVu_Sans="ab", IPAexGothic="猫")
    assert cover("b😀a猫\n b྅😀") == (list(FAMILIES), "྅😀")


def test_others_of_the_system_help_where_the_first_fail(faces):
    faces(DejaVu_Sans="ab", IPAexGothic="猫", Zebra="猫क", Yak="a", Xerus="ख")
    assert cover("a猫क") == ([*FAMILIES, "Zebra"], "")
    assert cover("a猫") == (list(FAMILIES), "")
    assert cover("खकग") == ([*FAMILIES, "Xerus", "Zebra"], "ग")


def test_without_the_japanese_font_its_characters_are_missing(faces):
    faces(DejaVu_Sans="ab")
    assert cover("a猫") == (list(FAMILIES), "猫")


def test_a_font_of_boxes_for_everything_helps_nobody():
    assert cover("\U000e0041")[1] == "\U000e0041"
    assert not any(name.startswith(("cm", "STIX", "Last Resort")) for name in fonts._faces())


def test_characters_are_named_for_a_message():
    assert describe_font("😀") == "'😀' (U+1F600)"
    assert describe_font("abc", most=2) == "'a' (U+0061), 'b' (U+0062) and 1 more"
