"""Eq. 9 of Shu and Nakayama (2016) against a loop over sentences and steps."""

from __future__ import annotations

import math

import pytest
import torch

from nmtflex.config import AttentionConfig, FlexibleConfig, ModelConfig
from nmtflex.model.build import build_model
from nmtflex.model.seq2seq import Loss, Seq2Seq
from nmtflex.text.vocabulary import BOS_ID, EOS_ID

# Sources and targets of different lengths, an empty target among them: its EOS is a step.
PAIRS = [([5, 6, 7, 8, 4], [5, 6, 7]), ([8, 9], [7]), ([4], []), ([6, 4, 9], [4, 9, 10, 11, 5])]


def build(attention: AttentionConfig, decoder: str = "bahdanau") -> Seq2Seq:
    torch.manual_seed(7)
    config = ModelConfig.from_flat(
        attention=attention, decoder=decoder, embedding_size=4, encoder_size=3, decoder_size=5
    )
    model = build_model(config, 12, 12, 10).double().eval()
    for parameter in model.parameters():
        parameter.data.normal_(std=0.6)
    return model


def pad(rows: list[list[int]]) -> torch.Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [0] * (longest - len(row)) for row in rows])


def loss_of(model: Seq2Seq, pairs, beta: float = 0.0, smoothing: float = 0.0) -> Loss:
    sources, targets = zip(*pairs, strict=True)
    return model.loss(
        pad(sources),
        torch.tensor([len(source) for source in sources]),
        pad([[BOS_ID, *target] for target in targets]),
        pad([[*target, EOS_ID] for target in targets]),
        smoothing,
        beta,
    )


@torch.no_grad()
def by_hand(model: Seq2Seq, pairs) -> list[tuple[float, float]]:
    """Return -log p(y) and the mean gate of each sentence, alone in its batch."""
    found = []
    for source, target in pairs:
        memory, state = model.encode(torch.tensor([source]), torch.tensor([len(source)]))
        cost, gates, before = 0.0, [], BOS_ID
        for word in [*target, EOS_ID]:
            output = model.step(
                memory, torch.tensor([0]), state, torch.tensor([before]), trace=True
            )
            state, before = output.state, word
            cost -= model.log_probs(output.output)[0, word].item()
            assert output.trace.gate.item() == output.gate.item()
            gates.append(output.gate.item())
        found.append((cost, sum(gates) / len(gates)))
    return found


def objective_by_hand(model: Seq2Seq, pairs, beta: float) -> float:
    return sum(cost - beta * gate for cost, gate in by_hand(model, pairs))


@pytest.fixture(params=[("bahdanau", True), ("bahdanau", False), ("luong", True)])
def model(request: pytest.FixtureRequest) -> Seq2Seq:
    decoder, gate_feedback = request.param
    return build(FlexibleConfig(gate_feedback=gate_feedback), decoder)


@pytest.mark.parametrize("beta", [0.1, 3.0])
def test_equals_the_loop_over_sentences(model, beta):
    loss = loss_of(model, PAIRS, beta)
    costs, gates = zip(*by_hand(model, PAIRS), strict=True)
    assert loss.objective.item() == pytest.approx(sum(costs) - beta * sum(gates), rel=1e-12)
    assert loss.cross_entropy.item() == pytest.approx(sum(costs), rel=1e-12)
    assert loss.gate.item() == pytest.approx(sum(gates), rel=1e-12)
    assert (loss.sentences, loss.tokens) == (4, 4 + 2 + 1 + 6)
    assert not loss.gate.requires_grad


def test_a_mean_over_each_sentence_is_not_a_mean_over_all_steps(model):
    """Were steps pooled, or padding counted, these would differ less, or not at all."""
    alone = [loss_of(model, [pair], 1.0).objective.item() for pair in PAIRS]
    assert loss_of(model, PAIRS, 1.0).objective.item() == pytest.approx(sum(alone), rel=1e-12)
    pooled = []
    for pair in PAIRS:
        [(_, gate)] = by_hand(model, [pair])
        pooled += [gate] * (len(pair[1]) + 1)
    mean_of_steps = len(PAIRS) * sum(pooled) / len(pooled)
    assert abs(loss_of(model, PAIRS).gate.item() - mean_of_steps) > 1e-4


def test_without_beta_it_is_the_cross_entropy(model):
    loss = loss_of(model, PAIRS, 0.0)
    assert loss.objective.item() == loss.cross_entropy.item()
    assert 0 < loss.gate.item() < len(PAIRS)


def test_the_gate_is_weighed_beside_label_smoothing(model):
    plain = loss_of(model, PAIRS, 0.0, smoothing=0.1)
    loss = loss_of(model, PAIRS, 2.0, smoothing=0.1)
    expected = plain.objective.item() - 2 * plain.gate.item()
    assert loss.objective.item() == pytest.approx(expected, rel=1e-12)
    assert loss.cross_entropy.item() == plain.cross_entropy.item()


@pytest.mark.parametrize("kind", [k for k in AttentionConfig.variants() if k != "flexible"])
def test_without_a_gate_beta_is_a_mistake_of_the_caller(kind):
    model = build(AttentionConfig.variants()[kind]())
    assert loss_of(model, PAIRS).gate is None
    with pytest.raises(ValueError, match=r"beta 0\.25 weighs a gate"):
        loss_of(model, PAIRS, 0.25)


def gradients(model: Seq2Seq, beta: float) -> dict[str, torch.Tensor]:
    model.zero_grad()
    loss_of(model, PAIRS, beta).objective.backward()
    return {name: weight.grad.clone() for name, weight in model.named_parameters()}


@pytest.mark.sampled(3)
def test_the_gradient_is_the_slope_of_the_loop(model):
    """Through everything that a gate depends on, the focus of the steps before among it."""
    beta, epsilon = 5.0, 1e-5
    draw = torch.Generator().manual_seed(3)
    for name, gradient in gradients(model, beta).items():
        weight = model.get_parameter(name)
        direction = torch.randn(weight.shape, generator=draw, dtype=torch.float64)
        ends = []
        for sign in (1, -1):
            weight.data.add_(direction, alpha=sign * epsilon)
            ends.append(objective_by_hand(model, PAIRS, beta))
            weight.data.add_(direction, alpha=-sign * epsilon)
        slope = (ends[0] - ends[1]) / (2 * epsilon)
        expected = (gradient * direction).sum().item()
        assert math.isclose(slope, expected, rel_tol=1e-5, abs_tol=1e-7), name


def test_the_gate_term_reaches_the_gate_and_what_feeds_it(model):
    plain, gated = gradients(model, 0.0), gradients(model, 1.0)
    reached = {name for name in plain if not torch.equal(plain[name], gated[name])}
    inside = {name for name in plain if name.startswith("decoder.attention.")}
    assert {name for name in inside if ".gate." in name}
    assert inside <= reached  # the score too: through the context, and through the focus
    assert {"encoder.embedding.weight", "target_embedding.weight"} <= reached
    assert not any(name.startswith("output.") for name in reached)


def test_the_gradient_flows_through_the_previous_focus():
    """With the focus cut out of the graph, the gate term has another gradient."""
    model = build(FlexibleConfig())
    keys = model.get_parameter("decoder.attention.score.states.weight")
    found = []
    for cut in (False, True):
        memory, state = model.encode(torch.tensor([PAIRS[0][0]]), torch.tensor([5]))
        total = 0.0
        for word in (BOS_ID, 5, 6, 7):
            if cut:
                state = (*state[:-1], state[-1].detach())
            output = model.step(memory, torch.tensor([0]), state, torch.tensor([word]))
            state = output.state
            total = total + output.gate.sum() / 4
        found.append(torch.autograd.grad(total, keys)[0])
    before = torch.autograd.grad(loss_of(model, PAIRS[:1], 0.0).objective, keys)[0]
    after = torch.autograd.grad(loss_of(model, PAIRS[:1], 1.0).objective, keys)[0]
    torch.testing.assert_close(before - after, found[0], rtol=1e-9, atol=1e-12)
    assert (found[0] - found[1]).abs().max() > 1e-6
