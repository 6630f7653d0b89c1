"""Tiles as other processors multiply them, compiled for those and run on this one."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

CHECK = """
import sys
import torch
from nmtflex.ops.linear import tiles
from nmtflex.ops.linear.packed import Int8, Packed

assert [tiles.LANES, tiles.INT8.group] == list(map(int, sys.argv[1:]))
for rows, width, out in [(1, 3, 5), (5, 33, 70), (50, 27, 100)]:
    torch.manual_seed(rows)
    x, weight, bias = torch.randn(rows, width), torch.randn(out, width), torch.randn(out)
    expected = x.double() @ weight.double().t() + bias
    assert (Packed(weight)(x, bias) - expected).abs().max() < 1e-4

    def whole(numbers):
        scales = numbers.double().abs().amax(1, keepdim=True) / 127
        return (numbers.double() / scales).round() * scales

    product = Int8(weight)
    away = (product(x) - whole(x) @ whole(weight).t()).abs()
    assert away.mean() < 1e-3 * expected.abs().mean()
    for n in range(rows):
        assert torch.equal(product(x[n : n + 1])[0], product(x)[n])
"""


@pytest.mark.slow
@pytest.mark.skipif(
    (platform.system(), platform.machine()) != ("Linux", "x86_64"), reason="names x86 processors"
)
@pytest.mark.parametrize(("name", "features", "lanes", "group"), [
    ("skylake-avx512", "+avx,+avx2,+fma,+avx512f,+avx512bw,+avx512vl,+avx512dq", 16, 2),
    ("haswell", "+avx,+avx2,+fma", 8, 2),
    ("x86-64", "+sse2", 4, 1),
])  # fmt: skip
def test_products_on_older_processors(name, features, lanes, group, tmp_path):
    has = Path("/proc/cpuinfo").read_text()
    if any(part.strip("+") not in has for part in features.split(",")):
        pytest.skip(f"this processor cannot run code for {name}")
    own = {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": features, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", CHECK, str(lanes), str(group)]
    subprocess.run(command, env=os.environ | own, check=True)
