"""An SSRU through all steps in Triton: equal to the reference, in one block of units or more.

The kernels run on a GPU, or in Triton's interpreter where there is none.
"""

from __future__ import annotations

import pytest
import torch
from recurrences import assert_close, exactly, problem, results

from nmtflex.ops.recurrent import gate, lstm, reference, ssru

pytest.importorskip("triton")

SHAPES = [(1, 1, 1), (1, 7, 128), (3, 1, 33), (2, 4, 300)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(
    ("dtype", "atol"), [(torch.float32, 5e-6), (torch.float64, 1e-13)], ids=["single", "double"]
)
def test_equals_the_reference(triton_device, shape, dtype, atol):
    parts = [part.to(triton_device) for part in problem(*shape, dtype=dtype)]
    got = results(ssru, parts)
    assert {part.dtype for part in got} == {dtype}
    assert_close(got, results(reference.ssru, exactly(parts)), atol)


def test_bfloat16_is_read_and_the_memory_is_float32(triton_device):
    parts = [part.to(triton_device) for part in problem(dtype=torch.bfloat16)]
    got, expected = results(ssru, parts), results(reference.ssru, exactly(parts))
    assert [part.dtype for part in got] == [torch.float32, *[torch.bfloat16] * 3]
    assert_close(got[:1], expected[:1], 5e-6)
    for part, other in zip(got[1:], expected[1:], strict=True):
        # The interpreter cuts off what a GPU would round.
        torch.testing.assert_close(part.double(), other, rtol=2.0**-7, atol=1e-5)


def test_tensors_need_not_be_contiguous(triton_device):
    parts = [part.to(triton_device) for part in problem(dtype=torch.float32)]
    gates, candidates = torch.cat(parts[:2], 2).chunk(2, dim=2)  # as one product yields them
    strided = [gates, candidates, parts[2].t().contiguous().t()]
    assert not any(part.is_contiguous() for part in strided)

    def transposed(*tensors):  # the gradient that arrives is not contiguous either
        return ssru(*tensors).transpose(1, 2)

    def expected(*tensors):
        return reference.ssru(*tensors).transpose(1, 2)

    assert_close(results(transposed, strided), results(expected, exactly(parts)), 5e-6)


def test_a_cell_and_a_gate_have_their_references_there(triton_device):
    product, c = torch.randn(3, 20).to(triton_device), torch.randn(3, 5).to(triton_device)
    for made, wanted in zip(
        lstm(product, product, c), reference.lstm(product, product, c), strict=True
    ):
        assert torch.equal(made, wanted)
    assert torch.equal(gate(c, None, c[0], None), reference.gate(c, None, c[0], None))
