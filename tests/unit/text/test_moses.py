from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtflex.text.tokenizers import MosesTokenizer, build_tokenizer

ORACLE = Path(__file__).parents[4] / "shared/oracles/moses_tokenizer.jsonl.xz"


@pytest.fixture(scope="module")
def moses():
    """Return what tokenizer.perl -l LANGUAGE does, the tokens parted by spaces."""
    kept = {}

    def tokenize(line, language, **options):
        key = (language, *options.items())
        if key not in kept:
            kept[key] = MosesTokenizer(language, **options)
        text = kept[key].text(line)
        assert kept[key].tokenize(line) == text.split()
        return text

    return tokenize


@pytest.mark.parametrize(
    ("line", "tokens"),
    [
        ("He's here.", "He &apos;s here ."),
        ("the 1990's", "the 1990 &apos;s"),
        ("the '90s", "the &apos; 90s"),
        ("isn't James'", "isn &apos;t James&apos;"),
        ("Mr. Smith", "Mr. Smith"),
        ("I saw Mr.", "I saw Mr ."),  # a period that ends the line is split off
        ("the U.S.", "the U.S ."),
        ("the U.S. Army", "the U.S. Army"),
        ("No. 5 is a No. I said", "No. 5 is a No . I said"),
        ("It ended. then", "It ended. then"),  # before a small letter
        ("It ended. Then", "It ended . Then"),
        ("he said 'yes.'", "he said &apos; yes . &apos; "),  # the script leaves a blank here
        ("Wait ...", "Wait ..."),
        ("a.. b....c", "a .. b .... c"),
        (".", "."),
        ("..", ".."),
        ("A & B | C", "A &amp; B &#124; C"),
        ("x [1] <y>", "x &#91; 1 &#93; &lt; y &gt;"),
        ("10,000, a,b 5,", "10,000 , a , b 5 ,"),
        ("a-b foo@x.org", "a-b foo @ x.org"),
        ("a\x1fb c\x01d\u00a0e\u3000f\u0085g", "ab cd e f g"),
        ("漢字とABC。", "漢字とABC 。"),  # a Chinese character is a letter
        ("½ ² Ⅷ ₤5", "½ ² Ⅷ ₤ 5"),
        ("\u202eabc 👍🏽", "\u202e abc 👍 🏽"),
    ],
)
def test_english_by_hand(moses, line, tokens):
    assert moses(line, "en") == tokens


@pytest.mark.parametrize(
    ("language", "line", "tokens"),
    [
        ("de", "am 23. September ca. 3 km", "am 23. September ca. 3 km"),
        ("de", "geht's", "geht &apos; s"),
        ("de-AT", "ca. 3 km", "ca. 3 km"),
        ("de_DE", "ca. 3 km", "ca. 3 km"),
        ("fr", "l'eau d'1", "l&apos; eau d &apos; 1"),
        ("so", "qof'a", "qof&apos;a"),
        ("fi", "USA:n USA: a:B", "USA:n USA : a : B"),
        ("sv", "S:t Ö. Berg", "S:t Ö . Berg"),
        ("ca", "il·lusio", "il·lusio"),
        ("es", "il·lusio", "il · lusio"),
        ("tdt", "ha'u Ha'A", "ha&apos;u Ha &apos; A"),
        ("xx", "Mr. Smith's", "Mr. Smith &apos; s"),  # unknown: English abbreviations alone
        ("hi", "क्या", "क ् या"),  # the script has no mercy on a virama
    ],
)
def test_other_languages_by_hand(moses, language, line, tokens):
    assert moses(line, language) == tokens


def test_aggressive_hyphens_and_no_escaping(moses):
    line = "well-known a--b 1-2 'x' & <y>"
    options = {"aggressive": True, "escape": False}
    assert moses(line, "en", **options) == "well @-@ known a--b 1 @-@ 2 ' x ' & < y >"
    assert moses(line, "en", aggressive=True).split(" ")[:3] == ["well", "@-@", "known"]
    assert moses(line, "en", escape=False) == "well-known a--b 1-2 ' x ' & < y >"


def test_detokenises_and_unescapes():
    line = "He's \"here\" & [there], isn't he?"
    tokenizer = MosesTokenizer("en")
    assert tokenizer.detokenize(tokenizer.tokenize(line)) == line


def test_an_entity_of_the_text_survives():
    for escape in (True, False):
        tokenizer = MosesTokenizer("en", escape=escape)
        tokens = tokenizer.tokenize("x &amp; y &lt;")
        assert tokenizer.detokenize(tokens).replace(" ", "") == "x&amp;y&lt;"


def test_detokenises_hyphens():
    tokenizer = MosesTokenizer("en", aggressive=True)
    assert tokenizer.detokenize(tokenizer.tokenize("a well-known-man @-@")) == (
        "a well-known-man @ - @"
    )


def test_detokenises_the_czech_dash():
    tokens = ["je", "kniha'", "-", "li", "e'", "–", "mailem", "x'", "-", "y"]
    assert MosesTokenizer("cs").detokenize(tokens) == "je kniha'-li e'–mailem x' - y"


def test_equals_the_perl_script(moses):
    if not ORACLE.exists():
        pytest.skip("the script's outputs are not here")
    rows = [json.loads(row) for row in lzma.decompress(ORACLE.read_bytes()).split(b"\n") if row]
    assert len(rows) == 1500
    for key, options in (
        ("moses", {}),
        ("moses_aggressive_no_escape", {"aggressive": True, "escape": False}),
    ):
        wrong = [row for row in rows if moses(row["text"], row["language"], **options) != row[key]]
        assert wrong == []


def test_surface_maps_entities_to_one_character():
    moses = MosesTokenizer("en")
    assert moses.surface("&apos;s") == ("'s", [0, 0, 0, 0, 0, 0, 1])
    assert moses.surface("a&b") == ("a&b", [0, 1, 2])
    text, owners = moses.surface("word")
    assert (text, list(owners)) == ("word", [0, 1, 2, 3])


def test_surface_follows_the_options():
    plain = MosesTokenizer("en", escape=False)
    assert plain.surface("&amp;")[0] == "&amp;"
    assert plain.surface("@-@")[0] == "@-@"
    assert MosesTokenizer("en", aggressive=True).surface("@-@") == ("-", [0, 0, 0])


def test_describes_its_options():
    about = MosesTokenizer("de", aggressive=True, escape=False).describe()
    assert about.pop("version").startswith("sacremoses ")
    assert about == {"name": "moses", "language": "de", "aggressive": True, "escape": False}


def test_a_description_without_options_means_neither():
    tokenizer = build_tokenizer({"name": "moses", "language": "en", "version": "sacremoses 0.2.0"})
    assert tokenizer.tokenize("a-b it's") == ["a-b", "it", "&apos;s"]


@given(st.text(st.characters(exclude_characters="\n")))
def test_letters_and_digits_are_kept_in_order(line):
    tokens = MosesTokenizer("de", escape=False).tokenize(line)
    kept = [character for character in line if character.isalnum()]
    assert [character for character in "".join(tokens) if character.isalnum()] == kept
