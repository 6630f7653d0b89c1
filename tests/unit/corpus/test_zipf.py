"""Text with a long tail: its words, their frequencies, the target as a function of the source."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

import numpy as np
import pytest

from nmtflex.config import GenerateZipfConfig
from nmtflex.corpus.zipf import Law, generate_zipf, spell
from nmtflex.errors import DataError, OptionError


def words_of(spelling):
    return spelling.text.tobytes().decode().split(" ")[:-1]


@pytest.fixture
def splits(tmp_path):
    """Generate, and read each split's pairs of word lists."""

    def make(name="corpus", **options):
        out = tmp_path / name
        generate_zipf(GenerateZipfConfig(out=out, **options))
        return {
            split: [
                (source.split(" "), target.split(" "))
                for source, target in zip(
                    *(
                        (out / f"{split}.{side}").read_text().splitlines()
                        for side in ("src", "tgt")
                    ),
                    strict=True,
                )
            ]
            for split in ("train", "valid", "test")
        }

    return make


@pytest.mark.parametrize("types", [1, 13, 5000])
def test_every_word_is_another(types):
    for side in spell(types, np.random.default_rng(1)):
        words = words_of(side)
        assert len(words) == len(set(words)) == types
        assert all(word.isalpha() and word.isascii() for word in words)


def test_frequent_words_are_short_and_parts_come_again():
    for side in spell(20_000, np.random.default_rng(1)):
        words = words_of(side)
        first, last = (
            np.mean([len(word) for word in part]) for part in (words[:100], words[-100:])
        )
        assert first + 2 < last
        letters = sorted(sum(word.count(x) for word in words) for x in set("".join(words)))
        assert letters[-1] > 3 * letters[len(letters) // 2]  # the most frequent, the middle one
        whole = set(words)
        assert sum(word[:-1] in whole for word in words) > 0.2 * len(words)  # stem and ending


def weights(types, exponent):
    return [1 / (rank + 2.7) ** exponent for rank in range(1, types + 1)]


@pytest.mark.parametrize("exponent", [0.0, 0.8, 1.0, 1.3])
def test_words_come_as_often_as_the_law_says(exponent):
    law, count = Law(200, exponent), 200_000
    drawn = np.bincount(law.draw(np.random.default_rng(1), count), minlength=200)
    total = sum(weights(200, exponent))
    for seen, weight in zip(drawn, weights(200, exponent), strict=True):
        expected = count * weight / total
        assert abs(seen - expected) < 5 * expected**0.5
    slope, _ = np.polyfit(np.log(np.arange(1, 201) + 2.7), np.log(drawn), 1)
    assert slope == pytest.approx(-exponent, abs=0.05)


@pytest.mark.parametrize("types", [1, 7, 3000])
def test_a_word_is_found_as_by_bisection(types):
    uniform = np.random.default_rng(5).random(2000)
    found = Law(types, 1.1).draw(np.random.default_rng(5), 2000)
    total = sum(weights(types, 1.1))
    ends = [end / total for end in accumulate(weights(types, 1.1))]
    expected = [min(bisect_right(ends, value), types - 1) for value in uniform]
    assert found.tolist() == expected


def test_the_target_is_a_function_of_the_source(splits):
    words = {}
    for pairs in splits(types=60, train=300, valid=20, test=20, max_length=7).values():
        for source, target in pairs:
            straight = list(source)
            for place in range(0, len(source) - 1, 2):
                straight[place], straight[place + 1] = source[place + 1], source[place]
            assert len(target) == len(source)
            for one, other in zip(straight, target, strict=True):
                assert words.setdefault(one, other) == other
    assert len(set(words.values())) == len(words) == 60


def test_sizes_and_lengths(splits):
    made = splits(types=100, train=500, valid=30, test=0, min_length=3, max_length=6)
    assert {split: len(pairs) for split, pairs in made.items()} == {
        "train": 500, "valid": 30, "test": 0,
    }  # fmt: skip
    assert {len(source) for source, _ in made["train"]} == {3, 4, 5, 6}


def test_the_seed_decides(splits):
    options = {"types": 50, "train": 40, "valid": 10, "test": 10}
    first = splits("first", seed=3, **options)
    assert splits("again", seed=3, **options) == first
    assert splits("other", seed=4, **options) != first
    assert first["valid"] != first["test"]


def test_what_is_told(tmp_path):
    told = []
    lines = generate_zipf(
        GenerateZipfConfig(out=tmp_path, types=1, train=7, valid=2, test=0, max_length=1),
        lambda *stage: told.append(stage),
    )
    assert lines == [
        f"{tmp_path}/{split}: {pairs} pairs; .src {mean} tokens a sentence, {words} distinct; "
        f".tgt {mean} tokens a sentence, {words} distinct"
        for split, pairs, mean, words in (
            ("train", 7, 1.0, 1), ("valid", 2, 1.0, 1), ("test", 0, 0.0, 0),
        )
    ]  # fmt: skip
    assert told == [("making words", 0), ("writing train", 7), ("writing valid", 2)]


def test_nothing_half_made_stays(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("nmtflex.corpus.zipf.exchange", full)
    with pytest.raises(OSError, match="No space left"):
        generate_zipf(GenerateZipfConfig(out=tmp_path / "out", types=9, train=3))
    assert list((tmp_path / "out").iterdir()) == []


def test_files_that_are_there_stay(tmp_path):
    (tmp_path / "valid.tgt").write_text("mine")
    with pytest.raises(DataError, match=r"valid\.tgt already exists"):
        generate_zipf(GenerateZipfConfig(out=tmp_path, types=9, train=3))
    assert (tmp_path / "valid.tgt").read_text() == "mine"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"types": 0}, "--types must be at least 1, not 0"),
        ({"types": 30_000_000}, "--types must be at most 20000000, not 30000000"),
        ({"exponent": -0.5}, r"--exponent must be at least 0, not -0\.5"),
        ({"train": 0}, "--train must be at least 1, not 0"),
        ({"max_length": 0, "min_length": 1}, "--max-length must be at least 1, not 0"),
        ({"min_length": 9, "max_length": 8}, "--min-length 9 .*--max-length 8"),
    ],
)
def test_bounds(tmp_path, options, message):
    with pytest.raises(OptionError, match=message):
        GenerateZipfConfig(out=tmp_path, **options)
