"""RIBES by hand, against the definition in plain loops, and against the official program."""

from __future__ import annotations

import json
import lzma
import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from of_lines import corpus_ribes

from nmtflex import __version__
from nmtflex.errors import DataError
from nmtflex.scoring import ribes
from nmtflex.scoring.ribes import sentence_ribes, word_ribes

ORACLES = Path(__file__).parents[4] / "shared" / "oracles"
needs_oracles = pytest.mark.skipif(
    not ORACLES.is_dir(), reason="needs the reference scores, kept elsewhere"
)


def of(hypothesis, *references, **options):
    return sentence_ribes(hypothesis.split(), [line.split() for line in references], **options)


@pytest.mark.parametrize(
    ("hypothesis", "reference", "score"),
    [
        ("a b c", "a b c", 1),
        # Order kept, three of five words: BP = exp(1 - 5/3).
        ("a c e", "a b c d e", math.exp(-2 / 3) ** 0.1),
        ("b a c d e", "a b c d e", 9 / 10),
        ("e d c b a", "a b c d e", 0),
        # Ranks 3 4 2 0 1: two of ten pairs rise; five of seven words.
        ("the book was read by the boy", "the boy read the book", 2 / 10 * (5 / 7) ** 0.25),
        # Ranks 7 8 9 10 6 7 1 2 3 4 5: "because he" comes before "he was".
        (
            "he read the book because he was interested in world history",
            "he was interested in world history because he read the book",
            17 / 55,
        ),
        # Fewer than two words align.
        ("a x", "a b", 0),
        ("x y", "a b", 0),
        ("", "a b", 0),
        ("a", "a b c", 0),
        ("b", "b b b a b", 0),
        # Two that align are one pair.
        ("a b", "a b c", math.exp(-1 / 2) ** 0.1),
        ("b a", "a b", 0),
        # A reference of one word.
        ("a", "a", 1),
        ("a x", "a", (1 / 2) ** 0.25),
        ("a a", "a", 0),  # "a a" stands once in the hypothesis, but not in the reference
        ("x", "a", 0),
        ("", "a", 0),
    ],
)
def test_by_hand(hypothesis, reference, score):
    assert of(hypothesis, reference) == pytest.approx(score, rel=1e-12)


@pytest.mark.parametrize(
    ("hypothesis", "reference", "ranks"),
    [
        ("a b c", "c a b", [1, 2, 0]),
        ("b a b", "a b a", [1, 2, 1]),  # left before right, and one place twice
        ("a a a", "a a a", [0, 2]),  # the context may reach the last word
        ("b a b", "a b a b", [1, 2, 3]),
        ("a a", "a a", [0, 1]),
        ("a a", "a b a", []),
        ("x a y a", "x a y a", [0, 1, 2, 3]),
        ("a x a", "a x", [0, 1]),  # the last a: neither "x a" nor "a x a" stands in the reference
    ],
)
@pytest.mark.parametrize("grown", [16, 0])
def test_alignment(monkeypatch, hypothesis, reference, ranks, grown):
    monkeypatch.setattr(ribes, "_MAX_GROWN", grown)
    assert ribes._align(hypothesis.split(), reference.split()) == ranks


def test_alignment_shows_in_the_score():
    # Ranks 1 2 1: one of three pairs rises.
    assert of("b a b", "a b a") == pytest.approx(1 / 3)
    assert of("a a a", "a a a") == pytest.approx((2 / 3) ** 0.25)
    assert of("b a b", "a b a b") == pytest.approx(math.exp(-1 / 3) ** 0.1)


def test_exponents():
    # Two of four words align, in order; BP = exp(1 - 5/4).
    assert of("a x y b", "a b c d e", alpha=0.5, beta=2) == pytest.approx(
        0.5**0.5 * math.exp(-1 / 4) ** 2
    )
    assert of("a x y b", "a b c d e", alpha=0, beta=0) == 1


def test_best_reference_counts():
    assert of("a b c", "c b a", "a b c", "b a c") == 1
    assert of("a b c", "c b a", "b a c") == pytest.approx(2 / 3)


def test_case():
    assert of("The Cat sat", "the cat sat") == 1
    assert of("The Cat sat", "the cat sat", case_sensitive=True) == 0
    # Capitals whose small forms are two characters, or depend on the place in the word.
    assert of("İZMİR ΟΔΟΣ ẞ", "i̇zmi̇r οδος ß") == 1
    assert of("İ a", "i a") == 0


def test_corpus_is_the_mean():
    score = corpus_ribes(["a b c", "b a", "A x"], ["a b c", "a b", "a"])
    assert score.sentences == pytest.approx([1, 0, 0.5**0.25])
    assert score.value == pytest.approx((1 + 0.5**0.25) / 3)
    assert score.signature == (
        f"nrefs:1|case:lc|alpha:0.25|beta:0.1|ribes:1.03.1|version:nmtflex-{__version__}"
    )


def test_corpus_of_several_references():
    score = corpus_ribes(
        ["a b", "c d"], ["b a", "c d"], ["a b", "d"], alpha=1, beta=0.5, case_sensitive=True
    )
    assert score.sentences == [1, 1]
    assert score.signature.startswith("nrefs:2|case:mixed|alpha:1|beta:0.5|")


@pytest.mark.parametrize("space", ["\u3000", "\u00a0", "\u2028", "\x1c", "\x85"])
def test_lines_part_at_ascii_white_space_alone(space):
    assert corpus_ribes([f"a{space}b c"], ["a b c"]).value == 0
    assert corpus_ribes([f"a{space}b c"], [f"a{space}b  c\r"]).value == 1
    assert corpus_ribes(["a\tb\vc\fd\re f "], ["a b c d e f"]).value == 1


def test_words_may_hold_anything():
    assert word_ribes([["a b", "\t", "", "\ud800"]], [["a b", "\t", "", "\ud800"]]).value == 1


@pytest.mark.parametrize("empty", ["", " \t\r"])
def test_empty_reference(empty):
    with pytest.raises(DataError) as caught:
        corpus_ribes(["a", "b"], ["a", empty])
    assert str(caught.value) == (
        "line 2: the reference is empty, for which RIBES is not defined; remove the line, or "
        "write its reference"
    )
    with pytest.raises(DataError, match=r"^line 1: reference 2 is empty, "):
        corpus_ribes(["a", "b"], ["a", "b"], [empty, "b"])
    with pytest.raises(ValueError, match=r"^RIBES needs references .*, not \[\['a'\], \[\]\]$"):
        sentence_ribes(["a"], [["a"], []])
    with pytest.raises(ValueError, match=r"^RIBES needs references .*, not \[\]$"):
        sentence_ribes(["a"], [])


def test_unequal_counts():
    with pytest.raises(DataError) as caught:
        corpus_ribes(["a", "b", "c"], ["a", "b"])
    message = "3 hypotheses, but the reference has 2 lines; line 3 has no reference"
    assert str(caught.value) == message
    with pytest.raises(DataError) as caught:
        corpus_ribes(["a"], ["a"], ["a", "b", "c"])
    message = "1 hypotheses, but reference 2 has 3 lines; line 2 has no hypothesis"
    assert str(caught.value) == message


def test_nothing_to_score():
    with pytest.raises(DataError, match=r"^no sentences to score$"):
        corpus_ribes([], [])
    with pytest.raises(ValueError, match=r"^2 hypotheses, but no references were given$"):
        corpus_ribes(["a", "b"])


@pytest.mark.parametrize(("alpha", "beta"), [(-1, 0.1), (0.25, -0.5)])
def test_negative_exponents(alpha, beta):
    with pytest.raises(ValueError, match=f"at least 0, not {alpha} and {beta}$"):
        of("a", "a", alpha=alpha, beta=beta)


def test_many_distinct_words():
    words = [f"w{number}" for number in range(40_000)]
    assert sentence_ribes(words, [words]) == 1
    assert sentence_ribes(words[1:] + words[:1], [words]) == pytest.approx(1 - 2 / 40_000)


def test_long_repetition():
    # Only the ends have a context that stands once: the whole sentence.
    words = ["a"] * 20_000
    assert sentence_ribes(words, [words]) == pytest.approx((2 / 20_000) ** 0.25)
    assert sentence_ribes(words, [["a", "b"]]) == 0


def in_plain_loops(hypothesis: Sequence[str], reference: Sequence[str]) -> list[int]:
    """Align as the paper has it, by counting every context anew."""

    def places(sentence, words):
        width = len(words)
        ends = range(width, len(sentence) + 1)
        return [end - width for end in ends if sentence[end - width : end] == words]

    def align(place):
        for size in range(len(hypothesis)):
            before, after = place - size, place + size + 1
            for low, high in ((before, place + 1), (place, after)):
                words = hypothesis[max(low, 0) : high]
                found = places(reference, words)
                whole = low >= 0 and high <= len(hypothesis)
                if whole and len(found) == len(places(hypothesis, words)) == 1:
                    return [found[0] + place - low]
        return []

    return [rank for place in range(len(hypothesis)) for rank in align(place)]


few_words = st.lists(st.sampled_from("aabc"), max_size=14)


@given(hypothesis=few_words, reference=few_words, grown=st.sampled_from([0, 1, 2, 16]))
def test_alignment_equals_plain_loops(hypothesis, reference, grown):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ribes, "_MAX_GROWN", grown)
        assert ribes._align(hypothesis, reference) == in_plain_loops(hypothesis, reference)


@given(few_words, few_words.filter(bool), few_words.filter(bool))
def test_bounds_and_references(hypothesis, one, other):
    first, second = sentence_ribes(hypothesis, [one]), sentence_ribes(hypothesis, [other])
    assert 0 <= first <= 1
    assert sentence_ribes(hypothesis, [one, other]) == max(first, second)


@given(st.permutations(range(8)))
def test_permutation_of_distinct_words(order):
    # Every word aligns, so that the score is Kendall's tau.
    rising = sum(order[i] < order[j] for j in range(8) for i in range(j))
    words = list(map(str, order))
    assert sentence_ribes(words, [sorted(words)]) == pytest.approx(rising / 28)
    assert sentence_ribes(words, [words]) == 1


@given(st.lists(st.text(), min_size=1), st.text())
def test_any_text(words, line):
    assert 0 <= sentence_ribes(words, [words]) <= 1
    assert 0 <= corpus_ribes([line], ["a b"]).value <= 1


@needs_oracles
def test_sentences_equal_the_official_program():
    with lzma.open(ORACLES / "ribes_sentences.jsonl.xz", "rt", encoding="utf-8") as file:
        cases = [json.loads(line) for line in file]
    assert len(cases) == 2000
    for case in cases:
        references = [[line] for line in case["references"]]
        score = corpus_ribes([case["hypothesis"]], *references, case_sensitive=True)
        assert score.value == pytest.approx(case["ribes"], rel=0, abs=1e-12)


@needs_oracles
def test_corpus_equals_the_official_program():
    with lzma.open(ORACLES / "ribes_corpus.json.xz", "rt", encoding="utf-8") as file:
        case = json.load(file)
    score = corpus_ribes(case["hypotheses"], case["references"], case_sensitive=True)
    assert score.value == pytest.approx(case["ribes"], rel=0, abs=1e-12)
    assert len(score.sentences) == 300
