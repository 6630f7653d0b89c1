"""Terms and prefixes in translations: always there, exactly, whatever the tokens."""

from __future__ import annotations

import numpy as np
import pytest

import nmtflex
from nmtflex.config import (
    FlexibleConfig,
    GlobalConfig,
    LocalMConfig,
    MemoryConfig,
    MonotonicConfig,
    NoneConfig,
)
from nmtflex.decoding.demands import Demand, demands_of, met
from nmtflex.decoding.substitution import Region, Wanted, placed
from nmtflex.errors import OptionError
from nmtflex.text.edges import Edges
from nmtflex.text.glossary import Glossary
from nmtflex.text.pipeline import SidePipeline, TextPipeline
from nmtflex.text.subwords import Subwords
from nmtflex.text.subwords.bpe import learn_bpe
from nmtflex.text.subwords.sentencepiece import learn_sentencepiece
from nmtflex.text.tokenizers import build_tokenizer
from nmtflex.text.vocabulary import Vocabulary

ENGLISH = ["The dog runs, and the dogs sleep.", 'A man-made "snow" (or fog) falls: "Yes"!'] * 3
JAPANESE = ["犬が雪の中を走る。", "データベースとNew Yorkの男。"] * 3


def side(tokenizer: str, lines: list[str], subwords: str = "") -> SidePipeline:
    about = {"name": tokenizer}
    if tokenizer == "moses":
        about |= {"language": "en", "aggressive": False, "escape": True}
    cutter = build_tokenizer(about)
    words = [word for line in lines for word in cutter.words(line)]
    counts = {word: words.count(word) for word in words}
    model: Subwords | None = None
    if subwords == "bpe":
        model = learn_bpe(counts, 20)
    elif subwords:
        joined = [" ".join(cutter.words(line)) for line in lines]
        model = learn_sentencepiece(joined, 38, subwords, byte_fallback=False)
    pieces = [piece for word in words for piece in (model.split(word) if model else [word])]
    return SidePipeline(
        "en", cutter, model, Vocabulary(sorted(set(pieces)), [1] * len(set(pieces)))
    )


SIDES = [
    *[(side("moses", ENGLISH, kind), ENGLISH) for kind in ("", "bpe", "unigram")],
    *[(side("none", ENGLISH, kind), ENGLISH) for kind in ("", "bpe", "unigram")],
    (side("char", ENGLISH), ENGLISH),
    (side("char", JAPANESE), JAPANESE),
    *[(side("mecab", JAPANESE, kind), JAPANESE) for kind in ("", "bpe")],
]
TERMS = [
    "dog",
    "Quendalix",
    "Zorvath 300",
    'x  "y"',
    "鿿鿾",
    "A&B",
    "@@",
    "▁",
    "New-York's",
    "雪 x",
]


@pytest.mark.parametrize("number", range(len(SIDES)))
def test_a_term_comes_out_exactly(number: int) -> None:
    """Wherever attention looks, and whether or not the term is there already."""
    one, lines = SIDES[number]
    edges, draw = Edges(one), np.random.default_rng(number)
    for line in dict.fromkeys(lines):
        ids = one.encode(line)
        for first, second in zip(TERMS, TERMS[1:] + TERMS[:1], strict=True):
            terms = [Wanted(first, 0, 2, 1), Wanted(second, 2, 4, 2)]
            filled = [[word] for word in one.decode_words(ids)]
            weights = draw.random((len(ids) + 1, 5))
            demand = Demand("", [], terms)
            found = met(one, edges, ids, demand, weights, filled, one.join_filled, line)
            assert first in found.text
            assert second in found.text.replace(first, "", 1)
            assert len(found.filled) == len(filled)
            assert not any(c >= "\U000f0000" for c in found.text)


@pytest.mark.parametrize("number", range(len(SIDES)))
def test_the_rest_of_a_translation_stays(number: int) -> None:
    """One word gives its place to the term, the others are as they were."""
    one, lines = SIDES[number]
    edges = Edges(one)
    word, line = ("dogs", lines[0]) if "dog" in lines[0] else ("雪", lines[0])
    ids = one.encode(line)
    spans = one.spans(line)
    at = line.index(word)
    weights = np.zeros((len(ids) + 1, 3))
    for place, (start, end) in enumerate(spans):
        weights[place, 1 if start < at + len(word) and at < end else 0] = 1
    filled = [[each] for each in one.decode_words(ids)]
    demand = Demand("", [], [Wanted("Xy", 1, 2, 1)])
    found = met(one, edges, ids, demand, weights, filled, one.join_filled, line)
    assert found.text == one.decode(ids).replace(word, "Xy")


def test_texts_choose_words_by_weight() -> None:
    one, _ = SIDES[3]  # words at white space
    edges, ids = Edges(one), one.encode("The dog runs, and")
    weights = np.array([[0.6, 0.4, 0], [0.3, 0.7, 0], [0.1, 0.5, 0.4], [0.2, 0.2, 0.6], [0, 0, 1]])

    def where(*wanted: Wanted, fixed: int = 0) -> list[Region]:
        return placed(one, edges, ids, wanted, weights, fixed)

    assert where(Wanted("X", 1, 2, 1)) == [Region(1, 2, "X")]
    assert where(Wanted("X", 1, 2, 1), fixed=2) == [Region(2, 3, "X")]
    assert where(Wanted("X", 1, 2, 1), Wanted("Y", 1, 2, 1)) == [
        Region(1, 2, "X"), Region(2, 3, "Y")
    ]  # fmt: skip
    # The second is for two source words, and "runs," looks at them too.
    assert where(Wanted("X", 1, 3, 2)) == [Region(2, 4, "X")]
    assert where(Wanted("The", 2, 3, 1)) == [Region(0, 1, "The")]
    assert where(Wanted("X", 2, 3, 1), fixed=4) == [Region(4, 4, "X")]
    assert placed(one, edges, ids, [Wanted("X", 1, 2, 1)], None) == [Region(4, 4, "X")]


LINES = ["a b c", "b", "", "c c a", "d e f"]
GLOSSARY = Glossary({"c": "Xyz-1", "e": "A"})
ALIGNED = [GlobalConfig(), LocalMConfig(), FlexibleConfig(), MonotonicConfig()]
MECHANISMS = [*ALIGNED, MemoryConfig(K=3), NoneConfig()]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("attention", MECHANISMS, ids=lambda one: one.kind)
@pytest.mark.parametrize("decoder", ["bahdanau", "luong"])
def test_every_mechanism_takes_a_glossary(make_tiny_run, attention, decoder: str) -> None:
    run = make_tiny_run("run", attention, decoder=decoder)
    for options in ({"beam": 1}, {"beam": 4, "replace_unk": True}):
        if options.get("replace_unk") and not nmtflex.load(run, threads=1).aligned:
            del options["replace_unk"]
        translator = nmtflex.load(run, threads=1, **options)
        count = options["beam"]
        plain = translator.n_best(LINES, count)
        found = translator.n_best(LINES, count, glossary=GLOSSARY)
        texts = [[one.text for one in each] for each in found]
        assert texts[1:3] == [[one.text for one in each] for each in plain[1:3]]
        for index, times in ((0, 1), (3, 2), (4, 0)):
            assert all(one.text.count("Xyz-1") == times for one in found[index])
        assert all("A" in one.words for one in found[4])
        alone = [translator.n_best([line], count, glossary=GLOSSARY)[0] for line in LINES]
        assert [[one.text for one in each] for each in alone] == texts


@pytest.mark.parametrize("decoder", ["ssru", "transformer"])
def test_layered_decoders_take_a_glossary(make_layered_run, decoder: str) -> None:
    runs = [make_layered_run(f"run{n}", GlobalConfig(), decoder, seed=n) for n in (1, 2)]
    for loaded in (runs[0], runs):
        translator = nmtflex.load(loaded, threads=1, int8=loaded is not runs)
        found = translator.n_best(LINES, 2, glossary=GLOSSARY, align=True)
        assert [one[0].text.count("Xyz-1") for one in found] == [1, 0, 0, 2, 0]
        assert all(len(one.attended) == len(one.words) for each in found for one in each)


@pytest.mark.parametrize("beam", [1, 3])
def test_translations_begin_with_their_prefix(tiny_run, beam: int) -> None:
    translator = nmtflex.load(tiny_run, threads=1, beam=beam)
    prefixes = ["A B", "", "C", " H  unknown ", "A"]
    found = translator.n_best(LINES, beam, prefixes=prefixes)
    plain = translator.n_best(LINES, beam)
    assert [one.text for one in found[1]] == [one.text for one in plain[1]]
    assert found[2][0].text == ""
    for index, start in ((0, "A B"), (3, "H  unknown"), (4, "A")):
        assert len({one.text for one in found[index]}) == len(found[index]) >= 1
        assert all(one.text.startswith(start) for one in found[index])
    both = translator.n_best(LINES, beam, prefixes=prefixes, glossary=GLOSSARY)
    for index, start in ((0, "A B"), (3, "H  unknown"), (4, "A")):
        assert all(one.text.startswith(start) for one in both[index])
    assert [one[0].text.count("Xyz-1") for one in both] == [1, 0, 0, 2, 0]


def test_prefixes_are_checked(tiny_run) -> None:
    translator = nmtflex.load(tiny_run, threads=1)
    with pytest.raises(ValueError, match="2 prefixes for 1 lines"):
        translator.n_best(["a"], 1, prefixes=["A", "B"])
    with pytest.raises(TypeError, match="not one string"):
        translator.n_best(["a"], 1, prefixes="A")
    with pytest.raises(TypeError, match=r"prefix 0 .* is of int"):
        translator.n_best(["a"], 1, prefixes=[1])
    split = nmtflex.load(tiny_run, threads=1, split="sentences")
    with pytest.raises(OptionError, match="prefix"):
        split.n_best(["a"], 1, prefixes=["A"])


def test_of_a_line_that_is_cut_the_terms_left_are_wanted() -> None:
    one = side("none", ["a b c"])
    one.longest = 2
    [demand, nothing] = demands_of(
        TextPipeline(one, one), ["a b c", "c"[:0]], Glossary({"b": "X", "c": "Y"}), None
    )
    assert demand is not None
    assert [(term.text, term.start, term.stop) for term in demand.terms] == [("X", 1, 2)]
    assert nothing is None
