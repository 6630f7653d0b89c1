"""Attention to earlier steps: the loop over numbers, the reference and the compiled loop."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from nmtflex.ops.cache import Cache, attend, cpu, reference

CASES = [(3, 5, 8, 2), (7, 1, 12, 3), (1, 20, 9, 1)]  # N, T, D, h


def problem(count: int, steps: int, size: int, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """A query [N, D], rows [R, 2 D], and places [N, T] that hypotheses may share."""
    draw = torch.Generator().manual_seed(count + steps)
    rows = torch.randn(steps * count + 2, 2 * size, generator=draw, dtype=torch.float64)
    places = torch.randint(0, len(rows), (count, steps), generator=draw)
    query = torch.randn(count, size, generator=draw, dtype=torch.float64)
    return query.to(dtype), rows.to(dtype), places


def by_number(query: Tensor, rows: Tensor, places: Tensor, heads: int) -> list[list[float]]:
    """Vaswani et al., eq. 1, head by head."""
    size = query.shape[1]
    each = size // heads
    found = []
    for q, own in zip(query.tolist(), places.tolist(), strict=True):
        context = []
        for head in range(heads):
            units = range(head * each, (head + 1) * each)
            scores = [sum(q[u] * float(rows[p, u]) for u in units) / math.sqrt(each) for p in own]
            weights = [math.exp(score) for score in scores]
            for u in units:
                sums = (w * float(rows[p, size + u]) for w, p in zip(weights, own, strict=True))
                context.append(sum(sums) / sum(weights))
        found.append(context)
    return found


@torch.no_grad()
@pytest.mark.parametrize("form", [cpu, reference], ids=["loops", "reference"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("dtype", "atol"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_each_form_is_the_equation(form, case, dtype, atol):
    *sizes, heads = case
    query, rows, places = problem(*sizes, dtype)
    expected = torch.tensor(by_number(query.double(), rows.double(), places, heads), dtype=dtype)
    found = form.attend(query, rows, places, heads)
    torch.testing.assert_close(found, expected, rtol=0, atol=atol)


def test_gradients_reach_query_and_rows():
    query, rows, places = problem(3, 4, 6, torch.float64)
    parts = query.requires_grad_(), rows.requires_grad_()
    assert torch.autograd.gradcheck(lambda q, r: attend(q, r, places, 2), parts)


@pytest.mark.parametrize("gradients", [True, False])
def test_a_cache_keeps_what_was_added(gradients):
    added = [torch.full((count, 4), float(count)) for count in (3, 1, 50, 2)]
    cache = Cache(torch.empty(0, 2))
    with torch.set_grad_enabled(gradients):
        places = [cache.add(rows) for rows in added]
        assert torch.cat(places).tolist() == list(range(56))
        torch.testing.assert_close(cache.rows, torch.cat(added))


@torch.no_grad()
def test_rows_of_others_are_never_read():
    query, rows, places = problem(2, 3, 4, torch.float32)
    expected = attend(query, rows, places, 2)
    unused = [place for place in range(len(rows)) if place not in places]
    rows[unused] = math.nan
    assert unused
    torch.testing.assert_close(attend(query, rows, places, 2), expected, rtol=0, atol=0)
