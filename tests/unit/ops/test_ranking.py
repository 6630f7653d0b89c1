from __future__ import annotations

import pytest
import torch

from nmtflex.ops.vocabulary import ranking
from nmtflex.ops.vocabulary.ranking import best


def by_sorting(values: torch.Tensor, count: int) -> tuple[list, list]:
    """The definition: sort each row by value, highest first, then by column, lowest first."""
    pairs = [sorted(zip((-row).tolist(), range(len(row)), strict=True))[:count] for row in values]
    return [[-v for v, _ in row] for row in pairs], [[k for _, k in row] for row in pairs]


@pytest.fixture(params=["cpu", "gpu"], autouse=True)
def _both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "as_on_gpu", lambda device: request.param == "gpu")


@pytest.mark.parametrize("columns", [1, 3, 7, 700, 5000])  # both sides of the chunks' threshold
@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("levels", [1, 4, 10**6])  # all equal, many ties, hardly any
def test_equals_sorting(columns: int, count: int, levels: int) -> None:
    generator = torch.Generator().manual_seed(columns * count)
    values = -torch.randint(levels, (6, columns), generator=generator).double()
    found = best(values, count)
    assert (found[0].tolist(), found[1].tolist()) == by_sorting(values, count)


def test_empty_places_come_last() -> None:
    inf = torch.inf
    values = torch.tensor([[-inf, -1.0, -inf, -1.0, -2.0], [-3.0, -inf, -inf, -inf, -inf]])
    top, found = best(values, 4)
    assert top.tolist() == [[-1, -1, -2, -inf], [-3, -inf, -inf, -inf]]
    assert found[0, :3].tolist() == [1, 3, 4]
    assert found[1, 0].item() == 0


@pytest.mark.parametrize("columns", [9, 5000])
def test_nan_comes_first_so_that_it_is_seen(columns: int) -> None:
    values = torch.zeros(2, columns)
    values[1, columns // 2] = torch.nan
    assert best(values, 3)[0][1, 0].isnan()


def test_fewer_columns_than_asked_for() -> None:
    top, found = best(torch.tensor([[1.0, 3.0, 3.0]]), 5)
    assert top.tolist() == [[3, 3, 1]]
    assert found.tolist() == [[1, 2, 0]]
