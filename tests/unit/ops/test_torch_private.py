"""What a processor can do, by PyTorch's private functions."""

from __future__ import annotations

import pytest
import torch

from nmtflex.ops import torch_private


@pytest.mark.parametrize(("layers", "wide", "own", "fast"), [
    (False, False, False, False),  # AVX2
    (True, True, False, False),  # AVX-512, without instructions for bfloat16
    (True, True, True, True),  # AVX-512 BF16
    (True, False, False, True),  # ARM's instructions, and AVX2's newer ones
])  # fmt: skip
def test_bfloat16_is_fast_where_instructions_are_for_it(monkeypatch, layers, wide, own, fast):
    monkeypatch.setattr(torch_private, "has_bfloat16_layers", lambda: layers)
    monkeypatch.setattr(torch.cpu, "_is_avx512_supported", lambda: wide)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: own)
    assert torch_private.has_fast_bfloat16() == fast


def test_without_these_functions_nothing_is_noted(monkeypatch):
    monkeypatch.setattr(torch_private, "has_bfloat16_layers", lambda: True)
    monkeypatch.delattr(torch.cpu, "_is_avx512_supported")
    monkeypatch.delattr(torch.cpu, "_is_avx512_bf16_supported")
    assert torch_private.has_fast_bfloat16()
