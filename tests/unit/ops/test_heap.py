"""Rounded numbers of rows change no result, and few of them reach oneDNN."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from nmtflex.layers.linear import Linear
from nmtflex.ops import heap


@pytest.mark.parametrize(("rows", "expected"), [(1, 1), (63, 63), (64, 64), (65, 128), (200, 256)])
def test_rows_of_zeros_are_added(rows, expected):
    x = torch.randn(rows, 3)
    found = heap.rounded(x)
    assert found.shape == (expected, 3)
    assert torch.equal(found[:rows], x)
    assert not found[rows:].any()


def test_rows_of_another_format_are_rounded_up_too():
    x = torch.randn(65, 3)
    found = heap.rounded(x, torch.bfloat16)
    assert torch.equal(found[:65], x.bfloat16())
    assert not found[65:].any()


@pytest.mark.parametrize("shape", [(70, 6), (5, 17, 6), (0, 6)])
def test_a_linear_layer_in_bfloat16_is_what_it_is_without_rounding(shape):
    torch.manual_seed(1)
    layer, x = Linear(6, 4), torch.randn(shape)
    plain = torch.nn.Linear(6, 4)
    plain.load_state_dict(layer.state_dict())
    found = []
    for model in (layer, plain):
        own = x.clone().requires_grad_()
        with torch.autocast("cpu", torch.bfloat16):
            y = model(own)
        (y.float() ** 2).sum().backward()
        found.append((y, own.grad, model.weight.grad, model.bias.grad))
    for part, expected in zip(*found, strict=True):
        torch.testing.assert_close(part, expected, rtol=2e-2, atol=2e-2)
        assert part.dtype == expected.dtype


GROWTH = """
import resource
import torch
from nmtflex.layers.linear import Linear
torch.set_num_threads(1)
layer = Linear(256, 512)
def memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
def update(rows):
    with torch.autocast("cpu", torch.bfloat16):
        y = layer(torch.ones(rows, 256, requires_grad=True))
    y.float().sum().backward()
update(704), update(640)
before = memory()
for rows in range(641, 704):
    update(rows)
print(memory() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="kilobytes as Linux counts them")
def test_memory_does_not_grow_with_the_numbers_of_rows():
    program = [sys.executable, "-c", GROWTH]
    done = subprocess.run(program, check=True, capture_output=True, text=True)
    assert int(done.stdout) < 8_000  # 60,000 without rounding


def test_free_memory_can_be_given_back():
    heap.give_back()  # breaks nothing


FAULTS = """
import ctypes, resource
from nmtflex.ops import heap

library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    block = ctypes.c_void_p(library.malloc(1 << 26))
    ctypes.memset(block, 1, 1 << 26)
    library.free(block)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

heap.reuse_large_blocks()
faults()
print(faults())
heap.give_back()
print(faults())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="another C library")
def test_large_blocks_are_reused_until_they_are_given_back():
    program = [sys.executable, "-c", FAULTS]
    done = subprocess.run(program, check=True, capture_output=True, text=True)
    reused, anew = map(int, done.stdout.split())
    assert anew >= 32  # 16,384 pages of 4 KB, or huge pages of 2 MB
    assert reused < anew / 10
