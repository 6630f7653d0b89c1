"""The code that is compiled gives the same bits as the code that is found on disk."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

BEGIN = """
import hashlib, torch
torch.manual_seed(0)
parts = []
"""
END = """
print(hashlib.sha256(b"".join(part.detach().numpy().tobytes() for part in parts)).hexdigest())
"""
CELLS = """
from nmtflex.layers.dropout import Dropout
from nmtflex.ops.recurrent import lstm, ssru
from nmtflex.ops.vocabulary import cross_entropy_rows
product, summand, c = (torch.randn(5, width).requires_grad_() for width in (24, 24, 6))
h, new = lstm(product, summand, c)
parts += [h, new, *torch.autograd.grad((h * new).sum(), (product, summand, c))]
gates, candidates = (torch.randn(3, 5, 33).requires_grad_() for _ in range(2))
walked = ssru(gates, candidates, torch.randn(3, 33))
parts += [walked, *torch.autograd.grad((walked**2).sum(), (gates, candidates))]
parts.append(Dropout(0.3)(torch.randn(50, 70)))
logits = torch.randn(9, 77)
parts += [*cross_entropy_rows(logits, torch.randn(77), torch.arange(9), 0.1, True), logits]
"""
ATTENTION = """
from nmtflex.ops import sequence
from nmtflex.ops.self_attention import Layout, attend
projections = torch.randn(9, 24).requires_grad_()
attended = attend(projections, Layout.of(torch.tensor([5, 4]), 5, projections.device), 2, 0.1)
parts += [attended, *torch.autograd.grad((attended**2).sum(), projections)]
query, keys, v = (torch.randn(*size).requires_grad_() for size in ((2, 5, 9), (2, 7, 9), (9,)))
lengths = torch.tensor([7, 4])
scores = sequence.scores(query, keys, lengths, v) + sequence.scores(query, keys, lengths)
weights, focus = sequence.walk(scores, scores[..., 0].sigmoid(), torch.zeros(2), lengths, 1.5, 0.3)
contexts = sequence.contexts(weights, keys, lengths)
parts += [contexts, focus, *torch.autograd.grad((contexts**2).sum(), (query, keys, v))]
"""


@pytest.mark.slow
@pytest.mark.parametrize("loops", [CELLS, ATTENTION], ids=["cells", "attention"])
def test_the_first_process_and_the_second_agree(loops, tmp_path):
    settings = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
    first, second = (
        subprocess.run(
            [sys.executable, "-c", BEGIN + loops + END],
            env=settings,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for _ in range(2)
    )
    assert len(first.strip()) == 64
    assert first == second
    assert list(tmp_path.rglob("*.nbc"))
