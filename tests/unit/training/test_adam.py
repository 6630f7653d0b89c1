"""Adam is PyTorch's, bit for bit."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nmtflex.training.adam import Adam


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_weights_and_state_are_those_of_pytorch(dtype):
    torch.manual_seed(1)
    own = [nn.Parameter(torch.randn(shape, dtype=dtype)) for shape in ((7, 5), (33,), (2,))]
    others = [nn.Parameter(weight.detach().clone()) for weight in own]
    found, expected = Adam(own, 0.5), torch.optim.Adam(others, fused=True)
    for update in range(4):
        found.rate = expected.param_groups[0]["lr"] = 0.1 / (update + 1)
        for weight, other in zip(own[:-1], others[:-1], strict=True):  # one never has a gradient
            weight.grad = torch.randn_like(weight)
            other.grad = weight.grad.clone()
        if update == 2:
            own[1].grad = others[1].grad = None
        found.step()
        expected.step()
    for weight, other in zip(own, others, strict=True):
        assert torch.equal(weight, other)
    assert own[2] not in found.state
    for weight, other in zip(own[:-1], others[:-1], strict=True):
        assert found.state[weight].keys() == expected.state[other].keys()
        for key, kept in found.state[weight].items():
            assert kept.dtype == expected.state[other][key].dtype
            assert torch.equal(kept, expected.state[other][key])


def test_no_gradient_moves_nothing():
    weight = nn.Parameter(torch.ones(3))
    Adam([weight]).step()
    assert torch.equal(weight, torch.ones(3))
