"""Which implementation runs, what that loads, and that nothing is compiled twice."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest
import torch
from problems import make

from nmtflex.errors import OptionError
from nmtflex.ops.attend import attend, cpu, make_source, reference
from nmtflex.ops.dispatch import as_on_gpu, form, implementation

CPU = torch.device("cpu")


def test_the_device_chooses(monkeypatch):
    monkeypatch.delenv("NMTFLEX_KERNELS", raising=False)
    assert implementation("attend", CPU) is cpu
    assert implementation("attend", torch.device("meta")) is reference


def test_a_gpu_without_triton_has_the_reference(monkeypatch):
    monkeypatch.delenv("NMTFLEX_KERNELS", raising=False)
    monkeypatch.setattr("nmtflex.ops.dispatch._has_triton", lambda: False)
    assert implementation("attend", torch.device("cuda")) is reference


def test_the_environment_forces_triton(monkeypatch):
    monkeypatch.setenv("NMTFLEX_KERNELS", "triton")
    monkeypatch.setattr("nmtflex.ops.dispatch._has_triton", lambda: True)
    assert form(torch.device("cuda:1")) == "cuda"
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert form(CPU) == "cuda"
    assert as_on_gpu(CPU)
    monkeypatch.delenv("TRITON_INTERPRET")
    with pytest.raises(OptionError, match=r"NMTFLEX_KERNELS=triton: .* cpu .*TRITON_INTERPRET=1"):
        form(CPU)


def test_triton_that_is_not_there_cannot_be_forced(monkeypatch):
    monkeypatch.setenv("NMTFLEX_KERNELS", "triton")
    monkeypatch.setattr("nmtflex.ops.dispatch._has_triton", lambda: False)
    with pytest.raises(OptionError, match=r"NMTFLEX_KERNELS=triton: .*pip install triton"):
        form(torch.device("cuda"))


@pytest.mark.parametrize("kernels", ["auto", "reference"])
def test_what_computes_as_on_a_gpu(monkeypatch, kernels):
    monkeypatch.setenv("NMTFLEX_KERNELS", kernels)
    assert as_on_gpu(torch.device("cuda"))
    assert not as_on_gpu(CPU)


@pytest.mark.parametrize("value", ["", "auto"])
def test_auto(monkeypatch, value):
    monkeypatch.setenv("NMTFLEX_KERNELS", value)
    assert implementation("attend", CPU) is cpu


def test_the_environment_forces_the_reference(monkeypatch):
    monkeypatch.setenv("NMTFLEX_KERNELS", "reference")
    assert implementation("attend", CPU) is reference
    problem = make(dtype=torch.bfloat16)
    source = make_source(problem.keys, problem.values, problem.lengths)
    assert source.keys is problem.keys
    context = attend(problem.query, source, None, problem.v, problem.window, trace=True).context
    assert context.dtype == torch.bfloat16


def test_an_unknown_choice_is_an_error(monkeypatch):
    monkeypatch.setenv("NMTFLEX_KERNELS", "fast")
    with pytest.raises(
        OptionError, match=r"^NMTFLEX_KERNELS: 'fast' is not one of auto, reference, triton$"
    ):
        implementation("attend", CPU)


def run(script: str) -> str:
    environment = {name: text for name, text in os.environ.items() if name != "NMTFLEX_KERNELS"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_numba_is_loaded_where_it_is_needed():
    output = run(
        """
        import sys
        from nmtflex.cli.app import main
        main(["--help"])
        assert not {"numba", "torch"} & set(sys.modules)
        import nmtflex.attention
        assert "numba" not in sys.modules
        print("checked")
        """
    )
    assert output.endswith("checked\n")


@pytest.mark.slow
def test_a_second_process_compiles_nothing():
    for dtype in (torch.float32, torch.float64):  # so that this one has compiled everything
        problem = make(dtype=dtype).learning()
        problem.attend(cpu).context.sum().backward()
    output = run(
        """
        import torch
        torch.set_num_threads(1)
        from nmtflex.ops.attend import attend, loops, make_source, windows
        for dtype in (torch.float32, torch.float64):
            keys = torch.randn(2, 3, 4, dtype=dtype, requires_grad=True)
            source = make_source(keys, keys, torch.tensor([3, 2]))
            query = torch.randn(2, 4, dtype=dtype)
            attend(query, source, v=query[0], trace=True).context.sum().backward()
        assert torch.get_num_threads() == 1  # which starting numba's threads would change
        for function in (windows.check, windows.share, windows.spread, loops.forward,
                         loops.backward_queries, loops.backward_memory):
            stats = function.stats
            print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
        """
    )
    assert [line.split()[1] for line in output.splitlines()] == ["0"] * 6
    assert [line.split()[0] for line in output.splitlines()] == ["1", "1", "2", "2", "2", "2"]
