"""Times of windowed attention over lengths and sizes, for ``nmtflex bench --kernels``.

Legend: B sentences, S source positions, N hypotheses, D units of a key; a value has 2 D units, as
the states of both directions have.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nmtflex.ops.attend import reference
from nmtflex.ops.attend.operation import Penalty, Source, Window
from nmtflex.ops.dispatch import implementation
from nmtflex.ops.launch import wait_for


class Case(NamedTuple):
    """One size of the operation."""

    length: int  # S
    size: int  # D
    sentences: int = 32  # B
    beam: int = 5
    steps: int = 1  # of a decoder, in training


DECODING = (
    Case(24, 256),
    Case(35, 512),
    Case(145, 512),
    Case(500, 512, sentences=16),
    Case(24, 1000, beam=20),
)
TRAINING = (
    Case(10, 256, sentences=64, beam=1, steps=12),
    Case(25, 512, sentences=64, beam=1, steps=25),
)


class KernelTimes(NamedTuple):
    """The times of one case, in milliseconds: a list of rounds for each way of computing it."""

    case: Case
    milliseconds: dict[str, list[float]]

    def median(self, way: str) -> float:
        """Return the median of the rounds."""
        return statistics.median(self.milliseconds[way])


def bench_decoding(
    cases: tuple[Case, ...] = DECODING,
    share: float = 0.4,
    seconds: float = 2.0,
    device: str = "cpu",
    repeats: int | None = None,
) -> list[KernelTimes]:
    """Time one step of additive attention without gradients.

    The ways are ``expand`` (the memory copied for the beam, then the reference), ``reference``,
    ``fused`` (all positions, no penalty), ``penalty`` (all positions, with one) and ``window`` (a
    penalty, and the positions near the focus alone).

    Args:
        cases: Sizes.
        share: Part of the positions that the window has.
        seconds: How long each case is repeated; at least three rounds.
        device: Of the tensors.
        repeats: Rounds of each case, instead of ``seconds``.
    """
    return [
        KernelTimes(case, _rounds(_decoding_ways(case, share, device), device, seconds, repeats))
        for case in cases
    ]


def bench_training(
    cases: tuple[Case, ...] = TRAINING,
    seconds: float = 2.0,
    device: str = "cpu",
    repeats: int | None = None,
) -> list[KernelTimes]:
    """Time additive attention over all steps of a batch, forward and backward.

    The ways are ``reference``, ``fused``, ``apart`` (fused, but each step computes gradients of
    keys and values, and autograd adds them) and ``forward`` (fused, without the backward
    pass).
    """
    return [
        KernelTimes(case, _rounds(_training_ways(case, device), device, seconds, repeats))
        for case in cases
    ]


def _rounds(
    ways: dict[str, Callable[[], object]], device: str, seconds: float, repeats: int | None
) -> dict[str, list[float]]:
    """Run each way in turn, repeatedly.

    Each runs twice and is timed the second time, with its own data in the caches.
    """
    milliseconds: dict[str, list[float]] = {name: [] for name in ways}
    end = time.perf_counter() + (seconds if repeats is None else 0)
    while len(next(iter(milliseconds.values()))) < (repeats or 3) or time.perf_counter() < end:
        for name, way in ways.items():
            way()
            wait_for(torch.device(device))
            begin = time.perf_counter()
            way()
            wait_for(torch.device(device))
            milliseconds[name].append(1000 * (time.perf_counter() - begin))
    return milliseconds


class _Problem(NamedTuple):
    """Random inputs of a case."""

    query: Tensor  # [N, D]
    keys: Tensor  # [B, S, D]
    values: Tensor  # [B, S, 2 D]
    v: Tensor  # [D]
    lengths: Tensor  # [B]
    rows: Tensor  # [N]
    gate: Tensor  # [N]
    focus: Tensor  # [N]


def _problem(case: Case, device: str) -> _Problem:
    draw = torch.Generator().manual_seed(1)
    count = case.sentences * case.beam
    # The hypotheses of a sentence look at about the same place.
    focus = torch.rand(case.sentences, generator=draw).repeat_interleave(case.beam) * case.length
    focus = focus + torch.randn(count, generator=draw)

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=draw).to(device)

    return _Problem(
        query=random(count, case.size),
        keys=random(case.sentences, case.length, case.size),
        values=random(case.sentences, case.length, 2 * case.size),
        v=random(case.size) / case.size**0.5,
        lengths=torch.full((case.sentences,), case.length, device=device),
        rows=torch.arange(case.sentences, device=device).repeat_interleave(case.beam),
        gate=torch.full((count,), 0.5, device=device),
        focus=focus.clamp(0, case.length - 1).to(device),
    )


def _decoding_ways(case: Case, share: float, device: str) -> dict[str, Callable[[], object]]:
    given = _problem(case, device)
    fast = implementation("attend", torch.device(device))
    source = fast.make_source(given.keys, given.values, given.lengths)
    plain = Source(given.keys, given.values, given.lengths)
    penalty = Penalty(given.gate, given.focus, sigma=case.length / 8)
    width = max(1, round(share * case.length))
    start = (given.focus - width / 2).round().long().clamp(0, case.length - width)
    window = Window(start, start + width)

    def expand() -> object:
        copied = Source(*(part.index_select(0, given.rows) for part in plain))
        return reference.attend(given.query, copied, None, given.v)

    return {
        "expand": expand,
        "reference": lambda: reference.attend(given.query, plain, given.rows, given.v),
        "fused": lambda: fast.attend(given.query, source, given.rows, given.v),
        "penalty": lambda: fast.attend(given.query, source, given.rows, given.v, penalty=penalty),
        "window": lambda: fast.attend(given.query, source, given.rows, given.v, window, penalty),
    }


def _training_ways(case: Case, device: str) -> dict[str, Callable[[], object]]:
    given = _problem(case, device)
    query, keys, values, v = (part.clone().requires_grad_() for part in given[:4])
    fast = implementation("attend", torch.device(device))

    def forward(chosen: Any, gathered: bool = True) -> Tensor:
        source = Source(keys, values, given.lengths)
        if gathered:
            source = chosen.make_source(*source)
        total = query.new_zeros(())
        focus = given.focus
        for _ in range(case.steps):  # each step looks where the last one did, as a decoder does
            penalty = Penalty(given.gate, focus, sigma=1.5)
            context, focus, *_ = chosen.attend(query, source, None, v, penalty=penalty)
            total = total + context.sum()
        return total

    def both(chosen: Any, gathered: bool = True) -> object:
        return torch.autograd.grad(forward(chosen, gathered), (query, keys, values, v))

    return {
        "reference": lambda: both(reference),
        "fused": lambda: both(fast),
        "apart": lambda: both(fast, gathered=False),
        "forward": lambda: forward(fast),
    }
