"""All steps of Luong's decoder as one operation: against their definition, in float64."""

from __future__ import annotations

import math
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from nmtflex.ops.attend import Source
from nmtflex.ops.dropout import dropout
from nmtflex.ops.linear.packed import PAYS
from nmtflex.ops.linear.product_loops import ROWS
from nmtflex.ops.luong import Attending, Focusing, Score, Weights, pays, steps

pytestmark = pytest.mark.skipif(not PAYS, reason="no compiled tiles for this processor")
# Steps, sentences, positions, and units of cell, keys, values and gate: none fills a tile.
SHAPES = [(3, 5, 7, 10, 6, 9, 7), (2, ROWS + 3, 9, 24, 8, 40, 20), (1, 1, 1, 3, 2, 5, 4)]
SIGMA = 1.5
SCORES = ["additive", "dot"]
KINDS = [*SCORES, "additive, gate of eq. 8", "dot, gate of eq. 7"]


class Problem(NamedTuple):
    tensors: dict[str, Tensor]
    lengths: Tensor
    tau: float

    def __getitem__(self, name):
        return self.tensors.get(name)

    def source(self) -> Source:
        return Source(self["keys"], self["values"], self.lengths)

    def but(self, **tensors: Tensor) -> Problem:
        return self._replace(tensors={**self.tensors, **tensors})


def problem(shape: tuple[int, ...], kind: str, tau: float = math.inf) -> Problem:
    count, sentences, length, size, units, width, hidden = shape
    additive, eq_7, eq_8 = "additive" in kind, "eq. 7" in kind, "eq. 8" in kind
    units = units if additive else size
    sizes = {
        "gates": (count, sentences, 4 * size),
        "feedback": (count, sentences, hidden if eq_8 else 0),
        "h": (sentences, size),
        "c": (sentences, size),
        "keys": (sentences, length, units),
        "values": (sentences, length, width),
        "joint": (4 * size, 2 * size),
        "attentional": (size, size + width),
    }
    if additive:
        sizes |= {"query": (units, size), "bias": (units,), "v": (units,)}
    if eq_7 or eq_8:
        sizes |= {"gate": (hidden, size), "gate_v": (hidden,), "focus": (sentences,)}
        sizes |= {"gate_bias": (hidden,)} if eq_7 else {"gate_end": (1,)}
    draw = torch.Generator().manual_seed(sum(shape))
    lengths = torch.randint(1, length + 1, (sentences,), generator=draw)
    lengths[0] = length
    tensors = {name: torch.randn(one, generator=draw) / 2 for name, one in sizes.items()}
    if "focus" in tensors:
        tensors["focus"] = tensors["focus"].abs() * 2
    return Problem(tensors, lengths, tau)


def by_steps(given: Problem, masks: Tensor | None = None) -> list[Tensor]:
    """a and gate of every step, sentence by sentence, with no position beyond its length."""
    outputs, gates = [], []
    for b, length in enumerate(given.lengths.tolist()):
        h, c, a = given["h"][b], given["c"][b], torch.zeros_like(given["h"][b])
        p = None if given["focus"] is None else given["focus"][b]
        for t in range(len(given["gates"])):
            fed = a if masks is None or t == 0 else a * masks[t - 1, b]
            product = given["joint"] @ torch.cat([fed, h])
            i, f, g, o = (given["gates"][t, b] + product).chunk(4)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            seen, scores = list(range(length)), scores_of(given, b, length, h)
            if p is not None:
                gates.append(gate_of(given, t, b, h))
                penalty = gates[-1] * (torch.arange(length) - p) ** 2 / (2 * SIGMA**2)
                seen = [s for s in seen if penalty[s] < given.tau]
                seen = seen or [min(range(length), key=lambda s: abs(s - p.item()))]
                scores = (scores - penalty)[seen]
            weights = scores.softmax(0)
            if p is not None:
                p = weights @ torch.tensor(seen, dtype=weights.dtype)
            context = weights @ given["values"][b, seen]
            a = (given["attentional"] @ torch.cat([h, context])).tanh()
            outputs.append(a)
    made = [torch.stack(outputs)] + ([torch.stack(gates)] if gates else [])
    return [one.unflatten(0, (len(given.lengths), -1)).transpose(0, 1) for one in made]


def scores_of(given: Problem, b: int, length: int, h: Tensor) -> Tensor:
    keys = given["keys"][b, :length]
    if given["v"] is None:
        return keys @ h
    return (keys + given["query"] @ h + given["bias"]).tanh() @ given["v"]


def gate_of(given: Problem, t: int, b: int, h: Tensor) -> Tensor:
    inner = given["gate"] @ h
    if given["gate_bias"] is None:  # eq. 8
        inner = inner + given["feedback"][t, b]
        return (given["gate_v"] @ inner.tanh() + given["gate_end"].squeeze()).sigmoid()
    return (given["gate_v"] @ (inner + given["gate_bias"]).tanh()).sigmoid()


def at_once(given: Problem, p: float = 0.0) -> list[Tensor]:
    focusing = None
    if given["gate"] is not None:
        names = "gate", "gate_bias", "gate_v", "gate_end", "focus"
        focusing = Focusing(*(given[name] for name in names), SIGMA, given.tau)
    score = Score(*(given[name] for name in ("query", "bias", "v")))
    weights, state = Weights(given["joint"], given["attentional"]), (given["h"], given["c"])
    attending = Attending(given.source(), score, focusing)
    made = steps(given["gates"], given["feedback"], state, weights, attending, p)
    return [one for one in made if one is not None]


def results(run, given: Problem, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    """What ``run`` makes, and the gradients of all that it reads."""
    leaves = {
        name: part.detach().to(dtype).requires_grad_() for name, part in given.tensors.items()
    }
    made, draw = run(given._replace(tensors=leaves)), torch.Generator().manual_seed(1)
    arriving = [torch.randn(one.shape, generator=draw).to(dtype) for one in made]
    grads = torch.autograd.grad(made, list(leaves.values()), arriving, materialize_grads=True)
    own = {f"made {i}": one.detach() for i, one in enumerate(made)}
    return own | dict(zip(leaves, grads, strict=True))


def assert_close(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, wanted in expected.items():
        limit = 1e-5 * max([1.0, *wanted.abs().flatten().tolist()])
        close = torch.allclose(found[name].double(), wanted, rtol=0, atol=limit)
        assert close, (name, found[name], wanted)


def assert_equal(found: dict[str, Tensor], expected: dict[str, Tensor], but: set[str]) -> None:
    for name, wanted in expected.items():
        assert name in but or torch.equal(found[name], wanted), name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_steps_and_gradients_are_those_of_the_definition(shape, kind):
    given = problem(shape, kind)
    assert_close(results(at_once, given), results(by_steps, given, torch.float64))


@pytest.mark.parametrize("kind", KINDS[2:])
@pytest.mark.parametrize("tau", [0.0, 0.2, 1.0, 1e300])
def test_a_threshold(kind, tau):
    given = problem(SHAPES[0], kind, tau)
    assert_close(results(at_once, given), results(by_steps, given, torch.float64))


@pytest.mark.parametrize("kind", KINDS)
def test_no_bit_depends_on_the_threads(with_threads, kind):
    """The gradients of weights are PyTorch's products, and not promised."""
    given, found = problem(SHAPES[1], kind, 1.0), []
    for threads in (1, 2, 3):
        with_threads(threads)
        found.append(results(at_once, given))
    products = {"joint", "attentional", "query", "gate", "bias", "v"}
    products |= {"gate_bias", "gate_v", "gate_end"}
    for other in found[1:]:
        assert_equal(other, found[0], but=products)
        assert_close(other, {name: one.double() for name, one in found[0].items()})


def test_no_bit_of_a_sentence_depends_on_those_beside_it():
    given = problem(SHAPES[1], KINDS[2], 1.0)
    own = {name: given[name][4:5] for name in ("h", "c", "keys", "values", "focus")}
    own |= {name: given[name][:, 4:5] for name in ("gates", "feedback")}
    single = given.but(**own)._replace(lengths=given.lengths[4:5])
    for one, alone in zip(at_once(given), at_once(single), strict=True):
        assert torch.equal(one[:, 4:5], alone)


@pytest.mark.parametrize("kind", KINDS)
def test_padding_is_never_read(kind):
    given = problem(SHAPES[0], kind)
    beyond = torch.arange(given["keys"].shape[1]) >= given.lengths.unsqueeze(1)
    assert beyond.any()
    poisoned = given.but(
        keys=given["keys"].masked_fill(beyond.unsqueeze(2), torch.nan),
        values=given["values"].masked_fill(beyond.unsqueeze(2), torch.inf),
    )
    found = results(at_once, poisoned)
    assert_equal(found, results(at_once, given), but=set())
    assert not found["keys"][beyond].any()
    assert not found["values"][beyond].any()


def test_what_a_threshold_leaves_out_is_never_read():
    given = problem(SHAPES[0], KINDS[2], 0.0).but(focus=torch.zeros(5))
    given = given._replace(tensors=given.tensors | {"gate_end": torch.full((1,), 9.0)})
    far = torch.arange(given["keys"].shape[1]) > 0  # the gate is closed: the focus stays
    poisoned = given.but(
        keys=given["keys"].masked_fill(far.unsqueeze(1), torch.nan),
        values=given["values"].masked_fill(far.unsqueeze(1), torch.inf),
    )
    assert_equal(results(at_once, poisoned), results(at_once, given), but=set())


def test_dropout_is_on_what_is_fed():
    given, share = problem(SHAPES[0], "additive"), 0.3
    steps_, sentences, size = len(given["gates"]), *given["h"].shape
    torch.manual_seed(5)
    masks = dropout(torch.ones(steps_, sentences, size), share)  # of the seed that steps draw
    assert 0 < (masks == 0).sum() < masks.numel() / 2
    torch.manual_seed(5)
    found = results(lambda one: at_once(one, share), given)
    assert_close(found, results(lambda one: by_steps(one, masks.double()), given, torch.float64))
    again = results(lambda one: at_once(one, share), given)
    assert not torch.equal(found["made 0"], again["made 0"])


def test_only_float32_on_the_cpu_without_autocast_pays(monkeypatch):
    given = problem(SHAPES[0], "additive")
    source, gates = given.source(), given["gates"]
    assert pays(source, gates)
    assert not pays(source, gates.double())
    assert not pays(source._replace(values=source.values.double()), gates)
    with torch.autocast("cpu", torch.bfloat16):
        assert not pays(source, gates)
    monkeypatch.setenv("NMTFLEX_KERNELS", "reference")
    assert not pays(source, gates)
