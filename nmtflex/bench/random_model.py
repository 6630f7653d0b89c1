"""Models with random weights for benchmarks: they never end a sentence, and their focus travels."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from nmtflex.attention import Limits, MonotonicAttention
from nmtflex.attention.flexible import FlexibleAttention, Gate
from nmtflex.bench.decoding import now
from nmtflex.config import DeviceConfig, ModelConfig
from nmtflex.model.build import build_model
from nmtflex.model.decoders.base import Step
from nmtflex.model.inference import make_ready
from nmtflex.model.seq2seq import Seq2Seq
from nmtflex.ops.cache import Cache
from nmtflex.runs.device import open_device, storage_dtype
from nmtflex.text.vocabulary import EOS_ID

SEED = 1
GATE = 0.5
EAGER = 1e4  # bias of energies: every scan stops where it begins
NEVER = -1e4  # logit of the end of sentence; finite, since the last step has no other choice


def random_model(config: ModelConfig, words: int, longest: int, place: DeviceConfig) -> Seq2Seq:
    """Build a model in training mode that never ends a sentence, with a constant gate.

    Scans, if any, stop where they begin.

    Args:
        config: The model's shape.
        words: Entries of each vocabulary.
        longest: Source positions.
        place: Device and number format.

    Raises:
        OptionError: The device does not exist.
    """
    device = open_device(place)
    torch.manual_seed(SEED)
    model = build_model(config, words, words, longest, place.dtype == "bfloat16")
    with torch.no_grad():
        model.output.projection.bias[EOS_ID] = NEVER
        for module in model.modules():
            if isinstance(module, Gate):
                module.v.weight.zero_()
                module.v.bias.fill_(math.log(GATE / (1 - GATE)))
            if isinstance(module, MonotonicAttention):
                module.r.fill_(EAGER)
    return model.to(device, storage_dtype(place))


def ready(model: Seq2Seq, int8: bool = False) -> Seq2Seq:
    """Make a model ready for decoding, and return it.

    Raises:
        OptionError: ``int8`` is given, and the model is not on the CPU in float32.
    """
    make_ready(model.eval(), int8)
    return model


class Paced:
    """A model for decoding that notes when it has read its source, and whose focus moves.

    Args:
        model: With flexible or monotonic attention, or without.
        steps: Of the decoder; in the last one the focus is at the last source position.
        tau: Threshold, if there is a penalty.
    """

    def __init__(self, model: Seq2Seq, steps: int, tau: float) -> None:
        self.device, self.attending, self.aligned = model.device, model.attending, model.aligned
        self.read = 0.0  # when the last source had been read, by ``now``
        self.memory_bytes = 0.0  # of the source, per sentence
        self.state_bytes = 0.0  # after the latest step, per hypothesis
        self._model = model
        # Each attending layer has a focus or a stop, and they are the last parts of the state.
        kinds = FlexibleAttention, MonotonicAttention
        self._focuses = sum(isinstance(one, kinds) for one in model.modules())
        self._limits = Limits(tau) if model.gated else Limits()
        self._steps = steps
        self._encoded: Any = None
        self.log_probs, self.best_words = model.log_probs, model.best_words
        self.encoding_computations = model.encoding_computations

    def encode(
        self, source: Tensor, lengths: Tensor, *, traced: bool = True
    ) -> tuple[Any, tuple[Tensor, ...]]:
        """Read a batch; see ``StepModel.encode``."""
        last = source.shape[1] - 1
        self._places = (last * step / (self._steps - 1) for step in range(self._steps))
        encoded = self._model.encode(source, lengths, self._limits, traced=traced)
        self._encoded = encoded
        self.read = now(self.device)
        self.memory_bytes = bytes_in(encoded[0]) / len(source)
        return encoded

    def forget(self) -> None:
        """Drop the source: freeing its memory takes time that belongs to no step."""
        self._encoded = None

    def step(
        self,
        memory: Any,
        rows: Tensor,
        state: tuple[Tensor, ...],
        tokens: Tensor,
        trace: bool = False,
    ) -> Step:
        """Advance every hypothesis by one word; see ``Seq2Seq.step``."""
        if self._focuses:
            place = next(self._places)
            focuses = (torch.full_like(one, place) for one in state[-self._focuses :])
            state = (*state[: -self._focuses], *focuses)
        found = self._model.step(memory, rows, state, tokens, trace)
        # What earlier steps cached is in the memory, but grows like a state.
        self.state_bytes = (bytes_in(found.state) + bytes_in(memory, Cache)) / len(rows)
        return found


def bytes_in(value: Any, kind: type[Tensor | Cache] = Tensor) -> int:
    """Return the bytes of all tensors, or of all caches' rows, in nested tuples.

    What is there twice counts once: a tensor again, or a view of one that is there.
    """
    views: dict[int, dict[tuple[int, int], int]] = {}  # by storage
    sizes: dict[int, int] = {}

    def visit(part: Any) -> None:
        if isinstance(part, kind):
            tensor = part.rows if isinstance(part, Cache) else part
            storage = tensor.untyped_storage()
            sizes[storage.data_ptr()] = storage.nbytes()
            own = views.setdefault(storage.data_ptr(), {})
            own[tensor.data_ptr(), tensor.nbytes] = tensor.nbytes
        elif isinstance(part, tuple):
            for inner in part:
                visit(inner)

    visit(value)
    return sum(min(sizes[place], sum(own.values())) for place, own in views.items())
