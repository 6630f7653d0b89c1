"""The copy task: lengths, symbols, and what is held out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from nmtflex.config import GenerateCopyConfig
from nmtflex.corpus.copy_task import generate_copy
from nmtflex.errors import OptionError


def config(**options):
    return GenerateCopyConfig(out=Path("unused"), **options)


def test_defaults_are_the_papers():
    options = config()
    assert (options.vocabulary, options.train, options.valid) == (20, 100_000, 1000)


def test_target_is_the_source():
    splits, _ = generate_copy(config(train=20, valid=5, test=4, max_length=6))
    assert [len(splits[split]) for split in ("train", "valid", "test")] == [20, 5, 4]
    assert all(source == target for pairs in splits.values() for source, target in pairs)


def test_lengths_and_symbols_are_uniform():
    splits, _ = generate_copy(config(train=5000, valid=0, test=0, max_length=5, vocabulary=4))
    lines = [source.split() for source, _ in splits["train"]]
    lengths = Counter(map(len, lines))
    symbols = Counter(symbol for line in lines for symbol in line)
    assert sorted(lengths) == [1, 2, 3, 4, 5]
    assert sorted(symbols) == ["s0", "s1", "s2", "s3"]
    # Both bounds are more than five standard deviations (28 lines; 53 symbols).
    assert all(count == pytest.approx(1000, abs=150) for count in lengths.values())
    assert all(count == pytest.approx(sum(symbols.values()) / 4, abs=300)
               for count in symbols.values())  # fmt: skip


def test_names_have_one_width():
    splits, _ = generate_copy(config(train=300, valid=0, test=0, max_length=9, vocabulary=11))
    symbols = {symbol for source, _ in splits["train"] for symbol in source.split()}
    assert symbols == {f"s{number:02d}" for number in range(11)}


def test_held_out_sequences_are_nowhere_else():
    options = {"train": 60, "valid": 30, "test": 30, "max_length": 3, "vocabulary": 40}
    splits, repeated = generate_copy(config(**options))
    train, valid, test = ({source for source, _ in splits[split]} for split in splits)
    assert list(splits) == ["train", "valid", "test"]
    assert (len(valid), len(test)) == (30, 30)
    assert not valid & train
    assert not test & (train | valid)
    assert repeated == {"valid": 0, "test": 0}


def test_a_length_with_too_few_sequences_repeats_and_says_so():
    splits, repeated = generate_copy(config(train=50, valid=5, test=3, max_length=1, vocabulary=2))
    assert {source for source, _ in splits["train"]} == {"s0", "s1"}
    assert repeated == {"valid": 5, "test": 3}


def test_seed_decides():
    options = {"train": 20, "valid": 5, "test": 5}
    first = generate_copy(config(seed=7, **options))
    assert generate_copy(config(seed=7, **options)) == first
    assert generate_copy(config(seed=8, **options)) != first


def test_the_shortest_sequence():
    splits, _ = generate_copy(config(train=200, valid=20, test=20, min_length=7, max_length=9))
    lengths = [{len(source.split()) for source, _ in pairs} for pairs in splits.values()]
    assert lengths == [{7, 8, 9}] * 3
    with pytest.raises(OptionError, match="--min-length 51 must not exceed --max-length 50"):
        config(min_length=51)


def test_bounds():
    with pytest.raises(OptionError, match="--max-length must be at least 1, not 0"):
        config(max_length=0)
