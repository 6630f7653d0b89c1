"""What a GPU must be spared, and what must not lose numbers there; see ``test_cuda_models``."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from nmtflex.attention import Limits
from nmtflex.config import AttentionConfig, ModelConfig, SearchConfig
from nmtflex.corpus.batches import Batches
from nmtflex.corpus.store import StoreWriter, TokenStore
from nmtflex.decoding import search
from nmtflex.decoding.tally import Tally
from nmtflex.model.build import build_model
from nmtflex.model.inference import make_ready
from nmtflex.model.seq2seq import Seq2Seq
from nmtflex.ops.tensors import download
from nmtflex.training.gradients import Gradients
from nmtflex.training.tensors import Feed, inputs_of, loss_of

LENGTHS = (3, 5, 2, 6)
CHOSEN = [np.arange(2), np.arange(2, 4)]
ATTENTION = [variant() for variant in AttentionConfig.variants().values()]
# Operations whose result, or its size, the processor must know before it goes on.
WAITING = {
    "_local_scalar_dense", "is_nonzero", "equal", "nonzero", "masked_select", "bincount",
    "_unique2", "unique_consecutive", "repeat_interleave",
}  # fmt: skip


@pytest.fixture
def batches(tmp_path) -> Batches:
    draw = np.random.default_rng(1)
    stores = []
    for side in ("source", "target"):
        with StoreWriter(tmp_path / side, "<u2") as writer:
            for length in LENGTHS:
                writer.append(draw.integers(4, 12, length), [length])
        stores.append(TokenStore(tmp_path / side, "<u2", 12))
    return Batches(*stores, tokens=64)


def build(device: str, attention=None, autocast=False, dropout=0.0, **options) -> Seq2Seq:
    torch.manual_seed(2)
    sizes = {"embedding_size": 5, "encoder_size": 4, "decoder_size": 8}
    config = ModelConfig.from_flat(
        attention=attention or ATTENTION[1], dropout=dropout, **sizes, **options
    )
    return build_model(config, 12, 12, 8, autocast).to(device)


class Waits(TorchDispatchMode):
    """Notes the operations that would make the processor wait for a GPU."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.paused = False

    def leave_out(self, layer: torch.nn.Module) -> None:
        """Leave out a recurrent layer, which reads sizes that lie on the CPU."""

        def pause(value: bool) -> None:
            self.paused = value

        layer.register_forward_pre_hook(lambda *_: pause(True))
        layer.register_forward_hook(lambda *_: pause(False))

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        indices = args[1] if name.startswith(("index", "_index", "_unsafe_index")) else ()
        masks = indices if isinstance(indices, list | tuple) else [indices]
        if not self.paused and (
            name in WAITING
            or any(isinstance(mask, torch.Tensor) and mask.dtype == torch.bool for mask in masks)
        ):
            self.found.append(name)
        return func(*args, **(kwargs or {}))


formats = pytest.mark.parametrize("autocast", [
    pytest.param(False, id="float32"), pytest.param(True, id="bfloat16", marks=pytest.mark.slow)
])  # fmt: skip


@pytest.mark.sampled(6)
@formats
@pytest.mark.parametrize("attention", ATTENTION, ids=lambda attention: attention.kind)
def test_a_gradient_waits_for_nothing(triton_device, batches, attention, autocast):
    model = build(triton_device, attention, autocast, dropout=0.3)
    inputs = inputs_of(batches.collate(np.arange(2)), model.device)
    waits = Waits()
    for layer in model.encoder.layers:
        waits.leave_out(layer)
    with waits:
        loss_of(model, inputs, smoothing=0.1).objective.backward()
    assert waits.found == []


@pytest.mark.sampled(3)
@formats
@pytest.mark.parametrize("attention", ATTENTION, ids=lambda attention: attention.kind)
@pytest.mark.parametrize("count", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_search_waits_once_a_step(triton_device, monkeypatch, attention, autocast, count):
    model = build(triton_device, attention, autocast).eval()
    make_ready(model)
    limited = model.limited(Limits(0.5) if model.gated else Limits())
    waits, reads, steps = Waits(), [], []
    for layer in model.encoder.layers:
        waits.leave_out(layer)

    def read(*tensors):
        reads.append(len(steps))
        return download(*tensors)

    def step(*arguments):
        steps.append(len(reads))
        return Seq2Seq.step(model, *arguments)

    monkeypatch.setattr(search, "download", read)
    monkeypatch.setattr(limited, "step", step)
    with waits:
        search.beam_search(
            [limited] * count, [[4, 5, 6], [7, 8]], SearchConfig(beam=2, max_length=3), Tally()
        )
    assert waits.found == []
    assert len(reads) == len(steps) / count > 2


def test_the_watch_sees_what_waits():
    with Waits() as waits:
        numbers = torch.arange(3)
        int(numbers.max())
        numbers[numbers > 1]
        torch.equal(numbers, numbers)
    assert waits.found == ["_local_scalar_dense", "index", "equal"]


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_the_encoder_runs_in_float32_under_bfloat16(triton_device, cell):
    """cuDNN's recurrent layers would run in float16 under any autocast."""
    model = build(triton_device, autocast=True, cell=cell, encoder_layers=2)
    seen = []

    def look(layer, given, returned):
        seen.append((
            given[0].data.dtype, returned[0].data.dtype, layer.weight_hh_l0.dtype,
            torch.is_autocast_enabled(model.device.type),
        ))  # fmt: skip

    for layer in model.encoder.layers:
        layer.register_forward_hook(look)
    source, lengths = torch.tensor([[4, 5, 6], [7, 8, 0]]), torch.tensor([3, 2])
    with model.precision():
        encoded = model.encoder(source.to(triton_device), lengths)
    single = torch.float32
    assert seen == [(single, single, single, False)] * 2
    assert encoded.states.dtype == torch.bfloat16
    assert encoded.summary.dtype == single
    plain = build(triton_device, cell=cell, encoder_layers=2).encoder(
        source.to(triton_device), lengths
    )
    torch.testing.assert_close(encoded.summary, plain.summary, rtol=0, atol=1e-2)


@pytest.mark.parametrize("decoder", ["bahdanau", "luong"])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_the_state_of_the_cells_is_kept_in_float32(triton_device, cell, decoder):
    model = build(triton_device, autocast=True, cell=cell, decoder=decoder, decoder_layers=2)
    rows = torch.tensor([0], device=model.device)
    with torch.no_grad():
        memory, state = model.encode(rows.unsqueeze(1) + 4, torch.tensor([1]))
        state = model.step(memory, rows, state, rows + 5).state
    cells = state[: model.decoder.stack.state_size]
    assert {part.dtype for part in cells} == {torch.float32}


def gradients(model, batches, following=None):
    maker = Gradients(model, batches, 0.1, 0.0)
    maker.of(CHOSEN[:1], following)
    sums = maker.of(CHOSEN[1:])
    return sums, [weight.grad for weight in model.parameters() if weight.grad is not None]


@pytest.mark.slow
def test_a_batch_is_read_while_the_gpu_computes_the_one_before(monkeypatch, triton_device, batches):
    model = build(triton_device)
    expected = gradients(model, batches)
    read, collate = [], batches.collate
    monkeypatch.setattr(batches, "collate", lambda pairs: read.append(len(pairs)) or collate(pairs))
    backward = torch.autograd.backward

    def marked(objective):
        backward(objective)
        read.append("backward")

    monkeypatch.setattr("nmtflex.training.gradients.autograd.backward", marked)
    found = gradients(model, batches, CHOSEN[1:])
    assert read == [2, "backward", 2, "backward"]
    assert found[0] == expected[0]
    assert all(map(torch.equal, found[1], expected[1]))


def test_what_was_prepared_in_vain_is_forgotten(triton_device, batches):
    feed = Feed(batches, torch.device(triton_device))
    feed.prepare(CHOSEN[0])
    for pairs in (CHOSEN[1], CHOSEN[0]):
        assert torch.equal(
            feed.take(pairs).source,
            inputs_of(batches.collate(pairs), torch.device(triton_device)).source,
        )


def test_no_memory_for_the_next_batch_is_no_fault_of_this_one(monkeypatch, triton_device, batches):
    feed = Feed(batches, torch.device(triton_device))

    def fail(pairs):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(batches, "collate", fail)
        feed.prepare(CHOSEN[0])
    assert feed.take(CHOSEN[0]).num_tokens == 3 + 5 + 2


def test_a_cpu_reads_nothing_ahead(monkeypatch, batches):
    monkeypatch.delenv("NMTFLEX_KERNELS", raising=False)
    read, collate = [], batches.collate
    monkeypatch.setattr(batches, "collate", lambda pairs: read.append(len(pairs)) or collate(pairs))
    feed = Feed(batches, torch.device("cpu"))
    feed.prepare(CHOSEN[0])
    assert read == []
