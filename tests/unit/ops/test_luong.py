"""All steps of Luong's decoder as one operation: against their definition, in float64."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from nmtflex.ops.attend import Source
from nmtflex.ops.dropout import dropout
from nmtflex.ops.linear.packed import PAYS
from nmtflex.ops.linear.product_loops import ROWS
from nmtflex.ops.luong import Parameters, pays, steps

pytestmark = pytest.mark.skipif(not PAYS, reason="no compiled tiles for this processor")
# Steps, sentences, positions, and units of cell, keys and values: none fills a tile.
SHAPES = [(3, 5, 7, 10, 6, 9), (2, ROWS + 3, 9, 24, 8, 40), (1, 1, 1, 3, 2, 5)]


class Problem(NamedTuple):
    gates: Tensor
    h: Tensor
    c: Tensor
    keys: Tensor
    values: Tensor
    lengths: Tensor
    parameters: list[Tensor]

    def leaves(self) -> list[Tensor]:
        return [self.gates, self.h, self.c, self.keys, self.values, *self.parameters]

    def of(self, leaves: list[Tensor]) -> Problem:
        return Problem(*leaves[:5], self.lengths, leaves[5:])


def problem(shape: tuple[int, ...], additive: bool) -> Problem:
    count, sentences, length, size, units, width = shape
    units = units if additive else size
    draw = torch.Generator().manual_seed(sum(shape))
    lengths = torch.randint(1, length + 1, (sentences,), generator=draw)
    lengths[0] = length
    drawn = [(4 * size, 2 * size), (size, size + width)]
    if additive:
        drawn += [(units, size), (units,), (units,)]
    sources = (sentences, length, units), (sentences, length, width)
    states = (count, sentences, 4 * size), (sentences, size), (sentences, size)
    parts = [torch.randn(one, generator=draw) / 2 for one in (*states, *sources, *drawn)]
    return Problem(*parts[:5], lengths, parts[5:])


def by_steps(given: Problem, masks: Tensor | None = None) -> Tensor:
    """a of every step, sentence by sentence, with no position beyond its length."""
    joint, attentional, *additive = given.parameters
    sentences = []
    for b, length in enumerate(given.lengths.tolist()):
        h, c, a = given.h[b], given.c[b], torch.zeros_like(given.h[b])
        keys, values, made = given.keys[b, :length], given.values[b, :length], []
        for t in range(len(given.gates)):
            fed = a if masks is None or t == 0 else a * masks[t - 1, b]
            i, f, g, o = (given.gates[t, b] + joint @ torch.cat([fed, h])).chunk(4)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            if additive:
                query, bias, v = additive
                scores = (keys + query @ h + bias).tanh() @ v
            else:
                scores = keys @ h
            a = (attentional @ torch.cat([h, scores.softmax(0) @ values])).tanh()
            made.append(a)
        sentences.append(torch.stack(made))
    return torch.stack(sentences, dim=1)


def at_once(given: Problem, p: float = 0.0) -> Tensor:
    source = Source(given.keys, given.values, given.lengths)
    return steps(given.gates, (given.h, given.c), source, Parameters(*given.parameters), p)


def results(run, given: Problem, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """What ``run`` makes, and the gradients of all that it reads."""
    leaves = [part.detach().to(dtype).requires_grad_() for part in given.leaves()]
    made = run(given.of(leaves))
    arriving = torch.randn(made.shape, generator=torch.Generator().manual_seed(1)).to(dtype)
    return [made.detach(), *torch.autograd.grad(made, leaves, arriving)]


def assert_close(found: list[Tensor], expected: list[Tensor]) -> None:
    for one, wanted in zip(found, expected, strict=True):
        limit = 1e-5 * max(1.0, wanted.abs().max().item())
        torch.testing.assert_close(one.double(), wanted, rtol=0, atol=limit)


@pytest.mark.parametrize("additive", [True, False])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_steps_and_gradients_are_those_of_the_definition(shape, additive):
    given = problem(shape, additive)
    assert_close(results(at_once, given), results(by_steps, given, torch.float64))


@pytest.mark.parametrize("additive", [True, False])
def test_no_bit_depends_on_the_threads(with_threads, additive):
    """The gradients of weights are PyTorch's products, and not promised."""
    given, found = problem(SHAPES[1], additive), []
    for threads in (1, 2, 3):
        with_threads(threads)
        found.append(results(at_once, given))
    for one, other, third in list(zip(*found, strict=True))[:6]:
        assert torch.equal(one, other)
        assert torch.equal(one, third)
    assert_close(found[1], [part.double() for part in found[0]])
    assert_close(found[2], [part.double() for part in found[0]])


def test_no_bit_of_a_sentence_depends_on_those_beside_it():
    given = problem(SHAPES[1], True)
    alone = [part[4:5] for part in (given.h, given.c, given.keys, given.values)]
    single = Problem(given.gates[:, 4:5], *alone, given.lengths[4:5], given.parameters)
    assert torch.equal(at_once(given)[:, 4:5], at_once(single))


@pytest.mark.parametrize("additive", [True, False])
def test_padding_is_never_read(additive):
    given = problem(SHAPES[0], additive)
    beyond = torch.arange(given.keys.shape[1]) >= given.lengths.unsqueeze(1)
    assert beyond.any()
    poisoned = given._replace(
        keys=given.keys.masked_fill(beyond.unsqueeze(2), torch.nan),
        values=given.values.masked_fill(beyond.unsqueeze(2), torch.inf),
    )
    for one, other in zip(results(at_once, given), results(at_once, poisoned), strict=True):
        assert torch.equal(one, other)
    *_, of_keys, of_values = results(at_once, poisoned)[:6]
    assert not of_keys[beyond].any()
    assert not of_values[beyond].any()


def test_dropout_is_on_what_is_fed():
    given, share = problem(SHAPES[0], True), 0.3
    steps_, sentences, size = len(given.gates), *given.h.shape
    torch.manual_seed(5)
    masks = dropout(torch.ones(steps_, sentences, size), share)  # of the seed that steps draw
    assert 0 < (masks == 0).sum() < masks.numel() / 2
    torch.manual_seed(5)
    found = results(lambda one: at_once(one, share), given)
    assert_close(found, results(lambda one: by_steps(one, masks.double()), given, torch.float64))
    again = results(lambda one: at_once(one, share), given)
    assert not torch.equal(found[0], again[0])


def test_only_float32_on_the_cpu_without_autocast_pays(monkeypatch):
    given = problem(SHAPES[0], True)
    source = Source(given.keys, given.values, given.lengths)
    assert pays(source, given.gates)
    assert not pays(source, given.gates.double())
    assert not pays(source._replace(values=given.values.double()), given.gates)
    with torch.autocast("cpu", torch.bfloat16):
        assert not pays(source, given.gates)
    monkeypatch.setenv("NMTFLEX_KERNELS", "reference")
    assert not pays(source, given.gates)
