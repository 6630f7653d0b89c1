from __future__ import annotations

import pytest
import torch

from nmtflex.ops.vocabulary.ranking import best


def by_sorting(values: torch.Tensor, count: int, keys: torch.Tensor) -> tuple[list, list]:
    """The definition: sort each row by value, highest first, then by key, lowest first."""
    pairs = [
        sorted(zip((-row).tolist(), row_keys.tolist(), strict=True))[:count]
        for row, row_keys in zip(values, keys, strict=True)
    ]
    return [[-v for v, _ in row] for row in pairs], [[k for _, k in row] for row in pairs]


@pytest.mark.parametrize("columns", [1, 3, 7, 700, 5000])  # both sides of the chunks' threshold
@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("levels", [1, 4, 10**6])  # all equal, many ties, hardly any
def test_equals_sorting(columns: int, count: int, levels: int) -> None:
    generator = torch.Generator().manual_seed(columns * count)
    values = -torch.randint(levels, (6, columns), generator=generator).double()
    keys = torch.arange(columns).expand(6, -1)
    found = best(values, count)
    assert (found[0].tolist(), found[1].tolist()) == by_sorting(values, count, keys)


@pytest.mark.parametrize("levels", [1, 3, 10**6])
def test_ties_go_by_the_keys_given(levels: int) -> None:
    generator = torch.Generator().manual_seed(levels)
    values = -torch.randint(levels, (8, 12), generator=generator).float()
    keys = torch.stack([torch.randperm(50, generator=generator)[:12] for _ in range(8)])
    found = best(values, 5, keys)
    assert (found[0].tolist(), found[1].tolist()) == by_sorting(values, 5, keys)


def test_empty_places_come_last_and_their_equal_keys_do_no_harm() -> None:
    inf = torch.inf
    values = torch.tensor([[-inf, -1.0, -inf, -1.0, -2.0], [-3.0, -inf, -inf, -inf, -inf]])
    keys = torch.tensor([[0, 8, 0, 6, 7], [5, 0, 0, 0, 0]])
    top, found = best(values, 4, keys)
    assert top.tolist() == [[-1, -1, -2, -inf], [-3, -inf, -inf, -inf]]
    assert found[0, :3].tolist() == [6, 8, 7]
    assert found[1, 0].item() == 5


@pytest.mark.parametrize("columns", [9, 5000])
def test_nan_comes_first_so_that_it_is_seen(columns: int) -> None:
    values = torch.zeros(2, columns)
    values[1, columns // 2] = torch.nan
    assert best(values, 3)[0][1, 0].isnan()


def test_fewer_columns_than_asked_for() -> None:
    top, found = best(torch.tensor([[1.0, 3.0, 3.0]]), 5)
    assert top.tolist() == [[3, 3, 1]]
    assert found.tolist() == [[1, 2, 0]]
