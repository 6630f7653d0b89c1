"""The same gradients to an optimiser of ours and to one of PyTorch."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


def train_both(ours: Any, options: Any, theirs: Any, their_options: Any, dtype=torch.float32):
    """Make four steps, at different rates, and compare weights and state bit for bit.

    One weight never has a gradient, and one has none in the third step. PyTorch's optimiser gets
    its weight decay for the matrix alone.
    """
    torch.manual_seed(1)
    shapes = ((7, 5), (33,), (2,))
    own = [nn.Parameter(torch.randn(shape, dtype=dtype)) for shape in shapes]
    others = [nn.Parameter(weight.detach().clone()) for weight in own]
    groups = [{"params": others[:1]}, {"params": others[1:], "weight_decay": 0.0}]
    found = ours(own, 0.5, **options)
    expected = theirs(groups, lr=0.5, fused=True, **their_options)
    for update in range(4):
        found.rate = 0.1 / (update + 1)
        for group in expected.param_groups:
            group["lr"] = found.rate
        for weight, other in zip(own[:-1], others[:-1], strict=True):
            weight.grad = torch.randn_like(weight)
            other.grad = weight.grad.clone()
        if update == 2:
            own[1].grad = others[1].grad = None
        found.step()
        expected.step()
    for weight, other in zip(own, others, strict=True):
        assert torch.equal(weight, other)
        theirs_state = {k: v for k, v in expected.state.get(other, {}).items() if v is not None}
        own_state = found.state.get(weight, {})
        assert own_state.keys() == theirs_state.keys()
        for key, kept in own_state.items():
            assert kept.dtype == theirs_state[key].dtype
            assert torch.equal(kept, theirs_state[key])
