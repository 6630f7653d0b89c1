"""Scans, the expectation of their stops, and chunks: loops from the papers against both forms."""

from __future__ import annotations

import importlib
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

FORMS = {
    name: importlib.import_module(f"nmtflex.ops.monotonic.{name}") for name in ("reference", "cpu")
}
LENGTHS = torch.tensor([7, 1, 4])
STEPS = 5


@pytest.fixture(params=FORMS)
def form(request):
    return FORMS[request.param]


def normal(*size, seed=0, scale=1.0, dtype=torch.float64):
    draw = torch.Generator().manual_seed(seed)
    return (scale * torch.randn(size, generator=draw, dtype=torch.float64)).to(dtype)


def distribution(*size, seed=3):
    """Positive numbers whose last dimension sums to less than 1."""
    draw = torch.Generator().manual_seed(seed)
    drawn = torch.rand(size, generator=draw, dtype=torch.float64)
    return drawn / (drawn.sum(-1, keepdim=True) + 0.3)


def expected_by_hand(energies, before):
    """Raffel et al., eq. 9: the sum over all earlier stops of the ways to get from there to s.

    ``energies`` [T][S] and ``before`` [S] are of one sentence without padding.
    """
    found, last = [], before
    for row in energies:
        p = [1 / (1 + math.exp(-energy)) for energy in row]
        last = [
            p[s] * sum(last[k] * math.prod(1 - p[i] for i in range(k, s)) for k in range(s + 1))
            for s in range(len(p))
        ]
        found.append(last)
    return found


def chunked_by_hand(alpha, scores, width):
    """Chiu and Raffel's sum over the chunks that hold a position, of one step."""
    length, beta = len(alpha), []
    for s in range(length):
        total = 0.0
        for stop in range(s, min(s + width, length)):
            chunk = range(max(stop - width + 1, 0), stop + 1)
            total += alpha[stop] * math.exp(scores[s]) / sum(math.exp(scores[i]) for i in chunk)
        beta.append(total)
    return beta


@pytest.mark.parametrize("scale", [1.0, 6.0])
def test_stops_are_expected_as_in_the_paper(form, scale):
    energies, before = normal(3, STEPS, 7, scale=scale), distribution(3, 7)
    found = form.expected(energies, before, LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
        wanted = expected_by_hand(energies[row, :, :length].tolist(), before[row, :length].tolist())
        for t, alpha in enumerate(wanted):
            assert found[row, t, :length].tolist() == pytest.approx(alpha, abs=1e-13)
        assert (found[row, :, length:] == 0).all()


@pytest.mark.parametrize("width", [1, 2, 3, 7])
def test_stops_are_spread_as_in_the_paper(form, width):
    alpha, scores = distribution(3, STEPS, 7), normal(3, STEPS, 7, scale=2.0)
    found = form.chunked(alpha, scores, LENGTHS, width)
    for row, length in enumerate(LENGTHS.tolist()):
        for t in range(STEPS):
            parts = (part[row, t, :length].tolist() for part in (alpha, scores))
            wanted = chunked_by_hand(*parts, width)
            assert found[row, t, :length].tolist() == pytest.approx(wanted, abs=1e-13)
            assert sum(wanted) == pytest.approx(alpha[row, t, :length].sum().item(), abs=1e-13)
        assert (found[row, :, length:] == 0).all()


def test_gradients_of_expected_stops_are_the_slopes(form):
    inputs = normal(3, 3, 7, scale=2.0).requires_grad_(), distribution(3, 7).requires_grad_()
    inside = (torch.arange(7) < LENGTHS[:, None]).unsqueeze(1)
    assert torch.autograd.gradcheck(lambda *given: form.expected(*given, LENGTHS), inputs)
    found = torch.autograd.grad(form.expected(*inputs, LENGTHS).square().sum(), inputs)
    assert not found[0].masked_select(~inside).any()
    assert not found[1].masked_select(~inside[:, 0]).any()


@pytest.mark.parametrize("width", [1, 3])
def test_gradients_of_chunks_are_the_slopes(form, width):
    inside = (torch.arange(7) < LENGTHS[:, None]).unsqueeze(1)
    inputs = distribution(3, 2, 7).requires_grad_(), normal(3, 2, 7, scale=2.0).requires_grad_()

    def spread(alpha, scores):
        return form.chunked(alpha * inside, scores, LENGTHS, width)

    assert torch.autograd.gradcheck(spread, inputs)


def energies_by_hand(query, v, bias, keys):
    """The energies of one query over one sentence, in lists."""
    return [
        sum(a * math.tanh(q + k) for a, q, k in zip(v, query, key, strict=True)) + bias
        for key in keys
    ]


ROWS = torch.tensor([0, 0, 0, 1, 2, 2])
START = torch.tensor([0, 2, 7, 0, 3, 0])


def test_a_scan_stops_at_the_first_energy_of_at_least_0(form):
    query, v, keys = normal(6, STEPS, 4), normal(4, seed=1), normal(3, 7, 4, seed=2)
    bias = torch.tensor([0.1], dtype=torch.float64)
    position, chosen = form.scan(query, v, bias, keys, LENGTHS[ROWS], ROWS, START)
    kinds = set()
    for n, row in enumerate(ROWS.tolist()):
        s, length = int(START[n]), int(LENGTHS[row])
        for t in range(STEPS):
            own = keys[row, :length].tolist()
            energies = energies_by_hand(query[n, t].tolist(), v.tolist(), 0.1, own)
            begun = s
            while s < length and energies[s] < 0:
                s += 1
            assert (position[n, t], chosen[n, t]) == (s, s < length)
            kinds.add("end" if s == length else "stay" if s == begun else "move")
    assert kinds == {"end", "stay", "move"}


def test_a_scan_without_rows_is_one_of_each_sentence(form):
    parts = normal(3, STEPS, 4), normal(4, seed=1), torch.zeros(1).double(), normal(3, 7, 4, seed=2)
    start = torch.zeros(3, dtype=torch.long)
    plain = form.scan(*parts, LENGTHS, None, start)
    named = form.scan(*parts, LENGTHS, torch.arange(3), start)
    assert all(map(torch.equal, plain, named))


@pytest.mark.parametrize("poison", [math.nan, math.inf])
def test_a_scan_reads_nothing_beyond_its_stop(poison):
    query, v, keys = normal(3, 1, 4), normal(4, seed=1), normal(3, 7, 4, seed=2)
    rest = torch.zeros(1).double(), LENGTHS, None, torch.tensor([1, 0, 0])
    clean = FORMS["cpu"].scan(query, v, rest[0], keys, *rest[1:])
    for row, stop in enumerate(clean[0][:, 0].tolist()):
        keys[row, stop + 1 :] = poison
    keys[0, 0] = poison  # before its start
    found = FORMS["cpu"].scan(query, v, rest[0], keys, *rest[1:])
    assert all(map(torch.equal, found, clean))


def test_nan_shows(form):
    keys = normal(2, 3, 4)
    keys[:, 1] = math.nan
    bias, lengths = torch.tensor([-100.0]).double(), torch.tensor([3, 1])
    start = torch.zeros(2, dtype=torch.long)
    position, chosen = form.scan(normal(2, 2, 4), normal(4), bias, keys, lengths, None, start)
    assert position.tolist() == [[1, 1], [1, 1]]  # the second has passed its end
    assert chosen[0].isnan().all()
    assert (chosen[1] == 0).all()
    energies = normal(2, 2, 3)
    energies[0, 0, 1] = math.nan
    alpha = form.expected(energies, distribution(2, 3), lengths)
    assert alpha[0, :, 1:].isnan().all()
    assert torch.isfinite(alpha[1]).all()


@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf])
def test_padding_is_never_read(form, poison):
    energies, before = normal(3, STEPS, 7), distribution(3, 7)
    scores, padding = normal(3, STEPS, 7, seed=4), torch.arange(7) >= LENGTHS[:, None]

    def made(fill):
        def filled(part, where):
            return part.masked_fill(where, fill).requires_grad_()

        inputs = [filled(part, padding[:, None]) for part in (energies, scores)]
        inputs.append(filled(before, padding))
        alpha = form.expected(inputs[0], inputs[2], LENGTHS)
        beta = form.chunked(alpha, inputs[1], LENGTHS, 3)
        arriving = torch.where(padding[:, None], fill, energies.cos())
        return [alpha, beta, *torch.autograd.grad(beta, inputs, arriving)]

    for part, other in zip(made(poison), made(0.0), strict=True):
        assert torch.equal(part, other)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extreme_energies_and_scores_stay_probabilities(form, dtype):
    """No probability is negative or above 1, and no gradient is lost to NaN."""
    lengths = torch.tensor([300, 300])
    energies = normal(2, 40, 300, scale=200.0, dtype=dtype).requires_grad_()
    scores = normal(2, 40, 300, scale=1e4, seed=2, dtype=dtype).requires_grad_()
    before = torch.zeros(2, 300, dtype=dtype)
    before[:, 0] = 1
    alpha = form.expected(energies, before, lengths)
    beta = form.chunked(alpha, scores, lengths, 4)
    slack = 1e-5 if dtype == torch.float32 else 1e-12
    for part in (alpha, beta):
        assert (part >= 0).all()
        assert (part.sum(2) <= 1 + slack).all()
    gradients = torch.autograd.grad(beta.square().sum(), [energies, scores])
    assert all(torch.isfinite(gradient).all() for gradient in gradients)
    hard = form.expected(normal(2, 40, 300).sign() * 1e4, before.double(), lengths)
    assert set(hard.unique().tolist()) == {0.0, 1.0}


@settings(max_examples=40, derandomize=True, deadline=None)
@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=4),
    st.integers(1, 6),
    st.integers(1, 9),
    st.sampled_from([0.3, 2.0, 10.0]),
    st.integers(0, 1000),
)
def test_fast_equals_reference_in_float32(lengths, steps, width, scale, seed):
    longest, ends = max(lengths), torch.tensor(lengths)
    size = (len(lengths), steps, longest)
    made = []
    for form in FORMS.values():
        energies = normal(*size, seed=seed, scale=scale, dtype=torch.float32).requires_grad_()
        scores = normal(*size, seed=seed + 1, dtype=torch.float32).requires_grad_()
        before = distribution(len(lengths), longest).float().requires_grad_()
        alpha = form.expected(energies, before, ends)
        beta = form.chunked(alpha, scores, ends, min(width, longest))
        total = (beta * normal(*size, seed=9).float()).sum()
        made.append([alpha, beta, *torch.autograd.grad(total, [energies, scores, before])])
    for part, other in zip(*made, strict=True):
        torch.testing.assert_close(part, other, rtol=0, atol=2e-5)


def test_other_sentences_and_threads_change_no_bit():
    energies, before = normal(3, 60, 200, dtype=torch.float32), distribution(3, 200).float()
    scores, lengths = normal(3, 60, 200, seed=5, dtype=torch.float32), torch.tensor([200, 31, 77])
    query, keys = normal(3, 60, 16, dtype=torch.float32), normal(3, 200, 16, dtype=torch.float32)
    v, bias, start = normal(16).float(), torch.tensor([-3.0]), torch.zeros(3, dtype=torch.long)

    def made(chosen):
        length, form = int(lengths[chosen].max()), FORMS["cpu"]
        own = energies[chosen, :, :length].requires_grad_()
        alpha = form.expected(own, before[chosen, :length], lengths[chosen])
        beta = form.chunked(alpha, scores[chosen, :, :length], lengths[chosen], 4)
        [gradient] = torch.autograd.grad(beta.square().sum(), own)
        parts = query[chosen], v, bias, keys[chosen, :length], lengths[chosen], None, start[chosen]
        return [alpha.detach(), beta.detach(), gradient, *form.scan(*parts)]

    before_threads, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(made(slice(None)))
    finally:
        torch.set_num_threads(before_threads)
    assert all(map(torch.equal, *found))
    for row, length in enumerate(lengths.tolist()):
        for part, other in zip(made(slice(row, row + 1)), found[0], strict=True):
            wanted = other[row]
            assert torch.equal(part[0], wanted[:, :length] if wanted.dim() == 2 else wanted)
