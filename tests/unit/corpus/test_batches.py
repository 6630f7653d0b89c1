"""Batches: every pair once, within the budget, in an order that the seed and epoch decide."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtflex.corpus.batches import Batches
from nmtflex.launch import Launch
from nmtflex.ranks import Ranks


class Sentences:
    """Stands for a token store."""

    def __init__(self, sentences):
        self.sentences = [np.array(ids, dtype=np.uint16) for ids in sentences]
        self.lengths = np.array([len(ids) for ids in sentences], dtype=np.int32)

    def __getitem__(self, index):
        return self.sentences[index]


def of_lengths(source, target):
    return [Sentences([[5] * length for length in lengths]) for lengths in (source, target)]


lengths = st.lists(st.tuples(st.integers(1, 30), st.integers(0, 30)), min_size=1, max_size=60)


@given(lengths, st.integers(1, 90))
def test_a_token_budget_holds_and_no_pair_is_lost(pairs, budget):
    source, target = of_lengths(*zip(*pairs, strict=True))
    batches = Batches(source, target, budget).order(seed=1, epoch=1)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(pairs)))
    for batch in batches:
        longest = max(max(pairs[i][0], pairs[i][1] + 1) for i in batch)
        assert len(batch) == 1 or len(batch) * longest <= budget


@given(lengths, st.integers(1, 90), st.integers(1, 5))
def test_target_tokens_are_counted_unread_as_the_shares_have_them(pairs, budget, processes):
    batches = Batches(*of_lengths(*zip(*pairs, strict=True)), budget)
    order = batches.order(seed=1, epoch=1)
    ranks = [Ranks(Launch(rank, processes)) for rank in range(processes)]
    shares = [ranked.share(batch) for batch in order for ranked in ranks]
    found = sum(batches.collate(share).num_tokens for share in shares if len(share))
    assert batches.target_tokens(order) == found == sum(length + 1 for _, length in pairs)


def test_sentences_a_batch():
    source, target = of_lengths([3] * 10, [3] * 10)
    batches = Batches(source, target, 1, sentences=4).order(1, 1)
    assert sorted(len(batch) for batch in batches) == [2, 4, 4]


def test_the_order_follows_from_seed_and_epoch():
    source, target = of_lengths(list(range(1, 50)), list(range(1, 50)))
    batches = Batches(source, target, 100)

    def flat(seed, epoch):
        return np.concatenate(batches.order(seed, epoch)).tolist()

    assert flat(1, 1) == flat(1, 1)
    assert flat(1, 1) != flat(1, 2)
    assert flat(1, 1) != flat(2, 1)


def test_no_batch_mixes_lengths_that_another_separates():
    draw = np.random.default_rng(0)
    source, target = of_lengths(draw.integers(1, 50, 2000), draw.integers(1, 50, 2000))
    widths = np.maximum(source.lengths, target.lengths + 1)
    ranges = sorted(
        (widths[batch].min(), widths[batch].max())
        for batch in Batches(source, target, 1, sentences=20).order(1, 1)
    )
    for (_, longest), (shortest, _) in itertools.pairwise(ranges):
        assert longest <= shortest


def test_validation_leaves_out_empty_sources():
    source, target = of_lengths([2, 0, 1], [1, 1, 1])
    assert sorted(np.concatenate(Batches(source, target, 9).in_order()).tolist()) == [0, 2]


def test_padding_and_specials():
    source = Sentences([[7, 8, 9], [6]])
    target = Sentences([[4], [5, 6]])
    batch = Batches(source, target, 100).collate(np.array([0, 1]))
    assert batch.source.tolist() == [[7, 8, 9], [6, 0, 0]]
    assert batch.lengths.tolist() == [3, 1]
    assert batch.target_in.tolist() == [[2, 4, 0], [2, 5, 6]]
    assert batch.target_out.tolist() == [[4, 3, 0], [5, 6, 3]]
    assert batch.num_tokens == 5


def test_a_pair_longer_than_the_budget_is_a_batch_alone():
    source, target = of_lengths([50, 2, 2], [50, 2, 2])
    sizes = sorted(len(batch) for batch in Batches(source, target, 8).order(1, 1))
    assert sizes == [1, 2]


def first_order(source, target, budget, seed, epoch):
    """The order by its definition: shuffle, sort by width, target and source, cut, shuffle."""
    draw = np.random.default_rng([seed, epoch])
    pairs = draw.permutation(np.array([i for i, length in enumerate(source) if length])).tolist()
    pairs.sort(key=lambda i: (max(source[i], target[i] + 1), target[i], source[i]))
    batches = [[]]
    for pair in pairs:
        width = max(source[pair], target[pair] + 1)
        first = batches[-1][0] if batches[-1] else pair
        room = max(1, budget // max(source[first], target[first] + 1))
        last = pairs[min(pairs.index(first) + room, len(pairs)) - 1]
        room = max(1, min(room, budget // max(source[last], target[last] + 1)))
        if len(batches[-1]) == room:
            batches.append([])
        batches[-1].append(pair)
        assert len(batches[-1]) == 1 or width * len(batches[-1]) <= budget
    return [batches[place] for place in draw.permutation(len(batches))]


with_empty = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=60)


@given(with_empty.filter(lambda pairs: any(s for s, _ in pairs)), st.integers(1, 90))
def test_the_order_is_what_its_definition_says(pairs, budget):
    source, target = zip(*pairs, strict=True)
    expected = first_order(source, target, budget, seed=3, epoch=2)
    batches = Batches(*of_lengths(source, target), budget)
    assert [batch.tolist() for batch in batches.order(3, 2)] == expected


def lengths_of(order, source, target):
    return [[(source[pair], target[pair]) for pair in batch] for batch in order]


@given(with_empty.filter(lambda pairs: any(s for s, _ in pairs)), st.integers(1, 90))
def test_a_large_corpus_has_the_same_batches_but_for_pairs_alike(pairs, budget):
    source, target = zip(*pairs, strict=True)
    batches = Batches(*of_lengths(source, target), budget)
    small = batches.order(3, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nmtflex.corpus.batches.LARGE", 0)
        large = batches.order(3, 2)
        assert [batch.tolist() for batch in batches.order(3, 2)] == [b.tolist() for b in large]
    assert sorted(np.concatenate(large)) == sorted(np.concatenate(small))
    # In which order batches come is drawn after other numbers, so that it differs.
    found, expected = (sorted(lengths_of(order, source, target)) for order in (large, small))
    assert found == expected


def test_pairs_alike_of_a_large_corpus_are_shuffled_evenly(monkeypatch):
    monkeypatch.setattr("nmtflex.corpus.batches.LARGE", 0)
    batches = Batches(*of_lengths([2, 3, 3, 3, 3, 9], [1] * 6), 1, sentences=6)
    seen = Counter(tuple(batches.order(1, epoch)[0].tolist()) for epoch in range(2400))
    assert all(order[0] == 0 and order[-1] == 5 for order in seen)
    assert len(seen) == 24  # all orders of four; each some 100 times, deviating by 10
    assert all(50 < count < 150 for count in seen.values())
