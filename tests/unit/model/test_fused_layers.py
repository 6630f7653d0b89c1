"""All layers of a decoder in one call, and what may not depend on the rest of a batch."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch

from nmtflex.attention import UNLIMITED, Limits, Trace
from nmtflex.bench.stopwatch import Stopwatch
from nmtflex.config import (
    AbcConfig,
    FlexibleConfig,
    GlobalConfig,
    LocalMConfig,
    LocalPConfig,
    MemoryConfig,
    MochaConfig,
    ModelConfig,
    MonotonicConfig,
    NoneConfig,
    RfaConfig,
    SearchConfig,
)
from nmtflex.decoding.search import beam_search
from nmtflex.model.build import build_model
from nmtflex.model.decoders.layered import LayeredDecoder
from nmtflex.model.fused_search import FusedSearch
from nmtflex.model.inference import make_ready
from nmtflex.ops import threads
from nmtflex.ops.linear.product_loops import COLUMNS
from nmtflex.ops.linear.product_loops import ROWS as AT_ONCE
from nmtflex.ops.linear.stages import Program

LENGTHS = [7, 7, 6, 3, 3, 1]
DOT = GlobalConfig(score="dot")
MECHANISMS = [
    FlexibleConfig(),
    FlexibleConfig(remainder=True),
    LocalMConfig(window=1),
    LocalPConfig(window=1),
    MemoryConfig(K=3),
    AbcConfig(K=3),
    MemoryConfig(K=3, decoder_scoring="sigmoid"),
]
INSIDE = [
    DOT, FlexibleConfig(score="dot", sigma=0.7), FlexibleConfig(score="dot", gate_feedback=False),
    LocalMConfig(score="dot", window=1), LocalPConfig(score="dot", window=2), MemoryConfig(K=3),
    AbcConfig(score="dot", K=3), FlexibleConfig(score="dot", remainder=True), RfaConfig(features=4),
    RfaConfig(features=5, feature_map="positive", score="dot"),
    MonotonicConfig(), MochaConfig(chunk=1), MochaConfig(chunk=3), GlobalConfig(score="general"),
]  # fmt: skip
ROWS = torch.tensor([0, 0, 1, 2, 2, 2, 3, 5, 5])


def build(int8=True, **options):
    torch.manual_seed(9)
    sizes = {"embedding_size": 16, "encoder_size": 16, "encoder_ffn": 24, "decoder_ffn": 24}
    kinds = {"encoder": "transformer", "decoder": "ssru", "encoder_layers": 2, "decoder_layers": 2}
    heads = {"encoder_heads": 2, "decoder_heads": 4}
    config = ModelConfig.from_flat(**(sizes | kinds | heads | {"attention": DOT} | options))
    model = build_model(config, 40, 40, 10).eval()
    make_ready(model, int8)
    return model


def decoder_of(model):
    return next(part for part in model.modules() if isinstance(part, LayeredDecoder))


def batch():
    generator = torch.Generator().manual_seed(4)
    source = torch.randint(4, 40, (len(LENGTHS), max(LENGTHS)), generator=generator)
    return source, torch.tensor(LENGTHS)


def near(found, expected):
    """Almost all numbers are equal; one that lies half way may be rounded to the other side."""
    away = (found - expected).abs()
    assert away.mean() <= 1e-3 * expected.abs().mean()
    assert away.max() <= 0.05 * expected.abs().max()


def close(found, expected):
    """The numbers are equal up to the rounding of float32."""
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=2e-6)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("options", [
    {}, {"pre_norm": True}, {"decoder_ffn": 0}, {"attending_layers": "2"}, {"decoder_layers": 3},
    {"decoder_ffn": 27},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("count", [1, 2, 7, 9, AT_ONCE + 1])
@pytest.mark.parametrize("kind", ["ssru", "transformer"])
@pytest.mark.parametrize(("int8", "alike"), [(True, near), (False, close)])
@torch.inference_mode()
def test_a_step_is_that_of_the_sublayers_one_by_one(options, kind, count, int8, alike):
    check_steps(options, kind, count, int8, alike)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("attention", [*MECHANISMS, *INSIDE, GlobalConfig(), NoneConfig()], ids=str)
@pytest.mark.parametrize("options", [
    {}, {"pre_norm": True, "decoder_ffn": 0}, {"attending_layers": "1"}, {"attend_every": "gate"},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("kind", ["ssru", "transformer"])
@torch.inference_mode()
def test_a_step_with_any_mechanism(options, attention, kind):
    if isinstance(attention, NoneConfig) and {"attending_layers", "attend_every"} & set(options):
        pytest.skip("nothing attends")
    check_steps(options | {"attention": attention}, kind, 9, False, close)


@pytest.mark.parametrize("tau", [0.0, 0.05, 0.5, 3.0])
@pytest.mark.parametrize("options", [
    {}, {"gate_feedback": False}, {"remainder": True}, {"remainder": True, "sigma": 0.3},
], ids=str)  # fmt: skip
@torch.inference_mode()
def test_a_step_under_a_threshold(tau, options):
    flexible = FlexibleConfig(**{"score": "dot", "sigma": 0.7} | options)
    check_steps({"attention": flexible}, "ssru", 9, False, close, Limits(tau=tau), away=True)


@pytest.mark.parametrize("attention", INSIDE, ids=str)
def test_attention_by_dot_products_is_inside(attention):
    assert decoder_of(build(attention=attention)).fast_layers.attends


def check_steps(options, kind, count, int8, alike, limits=UNLIMITED, away=False):
    """Compare some steps; ``away``: the focuses of all layers and heads begin somewhere."""
    model = build(int8, decoder=kind, **options)
    decoder = decoder_of(model)
    assert decoder.fast_layers is not None
    memory, state = model.encode(*batch(), limits)
    rows = ROWS[torch.arange(count) * len(ROWS) // count]
    tokens = torch.arange(4, 4 + count) % 40
    state = tuple(part.index_select(0, rows) for part in state)
    if away:
        last = torch.tensor(LENGTHS)[rows].unsqueeze(1) - 1
        *state, first, second = state
        state = (*state, last * torch.rand(first.shape), last * torch.rand(second.shape))
    for _ in range(3):
        fast = model.step(memory, rows, state, tokens, True)
        layers, decoder.fast_layers = decoder.fast_layers, None
        slow = model.step(memory, rows, state, tokens, True)
        decoder.fast_layers = layers
        alike(fast.output, slow.output)
        for layer, (found, expected) in enumerate(zip(fast.state, slow.state, strict=True), -1):
            if found.dim() > expected.dim():  # of one tensor for all layers
                found = found[:, layer % len(decoder.layers)]
            alike(found.double(), expected.double())
        check_traces(fast.trace, slow.trace, alike)
        state = slow.state


def check_traces(found, expected, alike):
    for name, own, other in zip(Trace._fields, found, expected, strict=True):
        assert (own is None) == (other is None), name
        if other is not None:
            assert own.shape == other.shape, name
            alike(own.double(), other.double())
    assert torch.equal(found.computed, expected.computed)


@pytest.mark.parametrize(("attention", "owner", "method", "part", "others"), [
    (DOT, FusedSearch, "grow", "decoder", set()),
    (FlexibleConfig(), Program, "run", "layers", {"embedding", "attention", "output layer"}),
])  # fmt: skip
def test_their_time_is_that_of_one_part(attention, owner, method, part, others, monkeypatch):
    model, seconds = build(int8=False, attention=attention), 0.01
    run = getattr(owner, method)

    def slower(*given):
        time.sleep(seconds)
        return run(*given)

    monkeypatch.setattr(owner, method, slower)
    with Stopwatch(model) as watch:
        beam_search([model], [[4, 5, 6]], SearchConfig(beam=1, max_length=3))
    assert set(watch.seconds) == {"encoder", part, "search"} | others
    assert watch.seconds[part] >= seconds


@pytest.mark.parametrize("int8", [True, False])
@torch.inference_mode()
def test_threads_change_no_bit(int8, monkeypatch):
    monkeypatch.setattr(threads, "GRAIN", 1)
    model = build(int8)
    memory, state = model.encode(*batch())
    outputs = []
    before = torch.get_num_threads()
    for count in (1, 2):
        torch.set_num_threads(count)
        outputs.append(model.step(memory, None, state, torch.arange(4, 10)).output)
    torch.set_num_threads(before)
    assert torch.equal(*outputs)


@pytest.mark.parametrize("int8", [True, False])
@torch.inference_mode()
def test_weights_are_not_laid_out_twice(int8):
    model = build(int8)
    decoder = decoder_of(model)
    inner = decoder.all_layers()[0].feed_forward.inner.fast
    before = inner.weight.copy()
    memory, state = model.encode(*batch())
    model.step(memory, None, state, torch.arange(4, 10))
    assert np.array_equal(inner.weight, before)
    assert np.shares_memory(inner.weight, decoder.fast_layers._parts[0].program._fixed.weights)


@pytest.mark.parametrize("int8", [True, False])
@pytest.mark.parametrize("kind", ["ssru", "transformer"])
@pytest.mark.parametrize("attention", INSIDE, ids=str)
@torch.inference_mode()
def test_no_bit_depends_on_the_hypotheses_beside(int8, kind, attention):
    model = build(int8, decoder=kind, attention=attention)
    memory, state = model.encode(*batch())
    state = tuple(part.index_select(0, ROWS) for part in state)
    tokens = torch.arange(4, 4 + len(ROWS))
    together = model.step(memory, ROWS, state, tokens)
    for n in range(len(ROWS)):
        own = tuple(part[n : n + 1] for part in state)
        alone = model.step(memory, ROWS[n : n + 1], own, tokens[n : n + 1])
        assert torch.equal(alone.output[0], together.output[n])
        if kind == "ssru":  # the states of the other are places, not numbers
            assert all(map(torch.equal, alone.state, (part[n : n + 1] for part in together.state)))


@pytest.mark.parametrize("options", [
    {}, {"pre_norm": True}, {"encoder_layers": 1}, {"encoder_ffn": 27}, {"encoder_window": 2},
], ids=str)  # fmt: skip
@pytest.mark.parametrize(("int8", "alike"), [(True, near), (False, close)])
@torch.inference_mode()
def test_sources_are_what_the_encoders_layers_make_of_them(options, int8, alike):
    encoder = build(int8, **options).encoder
    assert encoder.fast_layers is not None
    fast = encoder(*batch())
    encoder.fast_layers = None
    slow = encoder(*batch())
    alike(fast.states, slow.states)
    alike(fast.summary, slow.summary)


@pytest.mark.parametrize(("heads", "window"), [(1, 0), (3, 0), (3, 4), (3, COLUMNS + 1)])
@torch.inference_mode()
def test_long_sources_are_read_in_blocks_whatever_the_threads(heads, window, monkeypatch):
    monkeypatch.setattr(threads, "GRAIN", 1)
    size = 3 * (COLUMNS // 2 + 1)  # one head takes more than a tile, each of three takes a part
    sizes = {"embedding_size": size, "encoder_size": size, "encoder_heads": heads}
    encoder = build(int8=False, decoder_heads=1, encoder_window=window, **sizes).encoder
    lengths = torch.tensor([2 * COLUMNS + 1, COLUMNS, 1, AT_ONCE + 1])  # tiles may be narrow
    words = 4, int(lengths.max())
    source = torch.randint(4, 40, words, generator=torch.Generator().manual_seed(6))
    before, found = torch.get_num_threads(), []
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        found.append(encoder(source, lengths).states)
    torch.set_num_threads(before)
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])
    encoder.fast_layers = None
    close(found[0], encoder(source, lengths).states)


@pytest.mark.parametrize("window", [0, 2])
@pytest.mark.parametrize("int8", [True, False])
@torch.inference_mode()
def test_no_bit_of_a_source_depends_on_the_sentences_beside(int8, window):
    encoder = build(int8, encoder_window=window).encoder
    source, lengths = batch()
    together = encoder(source, lengths).states
    for row, length in enumerate(LENGTHS):
        alone = encoder(source[row : row + 1, :length], lengths[row : row + 1]).states
        assert torch.equal(alone[0], together[row, :length])


def test_the_reference_is_not_fused(monkeypatch):
    monkeypatch.setenv("NMTFLEX_KERNELS", "reference")
    assert decoder_of(build(int8=False)).fast_layers is None


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["ssru", "transformer"])
@pytest.mark.parametrize(("attention", "int8"), [
    (DOT, False), (DOT, True), (GlobalConfig(), True), (FlexibleConfig(), True),
    *((own, False) for own in INSIDE[1:5]),
], ids=str)  # fmt: skip
@pytest.mark.parametrize("beam", [1, 4])
def test_a_translation_is_the_same_in_any_batch(kind, attention, beam, int8):
    model = build(int8, decoder=kind, attention=attention)
    source, _ = batch()
    ids = [row[:length].tolist() for row, length in zip(source, LENGTHS, strict=True)]
    search = SearchConfig(beam=beam, max_length=12)
    together = beam_search([model], ids, search)
    assert together == [beam_search([model], [one], search)[0] for one in ids]
