"""Self-attention over whole sentences, against its definition for one sentence and head."""

from __future__ import annotations

import math

import pytest
import torch

from nmtflex.ops.self_attention import Layout, attend

BOTH = pytest.mark.parametrize("kernels", ["auto", "reference"])
CPU = torch.device("cpu")
LENGTHS = [3, 1, 14, 47, 48, 49, 100]  # blocks have 48 queries


@pytest.fixture(autouse=True)
def chosen(request, monkeypatch):
    if "kernels" in request.fixturenames:
        monkeypatch.setenv("NMTFLEX_KERNELS", request.getfixturevalue("kernels"))


def laid_out(lengths):
    return Layout.of(torch.tensor(lengths), max(lengths), CPU)


def learning(lengths, size=24, dtype=torch.float32, more=0):
    torch.manual_seed(sum(lengths))
    return torch.randn(sum(lengths) + more, 3 * size, dtype=dtype).requires_grad_()


def defined(projections, heads, causal=False, keep=None, reach=math.inf):
    """Attend within one sentence, head by head; ``keep`` [h, S, S] multiplies the weights."""
    contexts = []
    parts = (part.chunk(heads, dim=1) for part in projections.chunk(3, dim=1))
    for head, (q, k, v) in enumerate(zip(*parts, strict=True)):
        scores = q @ k.t() / math.sqrt(q.shape[1])
        for i in range(len(scores)):
            for j in range(len(scores)):
                if abs(i - j) > reach or (causal and j > i):
                    scores[i, j] = -math.inf
        weights = scores.softmax(1)
        contexts.append((weights if keep is None else weights * keep[head]) @ v)
    return torch.cat(contexts, dim=1)


def gradient(contexts, projections):
    torch.manual_seed(1)
    (found,) = torch.autograd.grad(contexts, projections, torch.randn(contexts.shape).to(contexts))
    return found


@BOTH
@pytest.mark.parametrize("heads", [1, 3, 8])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_sentence_is_attended_to_as_defined(kernels, heads, dtype):
    x = learning(LENGTHS, dtype=dtype)
    exact = x.detach().double().requires_grad_()
    expected = torch.cat([defined(part, heads) for part in exact.split(LENGTHS)])
    found = attend(x, laid_out(LENGTHS), heads)
    close = {"rtol": 1e-4, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 0, "atol": 1e-12}
    torch.testing.assert_close(found.double(), expected, **close)
    wanted = gradient(expected, exact)
    torch.testing.assert_close(gradient(found, x).double(), wanted, **close)


@pytest.mark.sampled(3)
@BOTH
@pytest.mark.parametrize(("sentences", "width"), [(1, 1), (5, 7), (2, 130)])
def test_a_step_sees_itself_and_those_before(kernels, sentences, width):
    x = learning([width] * sentences)
    exact = x.detach().double().requires_grad_()
    expected = torch.cat([defined(part, 2, causal=True) for part in exact.split(width)])
    found = attend(x, Layout.full(sentences, width), 2, causal=True)
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-5)
    wanted = gradient(expected, exact)
    torch.testing.assert_close(gradient(found, x).double(), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.sampled(8)
@BOTH
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("reach", [1, 15, 16, 30, 99, 1000])
def test_with_a_reach_only_near_positions_are_attended_to(kernels, reach, causal):
    lengths = [60, 60] if causal else LENGTHS
    x = learning(lengths)
    exact = x.detach().double().requires_grad_()
    parts = [defined(part, 3, causal, reach=reach) for part in exact.split(lengths)]
    expected = torch.cat(parts)
    found = attend(x, laid_out(lengths), 3, causal=causal, reach=reach)
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-5)
    wanted = gradient(expected, exact)
    torch.testing.assert_close(gradient(found, x).double(), wanted, rtol=1e-4, atol=1e-5)


@BOTH
def test_positions_out_of_reach_are_never_read(kernels):
    """Poison: NaN in a key or value that counts for 0 would still give NaN."""
    x = learning([130])
    with torch.no_grad():
        x[80:] = math.nan
    found = attend(x, laid_out([130]), 2, reach=5)
    assert torch.isfinite(found[:48]).all()
    assert torch.isnan(found[75:]).all()


@BOTH
def test_further_rows_attend_to_nothing(kernels):
    lengths = [4, 9]
    x = learning(lengths, more=3)
    found = attend(x, laid_out(lengths), 2)
    assert torch.equal(found[:13], attend(x[:13], laid_out(lengths), 2))
    assert not found[13:].any()
    of_x = gradient(found, x)
    assert of_x[:13].any()
    assert not of_x[13:].any()


def dropped(lengths, p, causal=False, reach=None):
    """Return contexts, projections, and what dropout multiplied each weight with.

    Values are the columns of a unit matrix, so contexts are weights.
    """
    width = max(lengths)
    x = learning(lengths, size=width)
    with torch.no_grad():
        x[:, 2 * width :] = torch.cat([torch.eye(width)[:length] for length in lengths])
    layout = laid_out(lengths)
    whole = attend(x, layout, 1, 0.0, causal, reach)
    left = attend(x, layout, 1, p, causal, reach)
    keep = torch.where(whole > 0, left / whole, 1.0).detach()
    return left, x, [part[:, : len(part)] for part in keep.split(lengths)]


@pytest.mark.parametrize("reach", [None, 20])
@pytest.mark.parametrize("causal", [False, True])
def test_dropout_scales_what_it_keeps_and_the_gradient_knows_what_was_dropped(causal, reach):
    lengths = [60, 60] if causal else [7, 60, 20]
    left, x, keep = dropped(lengths, 0.25, causal, reach)
    for part in keep:
        nothing = part.abs() < 1e-6
        assert torch.allclose(part[~nothing & (part != 1)], torch.tensor(1 / 0.75))
    exact = x.detach().double().requires_grad_()
    parts = zip(exact.split(lengths), keep, strict=True)
    near = math.inf if reach is None else reach
    expected = torch.cat([defined(one, 1, causal, own[None].double(), near) for one, own in parts])
    torch.testing.assert_close(left.double(), expected, rtol=1e-4, atol=1e-5)
    wanted = gradient(expected, exact)
    torch.testing.assert_close(gradient(left, x).double(), wanted, rtol=1e-4, atol=1e-5)


def test_each_weight_is_dropped_with_the_same_probability():
    _, _, keep = dropped([100] * 4, 0.3)
    gone = torch.stack(keep).abs() < 1e-6
    deviation = (0.3 * 0.7 / gone.numel()) ** 0.5
    assert abs(gone.double().mean() - 0.3) < 5 * deviation
    # Rows, columns and sentences do not repeat each other.
    for one, other in ((gone[1:], gone[:-1]), (gone[:, 1:], gone[:, :-1])):
        alike = (one == other).double().mean()
        assert abs(alike - (0.3**2 + 0.7**2)) < 5 * (0.25 / one.numel()) ** 0.5


@pytest.mark.parametrize("reach", [None, 20])
def test_a_sentence_gives_the_same_bits_whatever_is_beside_it(with_threads, reach):
    x = learning(LENGTHS)
    with torch.no_grad():
        x[:3] = math.nan  # the first sentence
    parts = []
    for threads in (1, 2):
        with_threads(threads)
        found = attend(x, laid_out(LENGTHS), 3, reach=reach)
        parts.append((found, torch.autograd.grad(found, x, torch.ones_like(found))[0]))
    for contexts, of_x in parts:
        begin = LENGTHS[0]
        for length in LENGTHS[1:]:
            own = slice(begin, begin + length)
            alone = x.detach()[own].requires_grad_()
            found = attend(alone, laid_out([length]), 3, reach=reach)
            (expected,) = torch.autograd.grad(found, alone, torch.ones_like(found))
            assert torch.equal(contexts[own], found)
            assert torch.equal(of_x[own], expected)
            begin += length


def test_bfloat16_is_computed_in_float32():
    x = learning([5, 30]).detach().bfloat16().requires_grad_()
    same = x.detach().float().requires_grad_()
    found, expected = (attend(one, laid_out([5, 30]), 4) for one in (x, same))
    assert torch.equal(found, expected)
    assert torch.equal(gradient(found, x), gradient(expected, same).bfloat16())


def test_no_token_at_all():
    x = torch.empty(0, 12, requires_grad=True)
    found = attend(x, Layout.full(0, 0), 2)
    assert found.shape == (0, 4)
    assert gradient(found, x).shape == (0, 12)
