"""Random segmentations: against subword-nmt, and against enumeration."""

from __future__ import annotations

import io
import math
import random
from collections import Counter

import pytest
from pieces import model_bytes
from sentencepiece import SentencePieceProcessor
from subword_nmt import apply_bpe

from nmtflex.text.subwords import BPE, SentencePiece
from nmtflex.text.subwords.bpe import learn_bpe
from nmtflex.text.subwords.drawing import Edge, Lattice

COUNTS = {"banana": 5, "ananas": 3, "bandana": 4, "nab": 2}


@pytest.mark.parametrize("dropout", [0.1, 0.5])
def test_bpe_dropout_is_that_of_subword_nmt(tmp_path, dropout):
    bpe = learn_bpe(COUNTS, 12)
    bpe.save(tmp_path, "x")
    codes = apply_bpe.BPE(io.StringIO((tmp_path / "x.codes").read_text()))
    for seed, word in enumerate([*COUNTS, "bananaban", "b", "anan"] * 20):
        random.seed(seed)
        expected = codes.segment_tokens([word], dropout)
        assert bpe.drawing(word, None, dropout)(random.Random(seed)) == expected


def test_with_nearly_all_merges_left_out_characters_remain():
    pieces = learn_bpe(COUNTS, 12).drawing("banana", None, 1 - 1e-12)(random.Random(1))
    assert pieces == ["b@@", "a@@", "n@@", "a@@", "n@@", "a"]


def test_merges_with_almost_no_dropout_are_those_of_the_package():
    model = SentencePiece(model_bytes("bpe"))
    for word in ("theatre", "eaten", "meat", "tttt", "猫the"):
        assert model.drawing(word, None, 1e-12)(random.Random(1)) == model.split(word)


def segmentations(text, scores):
    """Yield (pieces, log-probability) of every segmentation."""
    if not text:
        yield (), 0.0
    for end in range(1, len(text) + 1):
        if text[:end] in scores:
            for rest, score in segmentations(text[end:], scores):
                yield (text[:end], *rest), scores[text[:end]] + score


SCORES = {"a": -2.0, "b": -1.5, "ab": -2.5, "ba": -3.0, "aba": -3.2}


@pytest.mark.parametrize("alpha", [0.1, 0.5, 1.0, 3.0])
def test_segmentations_have_their_probabilities(alpha):
    """20,000 draws: the standard deviation of a share is at most 0.0036."""
    text = "ababa"
    edges = [
        Edge(start, end, SCORES[text[start:end]], (text[start:end],))
        for end in range(1, 6)
        for start in range(end)
        if text[start:end] in SCORES
    ]
    weights = {pieces: math.exp(alpha * score) for pieces, score in segmentations(text, SCORES)}
    lattice, source = Lattice(edges, alpha), random.Random(7)
    found = Counter(tuple(lattice.draw(source)) for _ in range(20_000))
    assert set(found) <= set(weights)
    for pieces, weight in weights.items():
        assert found[pieces] / 20_000 == pytest.approx(weight / sum(weights.values()), abs=0.018)


def test_a_large_alpha_finds_the_best_segmentation_of_the_package():
    model = SentencePiece(model_bytes())
    for word in ("theatre", "eaten", "meat", "then", "猫the", "thetheatre"):
        assert model.drawing(word, 1000.0, 0.0)(random.Random(1)) == model.split(word)


def test_the_probabilities_are_those_of_the_package():
    """Its n best list has all segmentations of a short word, with their scores."""
    data = model_bytes(normalization_rule_name="identity")
    model, theirs = SentencePiece(data), SentencePieceProcessor(model_proto=data)
    scores = {theirs.id_to_piece(n): theirs.get_score(n) for n in range(len(theirs))}
    best = [tuple(pieces) for pieces in theirs.nbest_encode("then", nbest_size=512, out_type=str)]
    weights = {pieces: math.exp(0.5 * sum(map(scores.__getitem__, pieces))) for pieces in best}
    draw, source = model.drawing("then", 0.5, 0.0), random.Random(3)
    found = Counter(tuple(draw(source)) for _ in range(20_000))
    assert set(found) <= set(weights)
    for pieces, weight in weights.items():
        assert found[pieces] / 20_000 == pytest.approx(weight / sum(weights.values()), abs=0.018)


def test_bpe_without_dropout_is_not_drawn():
    assert BPE([]).drawing("a", 0.5, 0.0) is None
