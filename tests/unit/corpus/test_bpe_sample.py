"""BPE is learned from a sample of the training pairs, evenly spread, the same one always."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from nmtflex.corpus.words import WordStore


def merges(corpus):
    return list(corpus.pipeline.source.subwords.ranks)


def test_the_sample_is_evenly_spread(write, run):
    # Of six pairs every other one is learned from; the others would teach "cd" first.
    lines = "ab ab\ncd cd cd\n" * 3
    train = [write("train", lines, "x\n" * 6)]
    sampled = run("sampled", train=train, bpe=1, bpe_sample=3)
    assert merges(sampled) == [("a", "b</w>")]
    assert sampled.manifest["bpe_sample"] == {"pairs": 3, "of": 6}
    assert set(sampled.pipeline.source.vocabulary.tokens[4:]) == {"ab", "c@@", "d"}
    whole = run("whole", train=train, bpe=1)
    assert merges(whole) == [("c", "d</w>")]
    assert whole.manifest["bpe_sample"] == {"pairs": 6, "of": 6}


@pytest.mark.parametrize("size", [0, 4, 5])
def test_zero_and_too_many_are_all(write, run, size):
    train = [write("train", "ab\n\ncd\ncd\nab\n", "x\n" * 5)]
    corpus = run(train=train, bpe=2, bpe_sample=size)
    assert corpus.manifest["bpe_sample"] == {"pairs": 4, "of": 4}  # one pair is empty
    assert set(merges(corpus)) == {("a", "b</w>"), ("c", "d</w>")}


def test_without_bpe_there_is_no_sample(write, run):
    assert run(train=[write("train", "a\n", "x\n")]).manifest["bpe_sample"] is None


def test_both_sides_of_joint_bpe_have_the_same_pairs(write, run):
    train = [write("train", "ab\ncd\n" * 2, "ab\nef\n" * 2)]
    corpus = run(train=train, bpe=3, bpe_sample=2, joint=True)
    assert merges(corpus) == [("a", "b</w>")]


def test_any_number_of_workers_makes_the_same(write, run, contents):
    lines = [" ".join(f"w{(7 * i + j) % 50}" for j in range(5)) for i in range(2500)]
    train = [write("train", "\n".join(lines) + "\n", "\n".join(reversed(lines)) + "\n")]
    made = [
        contents(run(f"out{workers}", train=train, bpe=30, bpe_sample=700, workers=workers).folder)
        for workers in (1, 2)
    ]
    assert made[0] == made[1]


def test_words_are_counted_in_the_sample_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("nmtflex.corpus.words.BLOCK", 4)
    draw = np.random.default_rng(1)
    sentences = [draw.choice(list("abcdefgh"), draw.integers(0, 6)).tolist() for _ in range(23)]
    store = WordStore(tmp_path / "source")
    for sentence in sentences:
        store.append(" ".join(sentence), [len(sentence)])
    store.close()
    for chosen in ([], [0], [3, 4, 8, 22], list(range(23))):
        expected = Counter(word for place in chosen for word in sentences[place])
        assert store.counts_in(np.array(chosen, np.int64)) == expected
