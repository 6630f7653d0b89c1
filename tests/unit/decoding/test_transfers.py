"""What passes between the processor and a device that is not the CPU, without such a device.

Tensors of the pretended device say "meta" and hide a tensor of the CPU, on which their operations
run. As on a GPU, an operation takes tensors of one device, and numpy does not read them.
"""

from __future__ import annotations

import pytest
import torch
from table_model import TableModel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from nmtflex.config import SearchConfig
from nmtflex.decoding.forced import log_probabilities
from nmtflex.decoding.search import beam_search
from nmtflex.ops.vocabulary import ranking

SOURCES = [[4, 5, 6], [7], [8, 9, 4, 5, 6], [5, 5]]
CPU, FAR = torch.device("cpu"), torch.device("meta")
COPIES = {"to", "_to_copy"}
WAITING = {"item", "_local_scalar_dense", "is_nonzero", "nonzero", "equal", "unique_consecutive"}


class Far(torch.Tensor):
    """A tensor of the pretended device."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, inner.stride(), dtype=inner.dtype, device=FAR
        )

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise RuntimeError(f"{func} outside of the device")


def near(value):
    return value.inner if isinstance(value, Far) else CPU if value == FAR else value


def far(value):
    return Far(value) if type(value) is torch.Tensor else value


class Device(TorchDispatchMode):
    """Runs the operations of the pretended device, and notes those that it is waited for."""

    def __init__(self):
        super().__init__()
        self.waits = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, func.overloadpacket.__name__
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        here = [tensor for tensor in tensors if isinstance(tensor, Far)]
        place = kwargs.get("device") or (FAR if here else CPU)
        if here and (place == CPU or name in WAITING):
            self.waits.append(name)
        if name not in COPIES:
            mixed = [t for t in tensors if t.dim() and isinstance(t, Far) != (place == FAR)]
            assert not mixed, f"{func} takes tensors of two devices"
            masks = [t for t in tensors if "index" in name and t.dtype == torch.bool]
            assert not (here and masks), f"{func} takes a mask"
        found = func(*tree_map(near, args), **tree_map(near, kwargs))
        return tree_map(far, found) if place == FAR else found


class FarModel(TableModel):
    """A table that lies on the pretended device."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.device = FAR

    def encode(self, source, lengths, *, traced=True):
        return self._call(super().encode, source, lengths)

    def step(self, *arguments):
        return self._call(super().step, *arguments)

    def best_words(self, *arguments):
        return self._call(super().best_words, *arguments)

    def _call(self, method, *arguments):
        with torch.utils._python_dispatch._disable_current_modes():
            found = method(*tree_map(near, arguments))
        return tree_map(far, found)


@pytest.fixture(autouse=True)
def _as_on_gpu(monkeypatch):
    monkeypatch.setattr(ranking, "as_on_gpu", lambda device: device == FAR)


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("count", [1, 2])
def test_a_search_waits_once_a_step(beam, count):
    config = SearchConfig(beam=beam, max_length=6)
    model, other = FarModel(40, grain=0.5), TableModel(40, grain=0.5)
    with Device() as device:
        found = beam_search([model] * count, SOURCES, config, wanted=1)
    assert found == beam_search([other] * count, SOURCES, config, wanted=1)
    assert set(device.waits) <= COPIES
    assert len(device.waits) == len(model.steps) / count > 2


def test_forced_decoding_waits_at_its_end():
    pairs = [(SOURCES[0], [4, 5]), (SOURCES[1], [6]), (SOURCES[2], [7, 8, 9])]
    with Device() as device:
        found = log_probabilities([FarModel(40)], pairs)
    assert found == log_probabilities([TableModel(40)], pairs)
    assert len(device.waits) == 1


def test_the_watch_sees_what_waits():
    with Device() as device:
        numbers = torch.arange(3, device=FAR)
        int(numbers.max())
        numbers.cpu()
        with pytest.raises(RuntimeError):
            numbers.tolist()
        with pytest.raises(AssertionError, match="two devices"):
            numbers + torch.arange(3)
        with pytest.raises(AssertionError, match="mask"):
            numbers[numbers > 1]
    assert len(device.waits) == 2
