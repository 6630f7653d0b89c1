"""A window reads its own positions and no other."""

from __future__ import annotations

import pytest
import torch

from nmtflex.attention import Sizes
from nmtflex.attention.scores import build_score
from nmtflex.attention.source import Window, attend_within, of_hypotheses, read_source

START, STOP, ROWS = [0, 2, 4, 1], [3, 3, 6, 6], [0, 0, 1, 2]
TABLE = torch.arange(3 * 6 * 2, dtype=torch.float64).view(3, 6, 2)  # [B, S, D]


@pytest.fixture
def window() -> Window:
    return Window(torch.tensor(START), torch.tensor(STOP), torch.tensor(ROWS))


def test_positions_lie_side_by_side(window):
    assert window.sizes.tolist() == [3, 1, 2, 5]
    for positions, inside, start, stop in zip(
        window.positions.tolist(), window.inside.tolist(), START, STOP, strict=True
    ):
        assert [s for s, real in zip(positions, inside, strict=True) if real] == [
            *range(start, stop)
        ]


def test_what_fills_up_a_row_lies_inside_the_window(window):
    for positions, start, stop in zip(window.positions.tolist(), START, STOP, strict=True):
        assert len(positions) == 5
        assert all(start <= s < stop for s in positions)


def test_each_hypothesis_reads_its_own_sentence(window):
    read = window.read(TABLE)
    for n, (row, start, stop) in enumerate(zip(ROWS, START, STOP, strict=True)):
        assert read[n, : stop - start].tolist() == TABLE[row, start:stop].tolist()


def test_without_rows_hypothesis_n_is_of_sentence_n():
    start, stop = torch.tensor([1, 0, 5]), torch.tensor([3, 1, 6])
    read = Window(start, stop, None).read(TABLE)
    assert read[0].tolist() == TABLE[0, 1:3].tolist()
    assert read[1, 0].tolist() == TABLE[1, 0].tolist()
    assert read[2, 0].tolist() == TABLE[2, 5].tolist()


def test_weights_are_laid_out_at_their_positions(window):
    weights = torch.arange(1.0, 21).view(4, 5)  # what stands beyond a window is left out
    laid = window.lay_out(weights, 7)
    for n, (start, stop) in enumerate(zip(START, STOP, strict=True)):
        size = stop - start
        expected = [0.0] * start + weights[n, :size].tolist() + [0.0] * (7 - stop)
        assert laid[n].tolist() == expected


def test_no_gradient_goes_outside(window):
    table = TABLE.clone().requires_grad_()
    (window.read(table) * window.inside[..., None]).sum().backward()
    reads = [[0] * 6 for _ in range(3)]
    for row, start, stop in zip(ROWS, START, STOP, strict=True):
        for s in range(start, stop):
            reads[row][s] += 1
    assert table.grad[..., 0].tolist() == reads


@pytest.mark.parametrize("score", ["additive", "general", "dot"])
def test_a_window_of_one_position_weighs_1_whatever_it_scores(score):
    torch.manual_seed(1)
    states, mask = torch.randn(3, 6, 4), torch.ones(3, 6, dtype=torch.bool)
    score = build_score(score, Sizes(query=4, feedback=3, states=4, keys=5, source_length=9))
    memory = read_source(score, states, mask)
    start = torch.tensor([0, 5, 2])
    context, weights = attend_within(
        score, torch.randn(3, 4), memory, Window(start, start + 1, None), torch.full((3, 1), 90.0)
    )
    assert weights.tolist() == [[1.0]] * 3
    assert context.tolist() == states[torch.arange(3), start].tolist()


def test_damping_follows_the_softmax_and_penalty_precedes_it():
    torch.manual_seed(1)
    states, mask = torch.randn(1, 6, 4).double(), torch.ones(1, 6, dtype=torch.bool)
    score = build_score("dot", Sizes(query=4, feedback=3, states=4, keys=5, source_length=9))
    memory = read_source(score, states, mask)
    window = Window(torch.tensor([1]), torch.tensor([3]), None)
    query = torch.zeros(1, 4).double()  # both scores are 0
    penalty = torch.tensor([[0.0, 3.0]]).log1p().double()  # ln 1 and ln 4
    _, weights = attend_within(score, query, memory, window, penalty=penalty)
    assert weights[0].tolist() == pytest.approx([0.8, 0.2], abs=1e-6)
    damping = torch.tensor([[1.0, 0.25]]).double()
    context, weights = attend_within(score, query, memory, window, damping=damping)
    assert weights.tolist() == [[0.5, 0.125]]
    torch.testing.assert_close(context[0], states[0, 1] / 2 + states[0, 2] / 8)


def test_lengths_follow_the_hypotheses():
    lengths = torch.tensor([3, 7, 5])
    assert of_hypotheses(lengths, None).tolist() == [3, 7, 5]
    assert of_hypotheses(lengths, torch.tensor([0, 0, 2])).tolist() == [3, 3, 5]
