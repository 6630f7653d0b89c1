"""Links between words, carried through preprocessing to the subwords of the kept pairs."""

from __future__ import annotations

import gzip
from itertools import product

import numpy as np
import pytest

from nmtflex.corpus.batches import Batches
from nmtflex.corpus.sampling import open_batches, resegmenters
from nmtflex.corpus.store import open_prepared
from nmtflex.errors import DataError, OptionError

SOURCE = "low lower\n\nnew lowest low\nwide\na b c d e f\n"
TARGET = "x lowest\nx\nlow y new\nlower\nx\n"
LINKS = "0-0 1-1\n\n2-0 0-2 1-0 1-0\n0-0\n5-0\n"


@pytest.fixture
def links(tmp_path):
    def make(text: str, name: str = "links"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return make


def stored(corpus, split: str = "train") -> list[set]:
    found = corpus.links(split)
    count = len(corpus.store(split, "source"))
    return [{tuple(link) for link in found[pair].tolist()} for pair in range(count)]


def by_loops(corpus, pairs: list[tuple[str, str, str]]) -> list[set]:
    """Spread links word by word."""
    expected = []
    for source, target, line in pairs:
        places = []
        for side, text in ((corpus.pipeline.source, source), (corpus.pipeline.target, target)):
            own, at = [], 0
            for word in text.split():
                size = len(side.encode(word))
                own.append(range(at, at + size))
                at += size
            places.append(own)
        found = set()
        for link in line.split():
            one, other = map(int, link.split("-"))
            found |= set(product(places[0][one], places[1][other]))
        expected.append(found)
    return expected


@pytest.mark.parametrize("options", [{}, {"bpe": 4}, {"bpe": 4, "joint": True}, {"workers": 2}])
def test_kept_pairs_keep_their_links(write, run, links, options):
    corpus = run(
        train=[write("train", SOURCE, TARGET)],
        guided_alignment=[links(LINKS)],
        max_length=5,
        **options,
    )
    assert corpus.manifest["splits"]["train"]["kept"] == 3
    kept = [0, 2, 3]
    pairs = [tuple(text.split("\n")[place] for text in (SOURCE, TARGET, LINKS)) for place in kept]
    found = stored(corpus)
    assert found == by_loops(corpus, pairs)
    assert sum(map(len, found)) == corpus.manifest["splits"]["train"]["links"]["links"]
    if "bpe" in options:
        assert max(map(len, found)) > 3  # some words have several subwords


def test_pairs_of_too_many_subwords_lose_their_links_too(write, run, links):
    corpus = run(
        train=[write("train", "low low\nabcdefgh\nlow\n", "x\nx\nx x\n")],
        guided_alignment=[links("1-0\n0-0\n0-1\n")],
        bpe=2,
        max_subwords=3,
    )
    assert corpus.manifest["splits"]["train"]["dropped"]["subwords"] == 1
    pairs = [("low low", "x", "1-0"), ("low", "x x", "0-1")]
    assert stored(corpus) == by_loops(corpus, pairs)


def test_several_corpora_and_their_first_pairs(write, run, links):
    corpora = [write("one", "a b\n", "x y\n"), write("two", "a b\na b\na b\n", "x y\nx y\nx y\n")]
    files = [links("0-0\n", "1"), links("0-1\n1-0\n1-1\n", "2")]
    corpus = run(train=corpora, guided_alignment=files, max_pairs=3)
    assert stored(corpus) == [{(0, 0)}, {(0, 1)}, {(1, 0)}]


def test_validation_keeps_every_pair_and_like_reuses_the_subwords(write, run, links, tmp_path):
    first = run(train=[write("train", SOURCE, TARGET)], bpe=4, max_length=5)
    assert first.links("train") is None
    corpus = run(
        "other",
        like=first.folder,
        train=[write("more", SOURCE, TARGET)],
        valid=tmp_path / "more",
        guided_alignment=[links(LINKS)],
        valid_alignment=links(LINKS, "valid"),
        max_length=5,
    )
    pairs = list(zip(*(text.split("\n")[:5] for text in (SOURCE, TARGET, LINKS)), strict=True))
    assert stored(corpus, "valid") == by_loops(corpus, pairs)
    assert stored(corpus) == by_loops(corpus, [pairs[place] for place in (0, 2, 3)])


def test_characters_are_linked_as_words(write, run, links):
    corpus = run(
        train=[write("train", "ab c\n", "猫だ\n")],
        guided_alignment=[links("0-1 1-0\n")],
        source_tokenizer="char",
        target_tokenizer="char",
    )
    assert stored(corpus) == [{(0, 1), (1, 1), (3, 0)}]


def test_files_may_be_packed(write, run, tmp_path):
    (tmp_path / "links.gz").write_bytes(gzip.compress(b"0-0\n"))
    corpus = run(train=[write("t", "a\n", "x\n")], guided_alignment=[tmp_path / "links.gz"])
    assert stored(corpus) == [{(0, 0)}]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0-0\n", ("links has 1 line", "train.ja: 2 pairs")),
        ("0-0\n0-0\n\n", ("links has 3 lines", "train.en", "2 pairs")),
        ("0-0\n0-1\n", ("links:2", "0-1", "target", "1 word")),
        ("2-0\n0-0\n", ("links:1", "2-0", "source", "2 words")),
        ("0-0\n0=0\n", ("links:2", "'0=0'")),
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_bad_links_are_named_and_nothing_is_left(
    write, run, links, tmp_path, text, values, workers
):
    with pytest.raises(DataError) as caught:
        run(
            train=[write("train", "a b\na\n", "x\nx\n")],
            guided_alignment=[links(text)],
            workers=workers,
        )
    assert [value for value in values if value not in str(caught.value)] == []
    assert not (tmp_path / "out").exists()


def test_a_file_for_each_corpus(write, run, links):
    with pytest.raises(OptionError, match=r"--guided-alignment .* 1, not 2"):
        run(train=[write("t", "a\n", "x\n")], guided_alignment=[links("0-0\n")] * 2)
    with pytest.raises(OptionError, match=r"--valid-alignment .*links needs --valid"):
        run(train=[write("t", "a\n", "x\n")], valid_alignment=links("0-0\n"))


def test_batches_have_the_links_of_their_pairs(write, run, links):
    source, target = "a b c\na\nb c\nc b\n", "x y\ny\nz x y\nx\n"
    corpus = run(
        train=[write("train", source, target)],
        guided_alignment=[links("2-0 1-0 0-1\n\n0-2 1-2 1-0\n0-0\n")],
    )
    stores = corpus.store("train", "source"), corpus.store("train", "target")
    batches = Batches(*stores, 100, links=corpus.links("train"))
    pairs = np.array([2, 1, 0])
    batch = batches.collate(pairs)
    weights = np.zeros((3, 4, 3))
    weights.flat[batch.links.places] = batch.links.shares
    expected = np.zeros((3, 4, 3))  # rows of a sentence sum to 1, or 0 without a link
    expected[0, 2, 0] = expected[0, 2, 1] = expected[2, 0, 2] = expected[2, 0, 1] = 0.5
    expected[0, 0, 1] = expected[2, 1, 0] = 1
    assert (weights == expected).all()
    assert batch.links.linked == 4
    assert batches.collate(np.array([1])).links.linked == 0
    assert Batches(*stores, 100).collate(pairs).links is None


def test_damaged_links_are_named(write, run, links):
    corpus = run(train=[write("t", "a b\na\n", "x\nx\n")], guided_alignment=[links("1-0\n0-0\n")])
    path = corpus.folder / "train.links.bin"
    path.write_bytes(np.array([1, 0, 1, 0], "<u2").tobytes())  # the second source has one word
    again = open_prepared(corpus.folder).links("train")
    assert again[0].tolist() == [[1, 0]]
    with pytest.raises(DataError, match=r"train.links.*pair 1"):
        again[1]


@pytest.mark.parametrize(
    "options",
    [
        {"bpe": 12},
        {"bpe": 12, "target_tokenizer": "char"},  # the target is not sampled
        {"sentencepiece": "17", "byte_fallback": False},
    ],
    ids=["bpe", "one side", "sentencepiece"],
)
def test_links_follow_the_words_to_sampled_subwords(write, run, links, options):
    source = "lower lowest low\nnew lower wider\nlow low newer\n"
    target = "widest new\nlowest\nnewer low\n"
    line = "0-0 2-1 1-0\n1-0\n2-0\n"
    corpus = run(
        train=[write("train", source * 9, target * 9)],
        guided_alignment=[links(line * 9)],
        **options,
    )
    sampled = (0.3, 0.0) if "sentencepiece" in options else (None, 0.5)
    batches = open_batches(corpus, resegmenters(corpus, *sampled), 10_000, linked=True)
    batches.order(seed=1, epoch=2)
    pairs = np.arange(27)
    drawn = batches.read(pairs)
    batch = batches.collate(pairs)
    steps, positions = batch.target_in.shape[1], batch.source.shape[1]
    found = set(batch.links.places.tolist())
    sides = corpus.pipeline.source, corpus.pipeline.target
    expected = set()
    for row, text in enumerate(line.split("\n")[:3] * 9):
        numbers = [
            side.word_numbers([side.vocabulary.token(number) for number in own[row]])
            for side, own in zip(sides, drawn, strict=True)
        ]
        for link in text.split():
            one, other = map(int, link.split("-"))
            expected |= {
                (row * steps + t) * positions + s
                for s, word in enumerate(numbers[0]) if word == one
                for t, own in enumerate(numbers[1]) if own == other
            }  # fmt: skip
    assert found == expected
    assert len(batch.links.places) == len(found)
    stored = corpus.store("train", "source")
    assert any(list(own) != stored[row].tolist() for row, own in enumerate(drawn[0]))
