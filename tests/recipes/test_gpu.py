"""The measurements on a GPU: wrong kernels are found, and the tables say what was measured."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

FOLDER = Path(__file__).parents[2] / "recipes"


@pytest.fixture(scope="module")
def kernels():
    spec = importlib.util.spec_from_file_location("gpu_kernels", FOLDER / "gpu_kernels.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_loops_of_the_cpu_pass(kernels):
    found = list(kernels.cases((1, 5), ((3, 5),), torch.device("cpu")))
    names = {case.name.split()[0] for case in found}
    assert names == {"attend", "scores", "walk", "contexts", "lstm", "ssru", "gate"}
    assert all(kernels.error(case) < 1e-5 for case in found)


@pytest.mark.parametrize("factor", [1.01, torch.nan])
def test_a_wrong_result_and_a_wrong_gradient_are_seen(kernels, factor):
    x = kernels.leaves([torch.tensor([1.0, 2.0], dtype=torch.float64)])

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return factor * grad

    def right(x):
        return (x.clone(),)

    assert kernels.error(kernels.Case("right", x, right, right)) < 1e-6
    for wrong in (lambda x: (factor * x,), lambda x: (Wrong.apply(x),)):
        assert not kernels.error(kernels.Case("wrong", x, wrong, right)) <= kernels.LIMIT


def test_the_tables_have_medians_errors_and_the_best_scores(tmp_path):
    run = tmp_path / "gpu-base-float32"
    run.mkdir()
    rows = [(20, 1.0, 500), (40, 2.0, 1000), (60, 4.0, 3000), (80, 5.0, 6000), (100, 7.0, 8000)]
    text = "update,seconds,target_tokens,split,bleu\n"
    text += "".join(f"{update},{seconds},{count},train,\n" for update, seconds, count in rows)
    (run / "metrics.csv").write_text(text + "100,9.0,8000,valid,3.5\n")
    row = {"backbone": "transformer+ssru", "attention": "global"}
    for beam, times in ((5, [0.5, 0.25, 1.0]), (20, [4.0])):
        timed = row | {"milliseconds_per_target_token": {"rounds": times}}
        report = {"beam": beam, "dtype": "bfloat16", "rows": [timed]}
        (tmp_path / f"gpu.decoding.bfloat16.{beam}.json").write_text(json.dumps(report))
    copy = tmp_path / "gpu-copy-memory"
    copy.mkdir()
    (copy / "metrics.csv").write_text(
        "update,seconds,bleu\n2000,50.0,10.25\n4000,100.0,60.5\n4100,102,\n"
    )
    cases = [
        {"case": "attend dot whole S=3 A=3 H=5", "error": 1e-7},
        {"case": "attend dot whole S=1000 A=3 H=5", "error": 3e-5, "milliseconds": 0.25,
         "bandwidth": 0.5},
        {"case": "walk S=3", "error": 2e-6},
    ]  # fmt: skip
    facts = {"device": "some GPU", "copy_gb_per_second": 4300.0, "cases": cases}
    (tmp_path / "gpu.kernels.json").write_text(json.dumps(facts))
    words = [sys.executable, FOLDER / "gpu_table.py", tmp_path, "40", "gpu-base-float32", "gpu-x"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found = done.stdout.splitlines()
    # After 40 updates: 2,000 tokens in 2 s, 3,000 in 1 s, 2,000 in 2 s.
    assert "| base-float32 | 1,000 (1,000 to 3,000) |" in found
    decodings = [line for line in found if line.startswith("| transformer+ssru | global |")]
    assert [line.split(" | ", 2)[2] for line in decodings] == [
        "5 |  | 2,000 (1,000 to 4,000) |", "20 |  | 250 (250 to 250) |"
    ]  # fmt: skip
    assert "| copy-memory | 4100 | 102 | 60.50 |".replace("copy-", "") in found
    worst = "attend dot whole S=1000 A=3 H=5"
    assert f"| attend dot whole | 2 | 3.0e-05 | {worst} | 0.250 ms, 50 % ({worst}) |" in found
    assert "| walk | 1 | 2.0e-06 | walk S=3 |  |" in found
    assert "some GPU" in done.stdout
    assert "4,300 GB/s" in done.stdout
