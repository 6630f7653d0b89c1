"""The toy grammar: its engine on grammars of a few lines, and what the real one promises."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

import nmtflex
from nmtflex.config import GenerateToyConfig
from nmtflex.corpus import toy
from nmtflex.corpus.toy import Grammar, generate_toy, toy_folder
from nmtflex.errors import DataError, OptionError

SMALL = """
[agreement.singular]
be = "is"
[agreement.plural]
be = "are"

[[sentence]]
en = "{who} {who.be} {doing.ing} ."
ja = "{who} は {doing.te} い ます 。"
with = { who = "noun_phrase", doing = "doing" }

[[doing]]
en = "{verb.*} a {noun.one}"
ja = "{noun} を {verb.*}"
with = { verb = "verb ing", noun = "noun class=verb.object" }

[[noun_phrase]]
number = "plural"
en = "the {noun.many}"
ja = "{noun} たち"
with = { noun = "noun class=person" }
"""

WORDS = """
verb = [
  { object = ["food", "fruit"], ing = "yes", en = { ing = "eating" }, ja = { te = "食べて" } },
  { object = "food", en = { past = "ate" }, ja = { ta = "食べた" } },
]
noun = [
  { class = "person", en = { one = "teacher", many = "teachers" }, ja = "先生" },
  { class = "fruit", en = { one = "apple" }, ja = "りんご" },
  { class = "food", en = { one = "cake" }, ja = "ケーキ" },
  { class = "food", en = { mass = "bread" }, ja = "パン" },
]
"""


@pytest.fixture(scope="module")
def grammar():
    return Grammar.load(toy_folder())


def write_grammar(folder, rules=SMALL, words=WORDS):
    (folder / "grammar.toml").write_text(rules, encoding="utf-8")
    (folder / "words.toml").write_text(words, encoding="utf-8")
    return folder


def config(**options):
    return GenerateToyConfig(out=Path("unused"), **options)


def test_small_grammar_makes_all_its_sentences_and_no_other(tmp_path):
    small = Grammar.load(write_grammar(tmp_path))
    rng = random.Random(1)
    assert {small.draw(rng) for _ in range(50)} == {
        ("The teachers are eating an apple .", "先生 たち は りんご を 食べて い ます 。"),
        ("The teachers are eating a cake .", "先生 たち は ケーキ を 食べて い ます 。"),
    }


def test_weights_say_how_often(tmp_path):
    rules = """
    sentence = [
      { weight = 3, en = "often", ja = "よく" },
      { weight = 1, en = "seldom", ja = "たまに" },
      { weight = 0, en = "never", ja = "全然" },
    ]
    """
    small = Grammar.load(write_grammar(tmp_path, rules, ""))
    rng = random.Random(1)
    drawn = [small.draw(rng)[0] for _ in range(4000)]
    assert set(drawn) == {"Often", "Seldom"}
    assert drawn.count("Often") == pytest.approx(3000, abs=150)  # more than five deviations


def test_no_word_stands_twice(tmp_path):
    rules = """
    sentence = [
      { en = "{a} {b}", ja = "{b} {a}", with = { a = "letter", b = "letter" } },
    ]
    letter = [{ en = "x", ja = "か" }, { en = "y", ja = "き" }]
    """
    small = Grammar.load(write_grammar(tmp_path, rules, ""))
    rng = random.Random(1)
    assert {small.draw(rng) for _ in range(50)} == {("X y", "き か"), ("Y x", "か き")}


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ('sentence = [{ en = "a" }]', "grammar.toml: sentence 1: no 'ja'"),
        ('sentence = [{ en = "{x}", ja = "y" }]', "sentence 1: {x} is not among the slots"),
        (
            'sentence = [{ en = "{x}", ja = "{x}", with = { x = "nuon" } }]',
            "the rules use 'nuon', which no file there defines",
        ),
        ("noun = []", "the rules use 'sentence'"),
        ("[[sentence", "grammar.toml: Expected"),
    ],
)
def test_faulty_grammar(tmp_path, rules, message):
    with pytest.raises(DataError) as caught:
        Grammar.load(write_grammar(tmp_path, rules, ""))
    assert message in str(caught.value)


def test_folder_without_a_grammar(tmp_path):
    with pytest.raises(DataError, match=r"no grammar \(\*\.toml\)") as caught:
        Grammar.load(tmp_path / "nowhere")
    assert "nowhere" in str(caught.value)


def test_grammar_that_leads_nowhere(tmp_path, monkeypatch):
    monkeypatch.setattr(toy, "_PATIENCE", 50)
    lame = Grammar.load(write_grammar(tmp_path, words=WORDS.replace("ing =", "past =")))
    with pytest.raises(DataError, match="no sentence in 50 draws from 1 rules"):
        lame.draw(random.Random(1))


def test_more_sentences_than_the_grammar_has(tmp_path, monkeypatch):
    monkeypatch.setattr(toy, "_PATIENCE", 50)
    small = Grammar.load(write_grammar(tmp_path))
    with pytest.raises(OptionError, match="in 50 draws after 2 pairs; lower --train"):
        generate_toy(config(train=3, valid=0, test=0), small)


def test_seed_decides(grammar):
    options = {"train": 30, "valid": 5, "test": 5}
    first = generate_toy(config(seed=4, **options), grammar)
    assert generate_toy(config(seed=4, **options)) == first  # a grammar read anew
    assert generate_toy(config(seed=5, **options), grammar) != first


def test_the_global_generator_is_left_alone(grammar):
    random.seed(3)
    state = random.getstate()
    generate_toy(config(train=5, valid=1, test=1), grammar)
    assert random.getstate() == state


def test_held_out_splits_do_not_depend_on_the_training_size(grammar):
    small = generate_toy(config(train=5, valid=20, test=20), grammar)
    large = generate_toy(config(train=50, valid=20, test=20), grammar)
    assert (small["valid"], small["test"]) == (large["valid"], large["test"])


def test_no_sentence_stands_in_two_pairs(grammar):
    splits = generate_toy(config(train=600, valid=100, test=100), grammar)
    assert {split: len(pairs) for split, pairs in splits.items()} == {
        "train": 600,
        "valid": 100,
        "test": 100,
    }
    for side in (0, 1):
        assert len({pair[side] for pairs in splits.values() for pair in pairs}) == 800


def test_english_decides_japanese(grammar):
    rng = random.Random(11)
    translations: dict[str, set[str]] = {}
    for _ in range(2000):
        english, japanese = grammar.draw(rng)
        translations.setdefault(english, set()).add(japanese)
    assert {english: found for english, found in translations.items() if len(found) > 1} == {}


def test_every_sentence_rule_makes_tokenised_sentences_of_moderate_length(grammar):
    rng = random.Random(2)
    for rule in grammar.symbols["sentence"]:
        alone = Grammar({**grammar.symbols, "sentence": [rule]})
        for _ in range(10):
            english, japanese = alone.draw(rng)
            assert english[-2:] in (" .", " ?")
            assert japanese.endswith(" 。")
            for sentence in (english, japanese):
                words = sentence.split(" ")
                assert 3 <= len(words) <= 26
                assert all(words)
                assert not set(sentence) & set("{}*_=")


def test_what_the_corpus_is_for(grammar):
    """Movement across the sentence, one word to several, several to one, by hand."""
    rng = random.Random(6)
    text = "\n".join(f"{english}\t{japanese}" for english, japanese in (
        grammar.draw(rng) for _ in range(3000)
    ))  # fmt: skip
    for english, japanese in [
        (" who ", "た 先生"),
        ("teachers", "先生 たち"),
        ("look for", "探し"),
        ("ashing machine", "洗濯機"),
        ("did not", "ません でした"),
        ("tall ", "背 の 高い"),
    ]:
        assert any(english in line and japanese in line for line in text.splitlines()), english


def test_grammar_is_found_in_a_checkout_and_in_an_installed_package(tmp_path, monkeypatch):
    for place in ("checkout/nmtflex", "site-packages/nmtflex"):
        (tmp_path / place).mkdir(parents=True)
    beside = tmp_path / "checkout/data/toy"
    inside = tmp_path / "site-packages/nmtflex/data/toy"
    for folder in (beside, inside):
        shutil.copytree(toy_folder(), folder)
    for place, expected in (("checkout", beside), ("site-packages", inside)):
        monkeypatch.setattr(nmtflex, "__file__", str(tmp_path / place / "nmtflex/__init__.py"))
        assert toy_folder() == expected
