"""What every decoder promises with every mechanism; a new one of either is tested unasked."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import pytest
import torch
from torch import nn

from nmtflex.attention import ATTENTIONS, Limits, MonotonicAttention
from nmtflex.config import (
    DecoderConfig,
    LayeredDecoderConfig,
    ModelConfig,
    RecurrentDecoderConfig,
    ScanningConfig,
    SearchConfig,
)
from nmtflex.decoding.search import beam_search
from nmtflex.layers.cells import CELLS
from nmtflex.model.build import build_model
from nmtflex.model.decoders.base import Decoder
from nmtflex.model.encoders.base import Encoder
from nmtflex.model.seq2seq import Seq2Seq

LENGTHS = torch.tensor([5, 1, 3, 4])
SOURCE = torch.randint(4, 12, (4, 5), generator=torch.Generator().manual_seed(1))
SOURCE = SOURCE * (torch.arange(5) < LENGTHS[:, None])
STEPS = 6
STARTS = [[4, 5, 6, 7, 8], [9, 10], [11]]  # sources of searches
KINDS = DecoderConfig.variants()
SWITCHES = {  # the options of a recurrent decoder that change how its steps go
    "bahdanau": [{}, {"deep_output": True}],
    "luong": [
        {"input_feeding": feeding, "attentional": attentional}
        for feeding in (True, False)
        for attentional in (True, False)
    ],
}
LAYERED = [  # those of every decoder of residual layers
    {"decoder_layers": 1, "decoder_heads": 1, "decoder_ffn": 0},
    {"decoder_layers": 1, "decoder_heads": 3, "decoder_ffn": 7, "pre_norm": True},
    {"decoder_layers": 2, "decoder_heads": 2, "decoder_ffn": 7},
    {"decoder_layers": 2, "decoder_heads": 2, "pre_norm": True, "attending_layers": "2"},
]
ENCODERS: dict[str, dict[str, Any]] = {
    "recurrent": {"encoder_size": 4},
    "transformer": {"encoder_size": 6, "encoder_heads": 2, "encoder_layers": 1, "encoder_ffn": 7},
}


def settings(kind: str, turn: int) -> list[dict[str, Any]]:
    """Return the options that a decoder is tested with, half of them in the next turn."""
    if issubclass(KINDS[kind], LayeredDecoderConfig):
        return [
            {"encoder": list(ENCODERS)[(turn + number) % 2], "decoder_size": 6, **options}
            for number, options in enumerate(LAYERED)
        ]
    shapes = [
        {"encoder": "recurrent", "cell": cell, "decoder_layers": 1 + (turn + number) % 2}
        for number, cell in enumerate(CELLS)
    ]
    switches = SWITCHES.get(kind, [{}])
    found = [{"encoder": "transformer", **switches[turn % len(switches)]}]
    found += [{**shape, **own} for shape, own in itertools.product(shapes, switches)]
    return [{"decoder_size": 5, **options} for options in found]


CASES = [
    ModelConfig.from_flat(
        attention=attention.kind if options["encoder"] == "transformer" else attention(),
        decoder=kind,
        embedding_size=6,
        **ENCODERS[options["encoder"]],
        **options,
    )
    for kind in KINDS
    for turn, attention in enumerate(ATTENTIONS)
    for options in settings(kind, turn)
    if not (options.get("attending_layers") and attention.kind == "none")  # refused
]
LAYERS = [config for config in CASES if config.decoder.heads]
CELLULAR = [config for config in CASES if not config.decoder.heads]
SCANNING = [config for config in CASES if isinstance(config.attention, ScanningConfig)]
GATED = [config for config in CASES if ATTENTIONS[type(config.attention)].gated]


def name(config: ModelConfig) -> str:
    own = config.decoder
    names = ("deep_output", "input_feeding", "attentional", "pre_norm")
    switches = [option for option in names if getattr(own, option, False)]
    shape = [own.cell] if isinstance(own, RecurrentDecoderConfig) else [own.heads, own.decoder_ffn]
    parts = (own.kind, *switches, config.attention.kind, *shape, own.decoder_layers)
    return "-".join(map(str, (*parts, config.encoder.kind)))


def build(config: ModelConfig, seed: int = 7) -> Seq2Seq:
    torch.manual_seed(seed)
    model = build_model(config, 12, 12, 4).double().eval()
    for parameter in model.parameters():
        parameter.data.normal_(std=0.5)
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.weight.data += 1  # small ones would hide what differs
    return model


def eager(config: ModelConfig) -> Seq2Seq:
    """A model whose scans, if any, stop where they begin: one that passes the end sees nothing."""
    model = build(config)
    for module in model.modules():
        if isinstance(module, MonotonicAttention):
            module.r.data.fill_(100.0)
    return model


def words() -> torch.Tensor:
    """Embeddings [B, T, E] of the words before each step."""
    draw = torch.Generator().manual_seed(9)
    return torch.randn(len(SOURCE), STEPS, 6, generator=draw, dtype=torch.float64)


def run(model: Seq2Seq, tau: float, sequence: Any) -> tuple[list[torch.Tensor], Any]:
    """Run over given words; return output vectors and gates, and the gradients of all there is."""
    embedded = words().requires_grad_()
    memory, state = model.encode(SOURCE, LENGTHS, Limits(tau))
    outputs, gates, _ = sequence(model.decoder, memory, state, embedded)
    assert outputs.shape == (len(SOURCE), STEPS, model.decoder.output_size)
    assert (gates is not None) == model.gated
    found = [outputs] if gates is None else [outputs, gates]
    draw = torch.Generator().manual_seed(5)
    total = sum((part * torch.randn(part.shape, generator=draw).double()).sum() for part in found)
    leaves = [embedded, *model.parameters()]
    return found, torch.autograd.grad(total, leaves, allow_unused=True)


def sequences_agree(config: ModelConfig, tau: float, training: bool = False) -> torch.Tensor:
    """Compare a decoder's sequence with its steps; return the output vectors."""
    model = build(config).train(training)
    expected, wanted = run(model, tau, Decoder.sequence)  # the loop over ``step``, unbound
    found, gradients = run(model, tau, type(model.decoder).sequence)
    for part, other in zip(found, expected, strict=True):
        torch.testing.assert_close(part, other, rtol=0, atol=1e-10)
    for gradient, other in zip(gradients, wanted, strict=True):
        assert (gradient is None) == (other is None)
        if other is not None:
            torch.testing.assert_close(gradient, other, rtol=0, atol=1e-10)
    return found[0]


def concrete(base: type) -> set[type]:
    """The classes that a base leads to."""
    below = base.__subclasses__()
    return set().union(*map(concrete, below)) if below else {base}


def test_every_decoder_is_here():
    assert {"bahdanau", "luong", "ssru", "transformer"} <= set(KINDS)
    built = [build(config) for config in CASES]
    assert {type(model.decoder) for model in built} == concrete(Decoder)
    assert {type(model.encoder) for model in built} == concrete(Encoder)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("config", CASES, ids=name)
def test_a_sequence_is_step_after_step(config):
    sequences_agree(config, math.inf)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("config", SCANNING, ids=name)
def test_a_sequence_is_step_after_step_in_expectation(config):
    attention = dataclasses.replace(config.attention, energy_noise=0.0)
    quiet = dataclasses.replace(config, attention=attention, dropout=0.0)
    expected, hard = (
        sequences_agree(quiet, math.inf, training=True),
        sequences_agree(quiet, math.inf),
    )
    assert (expected - hard).abs().max() > 1e-4


@pytest.mark.sampled(3)
@pytest.mark.parametrize("config", GATED, ids=name)
def test_a_sequence_is_step_after_step_under_a_threshold(config):
    limited, everything = (sequences_agree(config, tau) for tau in (0.05, math.inf))
    assert (limited - everything).abs().max() > 1e-4


@torch.no_grad()
@pytest.mark.parametrize("config", CASES[::3], ids=name)
def test_words_after_a_step_do_not_matter_to_it(config):
    """So whatever stands at the padding of a target changes no step of the target."""
    model, embedded = build(config), words()
    memory, state = model.encode(SOURCE, LENGTHS)
    outputs, gates, _ = model.decoder.sequence(memory, state, embedded)
    for real in (1, 4):
        padded = embedded.clone()
        padded[:, real:] *= -10
        found, seen, _ = model.decoder.sequence(memory, state, padded)
        torch.testing.assert_close(found[:, :real], outputs[:, :real], rtol=0, atol=1e-12)
        assert (found[:, real:] - outputs[:, real:]).abs().max() > 1e-3
        if gates is not None:
            torch.testing.assert_close(seen[:, :real], gates[:, :real], rtol=0, atol=1e-12)


@pytest.mark.sampled(3)
@torch.no_grad()
@pytest.mark.parametrize("config", CASES[::3], ids=name)
def test_sentences_of_a_batch_do_not_matter_to_each_other(config):
    model, embedded = build(config), words()
    outputs = model.decoder.sequence(*model.encode(SOURCE, LENGTHS), embedded).outputs
    for row, length in enumerate(LENGTHS.tolist()):
        alone = model.encode(SOURCE[row : row + 1, :length], LENGTHS[row : row + 1])
        found = model.decoder.sequence(*alone, embedded[row : row + 1]).outputs
        torch.testing.assert_close(found[0], outputs[row], rtol=0, atol=1e-12)


@torch.no_grad()
@pytest.mark.parametrize("config", CASES[::3], ids=name)
def test_a_gate_and_a_trace_come_where_they_should(config):
    model = build(config)
    memory, state = model.encode(SOURCE, LENGTHS)
    rows, tokens = torch.arange(len(SOURCE)), torch.tensor([2, 5, 6, 7])
    plain = model.step(memory, rows, state, tokens)
    seen = model.step(memory, rows, state, tokens, trace=True)
    assert plain.trace is None
    assert (plain.gate is not None) == model.gated
    assert (seen.trace.weights is not None) == model.aligned
    assert torch.equal(seen.output, plain.output)
    if model.gated:
        assert torch.equal(seen.gate, plain.gate)
        torch.testing.assert_close(seen.trace.gate, plain.gate, rtol=0, atol=1e-12)


@torch.no_grad()
@pytest.mark.parametrize("config", CASES[1::3], ids=name)
def test_hypotheses_are_reordered_at_will(config):
    """In mid-sentence one is doubled, two are gone, and with them a sentence."""
    model = build(config)
    memory, state = model.encode(SOURCE, LENGTHS)
    rows, order = torch.tensor([0, 0, 1, 2, 3, 3]), torch.tensor([1, 0, 3, 5, 5])
    tokens, state = torch.tensor([5, 6, 7, 8, 9, 10]), tuple(part[rows] for part in state)
    for _ in range(2):
        state = model.step(memory, rows, state, tokens).state
    moved = tuple(part[order] for part in state)
    for following in (tokens.flip(0), tokens):
        expected = model.step(memory, rows, state, following)
        found = model.step(memory, rows[order], moved, following[order])
        torch.testing.assert_close(found.output, expected.output[order], rtol=0, atol=1e-12)
        state, moved = expected.state, found.state


@torch.no_grad()
@pytest.mark.parametrize("config", LAYERS[::2], ids=name)
def test_the_layers_start_with_nothing_and_see_the_source_through_attention(config):
    model = eager(config)
    _, start = model.encode(SOURCE, LENGTHS)
    assert not any(part.any() for part in start)
    steps = [
        model.decoder.sequence(*model.encode(source, LENGTHS), words())[0]
        for source in (SOURCE, torch.where(SOURCE == 0, 0, SOURCE.roll(1, 1).clamp(min=4)))
    ]
    assert (steps[0] - steps[1]).abs().amax((1, 2)).min() > 1e-6  # without attention too


@torch.no_grad()
@pytest.mark.parametrize("config", LAYERS[1::3], ids=name)
def test_a_step_counts_the_scores_of_all_heads_and_layers(config):
    model = eager(config)
    memory, state = model.encode(SOURCE, LENGTHS)
    trace = model.step(memory, torch.arange(4), state, torch.tensor([2, 5, 6, 7]), True).trace
    own = config.decoder
    count = own.heads * len(own.attending) if config.attention.kind != "none" else 1
    assert model.attending == count
    each = {  # of one head at the first step, whose windows are wider than the sources
        "none": torch.zeros(4).long(),
        "monotonic": torch.ones(4).long(),
        "mocha": torch.full((4,), 2),  # an energy, and a chunk of one position
        **dict.fromkeys(("memory", "abc"), torch.full((4,), getattr(config.attention, "K", 0))),
        "rfa": torch.full((4,), 2 * getattr(config.attention, "features", 0)),  # Fourier's
    }
    expected = each.get(config.attention.kind, LENGTHS)
    assert torch.equal(trace.computed, count * expected)
    once = {kind: each[kind] * LENGTHS for kind in ("memory", "abc", "rfa")}
    expected = once.get(config.attention.kind, torch.zeros(4).long())
    assert torch.equal(model.encoding_computations(LENGTHS), count * expected)


@torch.no_grad()
@pytest.mark.parametrize("config", CELLULAR[::3], ids=name)
def test_the_start_is_the_summary_s(config):
    """Each part of the cells' state is tanh(W summary + b), and each sentence's own."""
    model = build(config)
    encoded = model.encoder(SOURCE, LENGTHS)
    assert encoded.states.shape[2] == encoded.summary.shape[1] == model.encoder.size
    _, state = model.decoder.start(encoded)
    weights, bias = (model.get_parameter(f"decoder.bridge.{part}") for part in ("weight", "bias"))
    expected = torch.tanh(encoded.summary @ weights.t() + bias)
    parts = torch.cat(state[: expected.shape[1] // config.decoder.decoder_size], dim=1)
    torch.testing.assert_close(parts, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "config", [config for config in CASES[::3] if config not in GATED], ids=name
)
def test_a_mechanism_without_a_penalty_takes_no_threshold(config):
    model = build(config)
    batch = SOURCE, LENGTHS, SOURCE[:, :2].clamp(min=4), SOURCE[:, :2].clamp(min=4)
    with pytest.raises(ValueError, match=r"has no penalty to compare with 0\.7"):
        model.loss(*batch, limits=Limits(0.7))
    with pytest.raises(ValueError, match=r"has no penalty to compare with 0\.7"):
        model.limited(Limits(0.7)).encode(SOURCE, LENGTHS)


def translations(views: list[Any]) -> list[list[tuple[list[int], float]]]:
    """Translate with each view, sentence by sentence in turn."""
    search = SearchConfig(beam=3, max_length=6)
    found: list[list[tuple[list[int], float]]] = [[] for _ in views]
    for source in STARTS:
        for view, own in zip(views, found, strict=True):
            [hypotheses] = beam_search([view], [source], search)
            own += [(one.ids, one.log_probability) for one in hypotheses]
    return found


@pytest.mark.parametrize("config", GATED[::3], ids=name)
def test_views_of_one_model_are_as_models_of_their_own(config):
    limits = [Limits(0.0), Limits(), Limits(0.05)]
    model = build(config)
    shared = translations([model.limited(each) for each in limits])
    own = [translations([build(config).limited(each)])[0] for each in limits]
    assert shared == own
    assert shared[0] != shared[1]
    assert translations([model])[0] == shared[1]  # and the model itself is without limits


@torch.no_grad()
@pytest.mark.parametrize("config", GATED[::3], ids=name)
def test_the_loss_is_under_its_limits(config):
    model = build(config)
    target = SOURCE[:, :3].clamp(min=4)
    batch = SOURCE, LENGTHS, target, target
    costs = []
    for tau in (math.inf, 0.0, math.inf):
        found = model.loss(*batch, limits=Limits(tau)).cross_entropy
        memory, state = model.encode(SOURCE, LENGTHS, Limits(tau))
        total = 0.0
        for step in range(3):
            output = model.step(memory, torch.arange(4), state, target[:, step])
            state = output.state
            log_probs = model.log_probs(output.output)
            total -= log_probs[torch.arange(4), target[:, step]].sum()
        torch.testing.assert_close(found, total, rtol=0, atol=1e-10)
        costs.append(found.item())
    assert costs[0] == costs[2] != costs[1]
