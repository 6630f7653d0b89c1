"""The kernels on a device: how far they are from the reference, how long they take.

    gpu_kernels.py [--device cuda] [--quick] > kernels.json

Every case runs forward and backward in float32 on the device, and in float64 by the reference in
plain PyTorch. An error is the greatest difference of a result or gradient over the greatest number
of that tensor. Times are medians of several rounds, each ended by waiting for the device; bandwidth
counts keys and values once, against a copy of 256 MB on the same device.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nmtflex.ops import recurrent, sequence
from nmtflex.ops.attend import Damping, Penalty, Source, Window, attend, make_source, reference
from nmtflex.ops.launch import wait_for
from nmtflex.ops.recurrent import reference as cells
from nmtflex.ops.sequence import reference as walks

LENGTHS = (1, 2, 3, 17, 100, 1000, 10_000)
SIZES = ((3, 5), (48, 80), (200, 312), (256, 512))  # A and H; most are no power of two
QUICK = ((1, 3, 17), ((3, 5), (20, 12)))
WAYS = ("whole", "window", "penalty", "both", "damping")
LIMIT = 2e-4  # greatest error of float32 over the longest sums here
ROUNDS = 7
STEPS = 6  # T of the operations over all steps

Tensors = tuple[Tensor, ...]


class Case(NamedTuple):
    """One operation on one set of inputs."""

    name: str
    inputs: Tensors  # in float64, with gradients
    fast: Callable[..., Tensors]
    slow: Callable[..., Tensors]
    read: int = 0  # numbers that it must read; 0 if its time is not measured


def main() -> int:
    """Print the measurements; return 1 if a kernel is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true", help="few and small cases")
    options = parser.parse_args()
    device = torch.device(options.device)
    torch.manual_seed(1)
    lengths, sizes = QUICK if options.quick else (LENGTHS, SIZES)
    peak = copy_bandwidth(device, 1 << (16 if options.quick else 26))
    found = []
    for case in cases(lengths, sizes, device):
        facts: dict[str, Any] = {"case": case.name, "error": error(case)}
        if case.read:
            seconds = median_seconds(case, device)
            facts["milliseconds"] = 1000 * seconds
            facts["bandwidth"] = 4 * case.read / seconds / peak
        found.append(facts)
        sys.stderr.write(f"{case.name}: {facts['error']:.1e}\n")
    wrong = [facts["case"] for facts in found if not facts["error"] <= LIMIT]
    report = {"device": name_of(device), "copy_gb_per_second": peak / 1e9, "limit": LIMIT}
    sys.stdout.write(json.dumps(report | {"wrong": wrong, "cases": found}) + "\n")
    return int(bool(wrong))


def cases(
    lengths: tuple[int, ...], sizes: tuple[tuple[int, int], ...], device: torch.device
) -> Iterator[Case]:
    """Yield every operation in every size."""
    for size, values in sizes:
        for length in lengths:
            for additive in (False, True):
                for way in WAYS:
                    yield attend_case(length, size, values, additive, way, device)
                yield scores_case(length, size, additive, device)
            yield walk_case(length, device)
            yield contexts_case(length, values, device)
        yield from cell_cases(size, device)


def attend_case(
    length: int, size: int, width: int, additive: bool, way: str, device: torch.device
) -> Case:
    """Return windowed attention of two hypotheses of each of three sentences."""
    sentences, beam = 3, 2
    count = sentences * beam
    rows = torch.arange(sentences, device=device).repeat_interleave(beam)
    lengths = torch.tensor([length, max(1, length // 2), max(1, length - 1)], device=device)
    own = lengths[rows]
    focus = torch.rand(count, device=device, dtype=torch.float64) * own
    start = torch.minimum((focus * 0.7).long(), own - 1)
    window = Window(start, torch.minimum(start + 1 + length // 3, own))
    gate = torch.rand(count, device=device, dtype=torch.float64)
    shapes = (count, size), (sentences, length, size), (sentences, length, width)
    inputs = [drawn(device, *shape) / size**0.25 for shape in shapes]
    if additive:
        inputs.append(drawn(device, size))
    sigma = max(1.0, length / 8)

    def run(chosen: Any, source: Any, *parts: Tensor) -> Tensors:
        query, keys, values, *rest = parts
        kind = query.dtype
        penalty = (
            Penalty(gate.to(kind), focus.to(kind), sigma) if way in ("penalty", "both") else None
        )
        damping = Damping(focus.to(kind), sigma) if way == "damping" else None
        seen = chosen(
            query,
            source(keys, values, lengths),
            rows,
            rest[0] if rest else None,
            window if way in ("window", "both", "damping") else None,
            penalty,
            damping,
        )
        return seen.context, seen.focus

    score = "additive" if additive else "dot"
    return Case(
        f"attend {score} {way} S={length} A={size} H={width}",
        leaves(inputs),
        lambda *parts: run(attend, make_source, *parts),
        lambda *parts: run(reference.attend, Source, *parts),
        read=int(own.sum()) * (size + width) if way == "whole" and length >= 1000 else 0,
    )


def scores_case(length: int, size: int, additive: bool, device: torch.device) -> Case:
    """Return the scores of all steps."""
    lengths = torch.tensor([length, max(1, length // 2)], device=device)
    inputs = [drawn(device, 2, STEPS, size), drawn(device, 2, length, size) / size**0.5]
    if additive:
        inputs.append(drawn(device, size))

    def run(chosen: Any, *parts: Tensor) -> Tensors:
        query, keys, *rest = parts
        return (chosen.scores(query, keys, lengths, rest[0] if rest else None),)

    return paired(f"scores {'additive' if additive else 'dot'} S={length} A={size}", inputs, run)


def walk_case(length: int, device: torch.device) -> Case:
    """Return the walk of flexible attention's focus through all steps."""
    lengths = torch.tensor([length, max(1, length // 2)], device=device)
    gate = torch.rand(2, STEPS, device=device, dtype=torch.float64)
    focus = torch.rand(2, device=device, dtype=torch.float64)
    inputs = [drawn(device, 2, STEPS, length), gate, focus]

    def run(chosen: Any, *parts: Tensor) -> Tensors:
        return chosen.walk(*parts, lengths, max(1.5, length / 16), torch.inf)

    return paired(f"walk S={length}", inputs, run, walks)


def contexts_case(length: int, width: int, device: torch.device) -> Case:
    """Return the weighted sums of all steps."""
    lengths = torch.tensor([length, max(1, length // 2)], device=device)
    inside = torch.arange(length, device=device) < lengths[:, None, None]
    weights = torch.rand(2, STEPS, length, device=device, dtype=torch.float64) / length * inside
    inputs = [weights, drawn(device, 2, length, width)]
    run = lambda chosen, *parts: (chosen.contexts(*parts, lengths),)  # noqa: E731
    return paired(f"contexts S={length} H={width}", inputs, run, walks)


def cell_cases(size: int, device: torch.device) -> Iterator[Case]:
    """Yield the elementwise operations of cells and gates."""
    inputs = [drawn(device, 5, 4 * size), drawn(device, 5, 4 * size), drawn(device, 5, size)]
    yield paired(
        f"lstm D={size}", inputs, lambda chosen, *parts: chosen.lstm(*parts), cells, recurrent
    )
    inputs = [drawn(device, 2, STEPS, size), drawn(device, 2, STEPS, size), drawn(device, 2, size)]
    yield paired(
        f"ssru D={size}", inputs, lambda chosen, *parts: (chosen.ssru(*parts),), cells, recurrent
    )
    inputs = [drawn(device, 5, size), drawn(device, 5, size), drawn(device, size), drawn(device, 1)]
    yield paired(
        f"gate A={size}", inputs, lambda chosen, *parts: (chosen.gate(*parts),), cells, recurrent
    )


def paired(
    name: str,
    inputs: list[Tensor],
    run: Callable[..., Tensors],
    slow: Any = walks,
    fast: Any = sequence,
) -> Case:
    """Return a case of an operation and its reference, two modules of the same functions."""
    return Case(
        name, leaves(inputs), lambda *parts: run(fast, *parts), lambda *parts: run(slow, *parts)
    )


def drawn(device: torch.device, *shape: int) -> Tensor:
    """Return normal random numbers."""
    return torch.randn(*shape, dtype=torch.float64).to(device)


def leaves(tensors: list[Tensor]) -> Tensors:
    """Return tensors as inputs whose gradients are asked for."""
    return tuple(part.detach().clone().requires_grad_() for part in tensors)


def error(case: Case) -> float:
    """Return the greatest error of results and gradients."""
    single = leaves([part.float() for part in case.inputs])
    found, expected = case.fast(*single), case.slow(*case.inputs)
    arriving = [torch.randn(part.shape, dtype=torch.float64).to(part.device) for part in expected]
    own = [part.to(one) for part, one in zip(arriving, found, strict=True)]
    grads = torch.autograd.grad(found, single, own)
    exact = torch.autograd.grad(expected, case.inputs, arriving)
    return max(
        away(one, other) for one, other in zip((*found, *grads), (*expected, *exact), strict=True)
    )


def away(found: Tensor, expected: Tensor) -> float:
    """Return the greatest difference, over the greatest expected number."""
    scale = max(float(expected.detach().abs().max()), 1.0)
    difference = float((found.detach().double() - expected.detach()).abs().max()) / scale
    return math.inf if math.isnan(difference) else difference  # max() passes NaN over


def median_seconds(case: Case, device: torch.device) -> float:
    """Return the time of the operation without gradients."""
    single = [part.detach().float() for part in case.inputs]
    with torch.no_grad():
        case.fast(*single)
        return timed(lambda: case.fast(*single), device)


def copy_bandwidth(device: torch.device, count: int) -> float:
    """Return the bytes a second that a copy reads and writes."""
    numbers = torch.zeros(count, device=device)
    target = torch.empty_like(numbers)
    return 8 * count / timed(lambda: target.copy_(numbers), device)


def timed(work: Callable[[], object], device: torch.device) -> float:
    """Return the median seconds of some rounds."""
    found = []
    for _ in range(ROUNDS):
        wait_for(device)
        begin = time.perf_counter()
        work()
        wait_for(device)
        found.append(time.perf_counter() - begin)
    return statistics.median(found)


def name_of(device: torch.device) -> str:
    """Return what the device is called."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else str(device)


if __name__ == "__main__":
    sys.exit(main())
