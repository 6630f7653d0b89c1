"""Guided alignment: the loss by plain loops, and what it asks of data and model."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from letters import small_model

from nmtflex.attention import Limits
from nmtflex.config import GlobalConfig, NoneConfig, TrainConfig
from nmtflex.corpus.batches import Batches
from nmtflex.corpus.store import LinkStore, StoreWriter
from nmtflex.errors import OptionError
from nmtflex.model.build import build_model
from nmtflex.training.gradients import Gradients
from nmtflex.training.guidance import Guidance, LinkInputs, alignment_loss, open_guidance
from nmtflex.training.tensors import inputs_of, loss_of


@pytest.fixture
def linked(batches: Batches, tmp_path) -> Batches:
    """Give every third pair no link, and to the others random ones, several for some tokens."""
    draw = np.random.default_rng(4)
    lengths = batches.source.lengths, batches.target.lengths
    with StoreWriter(tmp_path / "links", "<u2") as writer:
        for pair, (source, target) in enumerate(zip(*lengths, strict=True)):
            several = {
                (int(draw.integers(source)), int(draw.integers(target)))
                for _ in range(0 if pair % 3 == 2 else 1 + target)
            }
            writer.append(np.array(sorted(several), int).ravel(), [2 * len(several)])
    batches.links = LinkStore(tmp_path / "links", "<u2", lengths)
    return batches


def by_loops(batches: Batches, pairs, weights: torch.Tensor) -> tuple[float, int]:
    """Return the loss and the number of linked target tokens, link by link."""
    total, count = 0.0, 0
    for row, pair in enumerate(pairs):
        links = [tuple(link) for link in batches.links[pair].tolist()]
        for step in {target for _, target in links}:
            own = [source for source, target in links if target == step]
            whole = sum(weights[row, step].tolist())
            for source in own:
                total -= math.log(weights[row, step, source].item() / whole) / len(own)
            count += 1
    return total, count


def test_the_loss_by_loops(model, linked):
    pairs = np.arange(5)
    inputs = inputs_of(linked.collate(pairs), model.device)
    plain = loss_of(model.eval(), inputs)
    weights = model.loss(*inputs[:4], limits=Limits(weights=True)).weights
    expected, count = by_loops(linked, pairs, weights)
    loss = loss_of(model, inputs, guidance=Guidance(0.7))
    assert loss.alignment.item() == pytest.approx(expected, rel=1e-6)  # shares are float32
    assert loss.linked == count > 5
    assert loss.objective.item() == pytest.approx(
        plain.objective.item() + 0.7 * loss.alignment.item(), rel=1e-12
    )
    assert loss.cross_entropy.item() == pytest.approx(plain.cross_entropy.item(), rel=1e-12)
    assert loss.weights is None
    assert not loss.alignment.requires_grad


def test_weights_that_do_not_sum_to_1_are_compared_with_their_sum():
    weights = torch.tensor([[[0.1, 0.3, 0.0], [0.5, 0.5, 0.0]]], dtype=torch.float64)
    links = LinkInputs(torch.tensor([1]), torch.ones(1), 1)
    assert alignment_loss(weights, links).item() == pytest.approx(-math.log(0.3 / 0.4))


def test_negative_weights_count_as_0():
    """Else the loss of the first link would be -log 60, and fall without end."""
    weights = torch.tensor([[[0.6, -0.7, 0.11], [0.5, -0.1, 0.3]]], requires_grad=True)
    loss = alignment_loss(weights, LinkInputs(torch.tensor([0]), torch.ones(1), 1))
    assert loss.item() == pytest.approx(-math.log(0.6 / 0.71))
    loss = alignment_loss(weights, LinkInputs(torch.tensor([0, 4]), torch.ones(2), 2))
    loss.backward()
    assert loss.item() > 0
    assert weights.grad.isfinite().all()


def test_a_link_outside_the_window_has_a_finite_loss_and_gradient():
    weights = torch.tensor([[[0.0, 1.0], [0.0, 0.0]]], requires_grad=True)
    loss = alignment_loss(weights, LinkInputs(torch.tensor([0, 2]), torch.ones(2), 2))
    loss.backward()
    assert math.isfinite(loss.item())
    assert loss.item() > 30
    assert weights.grad.isfinite().all()


def test_pieces_and_accumulation_have_the_same_gradient(model, linked):
    pairs = np.arange(len(linked.source))
    found = []
    for chosen in ([pairs], np.array_split(pairs, 3), np.array_split(pairs, len(pairs))):
        maker = Gradients(model.eval(), linked, 0.1, 0.0, guidance=Guidance(2.0))
        sums = maker.of(list(chosen))
        found.append((sums, [weight.grad.clone() for weight in model.parameters()]))
    (first, gradients), *others = found
    assert first.linked > 0
    for sums, grads in others:
        assert sums.alignment == pytest.approx(first.alignment, rel=1e-12)
        assert (sums.linked, sums.tokens) == (first.linked, first.tokens)
        for one, other in zip(grads, gradients, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)
    plain = Gradients(model, linked, 0.1, 0.0).of([pairs])
    assert (plain.alignment, plain.linked) == (0.0, 0)


def config(**options: object) -> TrainConfig:
    return TrainConfig.from_flat(data="x", run="y", **options)


def test_what_it_needs(corpus, model, linked, monkeypatch):
    assert open_guidance(config(), corpus, model, GlobalConfig()) is None
    with pytest.raises(OptionError, match=r"--guided-weight 0.5 .*--guided-alignment"):
        open_guidance(config(guided_weight=0.5), corpus, model, GlobalConfig())
    monkeypatch.setattr(type(corpus), "links", lambda _self, _split: linked.links)
    assert open_guidance(config(guided_weight=0.5), corpus, model, GlobalConfig()) == Guidance(0.5)
    chosen = config(guided_weight=0.5, guided_layer=1, guided_head=1)
    assert open_guidance(chosen, corpus, model, GlobalConfig()) == Guidance(0.5, 0, 0)
    for name in ("layer", "head"):
        with pytest.raises(OptionError, match=f"--guided-{name} 2: the largest is 1"):
            open_guidance(
                config(guided_weight=0.5, **{f"guided_{name}": 2}), corpus, model, GlobalConfig()
            )
        with pytest.raises(OptionError, match=f"--guided-{name} 1 .*--guided-weight"):
            config(**{f"guided_{name}": 1})
    blind = build_model(small_model(attention=NoneConfig()), 20, 20, 8)
    with pytest.raises(OptionError, match=r"--guided-weight 0.5 needs weights .*attention none"):
        open_guidance(config(guided_weight=0.5), corpus, blind, NoneConfig())
