"""A model made ready decodes what it decoded before."""

from __future__ import annotations

import copy

import numba
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from nmtflex.config import (
    AbcConfig,
    FlexibleConfig,
    GlobalConfig,
    LocalMConfig,
    LocalPConfig,
    MemoryConfig,
    ModelConfig,
    NoneConfig,
    RfaConfig,
    SearchConfig,
)
from nmtflex.decoding.search import beam_search
from nmtflex.errors import OptionError
from nmtflex.model import inference
from nmtflex.model.build import build_model
from nmtflex.model.inference import make_ready, ready_copy

ATTENTIONS = [
    NoneConfig(), GlobalConfig(), GlobalConfig(score="general"), LocalMConfig(), LocalPConfig(),
    FlexibleConfig(), FlexibleConfig(gate_feedback=False), MemoryConfig(K=3), AbcConfig(K=3),
    RfaConfig(features=3), RfaConfig(features=3, feature_map="positive"),
]  # fmt: skip
MECHANISMS = "none", "global", "local-p", "flexible", "memory", "abc", "rfa"
LAYERED = [
    {"decoder_heads": 2, "decoder_ffn": 24, "decoder_layers": 2},
    {"encoder": "transformer", "encoder_size": 16, "encoder_heads": 4, "encoder_layers": 2,
     "encoder_ffn": 24, "decoder_heads": 4, "decoder_ffn": 24, "pre_norm": True},
]  # fmt: skip
CASES = [
    *({"attention": attention, "decoder": decoder}
      for attention in ATTENTIONS for decoder in ("bahdanau", "luong")),
    {"cell": "gru"},
    {"deep_output": True},
    {"cell": "gru", "decoder": "luong", "input_feeding": False},
    {"decoder_layers": 2, "decoder": "luong"},
    {"cell": "gru", "decoder_layers": 2},
    {"bottleneck": 5},
    {"tie_embeddings": "all"},
    *({"attention": attention, "decoder": kind} | LAYERED[number % 2]
      for number, attention in enumerate(MECHANISMS)
      for kind in ("ssru", "transformer")),
]  # fmt: skip
SOURCES = [[4, 5, 6, 7], [8, 9], [10, 4, 5, 6, 7, 8, 9]]


def build(options, seed=3, autocast=False):
    torch.manual_seed(seed)
    sizes = {"embedding_size": 16, "encoder_size": 8, "decoder_size": 16}
    return build_model(ModelConfig.from_flat(**(sizes | options)), 40, 40, 10, autocast).eval()


def translations(model):
    found = beam_search([model], SOURCES, SearchConfig(beam=3, max_length=9))
    return [[(h.ids, pytest.approx(h.score, abs=1e-4)) for h in best] for best in found]


@pytest.mark.parametrize(
    ("attention", "copied"), [("global", True), ("none", True), ("flexible", False)]
)
def test_a_table_that_only_repeats_the_embeddings_is_smaller(attention, copied, monkeypatch):
    monkeypatch.setattr(inference, "LARGEST_COPY", 40 * 16 - 1)
    kind = {"encoder": "transformer", "encoder_size": 16, "decoder": "ssru"}
    model = build(kind | {"attention": attention, "decoder_heads": 2, "encoder_heads": 2})
    make_ready(model)
    assert (model.word_table is None) == copied


@pytest.mark.sampled(3)
@pytest.mark.parametrize("options", CASES, ids=str)
def test_it_decodes_the_same(options):
    model = build(options)
    before = translations(model)
    make_ready(model)
    assert model.word_table is not None
    assert translations(model) == before


FORMATS = [{}, {"decoder": "luong"}, {"cell": "gru"}, CASES[-1], CASES[-4]]


@pytest.mark.parametrize("options", FORMATS, ids=str)
def test_in_float64_and_in_bfloat16(options):
    model = build(options).double()
    before = translations(model)
    make_ready(model)
    assert translations(model) == before
    model = build(options, autocast=True)
    before = translations(model)
    make_ready(model)
    found = translations(model)
    assert [[ids for ids, _ in best] for best in found] == [
        [ids for ids, _ in best] for best in before
    ]


def gradients(model):
    torch.manual_seed(1)  # of dropout
    ids = torch.tensor([[4, 5, 6]])
    model.loss(ids, torch.tensor([3]), ids, ids).objective.backward()
    return [weight.grad for weight in model.parameters()]


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("options", FORMATS, ids=str)
def test_a_ready_copy_leaves_the_model_as_it_was(options, autocast):
    model, other = build(options, autocast=autocast), build(options, autocast=autocast)
    model.train()
    with torch.inference_mode():
        copied = ready_copy(model)
        make_ready(other)
        assert translations(copied) == translations(other)
    assert copied.word_table is not None
    assert model.training
    assert not copied.training
    storage = {weight.data_ptr() for weight in model.parameters()}
    kept = {weight.data_ptr() for weight in copied.parameters() if not weight.is_meta}
    assert autocast or kept <= storage
    untouched = build(options, autocast=autocast).train()
    torch.testing.assert_close(gradients(model), gradients(untouched), rtol=0, atol=0)


@pytest.mark.parametrize("tied", ["none", "all"])
def test_matrices_are_kept_only_as_they_were_laid_out(tied):
    model = build({"decoder": "ssru", "tie_embeddings": tied} | LAYERED[1])
    embeddings = {model.encoder.embedding.weight, model.target_embedding.weight}
    make_ready(model, int8=True)
    kept = {weight for weight in model.parameters() if weight.dim() > 1 and not weight.is_meta}
    assert kept == embeddings


class Casts(TorchDispatchMode):
    """Notes which of some parameters are copied to another format."""

    def __init__(self, model):
        super().__init__()
        self.names = {part.data_ptr(): name for name, part in model.named_parameters()}
        self.found = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__ in {"to", "_to_copy"} and made.dtype != args[0].dtype:
            self.found += filter(None, [self.names.get(args[0].data_ptr())])
        return made


@pytest.mark.sampled(3)
@torch.inference_mode()
@pytest.mark.parametrize("options", CASES, ids=str)
def test_bfloat16_rounds_weights_once_and_changes_no_bit(options, monkeypatch):
    model, other = build(options, autocast=True), build(options, autocast=True)
    make_ready(model)
    monkeypatch.setattr(inference, "_round", lambda _model: None)
    make_ready(other)
    search = SearchConfig(beam=3, max_length=9)
    assert beam_search([model], SOURCES, search) == beam_search([other], SOURCES, search)
    casts = []
    for one in (model, other):
        memory, state = one.encode(torch.tensor([[4, 5]]), torch.tensor([2]))
        with Casts(one) as watch:
            step = one.step(memory, torch.tensor([0]), state, torch.tensor([2]))
            one.best_words(step.output, 3)
        casts.append(watch.found)
    assert casts[0] == []
    tied = options.get("tie_embeddings") == "all"
    assert ("encoder.embedding.weight" if tied else "output.projection.weight") in casts[1]


@torch.no_grad()
@pytest.mark.parametrize("options", CASES[-10:], ids=str)
def test_bfloat16_changes_little(options):
    exact, rough = build(options), build(options, autocast=True)
    source, lengths = torch.tensor([[4, 5, 6], [7, 8, 0]]), torch.tensor([3, 2])
    target = torch.tensor([[2, 5, 6], [2, 9, 4]])
    losses = [model.loss(source, lengths, target, target).cross_entropy for model in (exact, rough)]
    assert losses[0] != losses[1]
    torch.testing.assert_close(losses[1], losses[0], rtol=0.02, atol=0)


@torch.no_grad()
@pytest.mark.parametrize("has", [False, torch.ops.mkldnn._is_mkldnn_bf16_supported()])
def test_recurrent_layers_are_in_a_format_that_the_processor_has(has, monkeypatch):
    monkeypatch.setattr("nmtflex.ops.recurrent.sequence.has_bfloat16_layers", lambda: has)
    model, formats = build({}, autocast=True), []
    model.encoder.layers[0].register_forward_pre_hook(
        lambda _, inputs: formats.append((inputs[0].data.dtype, torch.is_autocast_enabled("cpu")))
    )
    memory, _ = model.encode(torch.tensor([[4, 5, 6]]), torch.tensor([3]))
    assert formats == [(torch.float32, has)]
    assert memory.values.isfinite().all()


def test_8_bits_need_compiled_loops(monkeypatch):
    monkeypatch.setattr(numba.config, "DISABLE_JIT", True)
    with pytest.raises(OptionError, match="NUMBA_DISABLE_JIT"):
        make_ready(build({}), int8=True)


def test_a_table_that_would_be_too_large_is_not_made(monkeypatch):
    monkeypatch.setattr(inference, "LARGEST_TABLE", 40 * 64 - 1)
    model = build({"attention": FlexibleConfig()})
    before = translations(model)
    make_ready(model)
    assert model.word_table is None
    assert translations(model) == before


@pytest.mark.parametrize("options", CASES, ids=str)
def test_8_bits_change_little(options):
    model = build(options)
    exact = copy.deepcopy(model)
    make_ready(model, int8=True)
    source, lengths = torch.tensor([[4, 5, 6], [7, 8, 9]]), torch.tensor([3, 3])
    with torch.inference_mode():
        for one in (model, exact):
            memory, state = one.encode(source, lengths)
            for token in (2, 11, 12):
                step = one.step(memory, torch.arange(2), state, torch.tensor([token, token]))
                state = step.state
            one.found = one.log_probs(step.output)
    assert not torch.equal(model.found, exact.found)
    torch.testing.assert_close(model.found, exact.found, rtol=0, atol=0.1)


def test_8_bits_of_other_formats_are_refused():
    with pytest.raises(OptionError, match="--int8 is for the CPU in float32, not for bfloat16"):
        make_ready(build({}, autocast=True), int8=True)
    with pytest.raises(OptionError, match="--int8 is for the CPU in float32, not for float64"):
        make_ready(build({}).double(), int8=True)
