"""The operation gives what its equations say, whichever implementation runs."""

from __future__ import annotations

import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import IMPLEMENTATIONS, Problem, by_hand, make

from nmtflex.ops.attend import Source, Window, cpu, reference

BEAM = [0, 0, 0, 2, 2]  # sentence 1 is left out
KINDS = {
    "global": {"windowed": False, "punished": False},
    "flexible": {"windowed": False},
    "flexible-tau": {},
    "flexible-dot": {"additive": False},
    "local-m": {"punished": False},
    "local-p": {"punished": False, "damped": True},
    "everything-dot": {"damped": True, "additive": False},
}
PRECISION = {torch.float64: 1e-12, torch.float32: 1e-5}


@pytest.fixture(params=IMPLEMENTATIONS)
def chosen(request):
    return IMPLEMENTATIONS[request.param]


def assert_close(got, expected, tolerance):
    for part, wanted in zip(got, expected, strict=True):
        wanted = torch.tensor(wanted, dtype=part.dtype)
        torch.testing.assert_close(part, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("rows", [None, BEAM], ids=["training", "beam"])
@pytest.mark.parametrize("kind", KINDS)
def test_by_hand(chosen, kind, rows):
    problem = make(rows=rows, **KINDS[kind])
    assert_close(problem.attend(chosen), by_hand(problem), 1e-12)


@pytest.mark.parametrize("size", [1, 3, 16, 33])
@pytest.mark.parametrize("dtype", PRECISION)
def test_sizes_that_fill_no_vector(chosen, dtype, size):
    problem = make(keys=size, values=size + 2, dtype=dtype)
    assert_close(problem.attend(chosen), by_hand(problem), PRECISION[dtype])


@pytest.mark.parametrize(
    ("start", "stop"),
    [(0, 1), (8, 9), (0, 9), (3, 4), (0, 8), (1, 9)],
    ids=["first", "last", "all", "one", "not-last", "not-first"],
)
@pytest.mark.parametrize("damped", [False, True])
def test_windows_at_the_edges(chosen, start, stop, damped):
    problem = make(lengths=(9,), rows=[0, 0], damped=damped)
    problem = problem._replace(window=Window(torch.tensor([start] * 2), torch.tensor([stop] * 2)))
    attended = problem.attend(chosen)
    assert_close(attended, by_hand(problem), 1e-12)
    assert (attended.weights[:, :start] == 0).all()
    assert (attended.weights[:, stop:] == 0).all()


def test_one_position_takes_all(chosen):
    problem = make(lengths=(1,))
    attended = problem.attend(chosen)
    torch.testing.assert_close(attended.context, problem.values[:, 0])
    assert attended.focus.tolist() == [0.0]
    assert attended.weights.tolist() == [[1.0]]


@st.composite
def problems(draw, dtype):
    count = draw(st.integers(1, 4))
    lengths = tuple(draw(st.integers(1, 40)) for _ in range(count))
    rows = None
    if draw(st.booleans()):
        rows = sorted(draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=12)))
    return make(
        seed=draw(st.integers(0, 10**6)),
        lengths=lengths,
        rows=rows,
        keys=draw(st.sampled_from([1, 7, 16, 31, 64, 100])),
        values=draw(st.sampled_from([1, 5, 32, 70])),
        additive=draw(st.booleans()),
        windowed=draw(st.booleans()),
        punished=draw(st.booleans()),
        damped=draw(st.booleans()),
        dtype=dtype,
    )


def agree(problem: Problem) -> None:
    tolerance = PRECISION[problem.keys.dtype]
    results = []
    for implementation in (reference, cpu):
        learning = problem.learning()
        attended = learning.attend(implementation)
        torch.manual_seed(1)
        found = [attended.context, attended.focus, attended.log_sum]
        wanted = [torch.randn_like(part) for part in found]
        grads = torch.autograd.grad(found, learning.learnt(), wanted)
        results.append([*attended, *grads])
    for part, other in zip(*results, strict=True):
        # Relative to what the sum has in it: gradients of gates and of v are sums over positions.
        scale = max(1.0, float(part.detach().abs().max()))
        torch.testing.assert_close(other, part, rtol=tolerance, atol=tolerance * scale)


@settings(max_examples=60, derandomize=True)
@given(problems(torch.float32))
def test_fast_equals_reference_in_float32(problem):
    agree(problem)


@settings(max_examples=40, derandomize=True)
@given(problems(torch.float64))
def test_fast_equals_reference_in_float64(problem):
    agree(problem)


def test_long_windows(chosen):
    problem = make(lengths=(300, 260), rows=[0, 0, 1, 1, 1], dtype=torch.float32)
    assert_close(problem.attend(chosen), by_hand(problem), 3e-5)


def test_far_positions_weigh_nothing(chosen):
    problem = make(lengths=(200,), windowed=False, dtype=torch.float32)
    problem = problem._replace(penalty=problem.penalty._replace(gate=torch.ones(1), sigma=0.5))
    weights = problem.attend(chosen).weights[0]
    assert (weights == 0).sum() > 150
    torch.testing.assert_close(weights.sum(), torch.tensor(1.0))


def test_no_weights_unless_traced(chosen):
    assert make().attend(chosen, trace=False).weights is None


def test_order_of_hypotheses_does_not_matter(chosen):
    problem = make(rows=[0, 0, 1, 2, 2])
    order = torch.tensor([3, 0, 2, 4, 1])
    mixed = problem._replace(
        query=problem.query[order],
        rows=problem.rows[order],
        window=Window(*(bound[order] for bound in problem.window)),
        penalty=problem.penalty._replace(
            gate=problem.penalty.gate[order], focus=problem.penalty.focus[order]
        ),
    )
    for part, other in zip(problem.attend(chosen), mixed.attend(chosen), strict=True):
        torch.testing.assert_close(other, part[order], rtol=1e-12, atol=1e-12)


def test_a_batch_changes_nothing():
    problem = make(rows=[0, 0, 1, 2, 2], dtype=torch.float32)
    together = problem.attend(cpu)
    for n in range(5):
        alone = problem._replace(
            query=problem.query[n : n + 1],
            rows=problem.rows[n : n + 1],
            window=Window(*(bound[n : n + 1] for bound in problem.window)),
            penalty=problem.penalty._replace(
                gate=problem.penalty.gate[n : n + 1], focus=problem.penalty.focus[n : n + 1]
            ),
        )
        for part, other in zip(alone.attend(cpu), together, strict=True):
            assert torch.equal(part[0], other[n])


def strided(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers with gaps between them, and the dimensions laid out in another order."""
    wide = tensor.unsqueeze(-1).repeat(*[1] * tensor.dim(), 2).transpose(0, -1).contiguous()
    return wide.transpose(0, -1)[..., 0]


@pytest.mark.parametrize("ready", [False, True], ids=["by-hand", "make-source"])
def test_non_contiguous_inputs(chosen, ready):
    problem = make(rows=BEAM, damped=True)
    gaps = problem.with_learnt(*map(strided, problem.learnt()))
    gaps = gaps._replace(rows=strided(gaps.rows), window=Window(*map(strided, gaps.window)))
    assert not gaps.keys.is_contiguous()
    if ready:
        attended = gaps.attend(chosen)
    else:
        attended = gaps.attend_to(Source(gaps.keys, gaps.values, gaps.lengths), chosen)
    for part, other in zip(problem.attend(chosen), attended, strict=True):
        assert torch.equal(part, other)


def test_bfloat16_is_computed_in_float32():
    problem = make(dtype=torch.bfloat16, rows=BEAM)
    wide = problem.with_learnt(*(part.float() for part in problem.learnt()))
    narrow = problem.attend(cpu)
    assert narrow.context.dtype == torch.float32
    for part, other in zip(narrow, wide.attend(cpu), strict=True):
        assert torch.equal(part, other)


def test_bfloat16_keeps_the_focus_of_the_reference_in_float32():
    attended = make(dtype=torch.bfloat16).attend(reference)
    assert (attended.context.dtype, attended.focus.dtype) == (torch.bfloat16, torch.float32)


@pytest.mark.parametrize(
    ("row", "start", "stop"), [(3, 0, 1), (-1, 0, 1), (0, -1, 2), (0, 2, 2), (0, 3, 2), (0, 0, 10)]
)
def test_a_window_outside_of_the_memory_is_refused(row, start, stop):
    problem = make(rows=[0, 0])._replace(
        rows=torch.tensor([0, row]),
        window=Window(torch.tensor([0, start]), torch.tensor([1, stop])),
    )
    with pytest.raises(
        ValueError, match=f"1 reads positions {start} to {stop} of sentence {row}, "
    ):
        problem.attend(cpu)


@pytest.mark.parametrize(
    ("name", "got", "wanted"),
    [
        ("query", (3, 19), (3, 20)),
        ("query", (2, 20), (3, 20)),
        ("v", (21,), (20,)),
        ("values", (3, 8, 12), (3, 9, 12)),
        ("gate", (2,), (3,)),
        ("focus", (1,), (3,)),
        ("centre", (4,), (3,)),
    ],
)
def test_tensors_that_do_not_fit_are_refused(name, got, wanted):
    problem = make(damped=True)
    part = torch.zeros(got, dtype=torch.float64)
    if name in ("gate", "focus"):
        problem = problem._replace(penalty=problem.penalty._replace(**{name: part}))
    elif name == "centre":
        problem = problem._replace(damping=problem.damping._replace(centre=part))
    else:
        problem = problem._replace(**{name: part})
    message = re.escape(f"{name} has shape {got}, not {wanted}")
    with pytest.raises(ValueError, match=message):
        problem.attend(cpu)


def test_rows_and_window_of_different_lengths_are_refused():
    problem = make(rows=[0, 0])._replace(rows=torch.tensor([0, 0, 1]))
    with pytest.raises(ValueError, match="3 rows, 2 first positions and 2 ends"):
        problem.attend(cpu)
