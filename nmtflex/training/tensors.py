"""From pairs to tensors on the model's device, and to their loss."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nmtflex.attention import Limits
from nmtflex.corpus.batches import Batch, Batches, Pairs
from nmtflex.model.seq2seq import Loss, Seq2Seq
from nmtflex.ops.dispatch import as_on_gpu
from nmtflex.ops.tensors import upload
from nmtflex.training.guidance import Guidance, LinkInputs
from nmtflex.training.memory import is_out_of_memory


class Inputs(NamedTuple):
    """A batch where the model reads it."""

    source: Tensor  # [B, S]
    lengths: Tensor  # [B], on the CPU
    target_in: Tensor  # [B, T]
    target_out: Tensor  # [B, T]
    places: Tensor  # [M], of the target tokens in ``target_out`` laid flat
    num_tokens: int  # M
    links: LinkInputs | None = None


def inputs_of(batch: Batch, device: torch.device) -> Inputs:
    """Put a batch on a device, without waiting for a GPU."""
    # The places of words come from the CPU's copy: reading a GPU's would make the CPU wait.
    places = np.flatnonzero(batch.target_out)
    source, target_in, target_out, on_device = (
        upload(torch.from_numpy(array), device)
        for array in (batch.source, batch.target_in, batch.target_out, places)
    )
    links = None
    if batch.links is not None:
        at, shares = (upload(torch.from_numpy(part), device) for part in batch.links[:2])
        links = LinkInputs(at, shares, batch.links.linked)
    lengths = torch.from_numpy(batch.lengths)
    return Inputs(source, lengths, target_in, target_out, on_device, batch.num_tokens, links)


def loss_of(
    model: Seq2Seq,
    batch: Inputs,
    smoothing: float = 0.0,
    beta: float = 0.0,
    tau: float = math.inf,
    guidance: Guidance | None = None,
) -> Loss:
    """Score a batch under a threshold, with its alignment if guided; see ``Seq2Seq.loss``."""
    source, lengths, target_in, target_out, places, _, links = batch
    pairs = source, lengths, target_in, target_out, smoothing, beta, places
    if guidance is None or links is None:
        return model.loss(*pairs, Limits(tau))
    return guidance.added(model.loss(*pairs, guidance.limits(tau)), links)


class Feed:
    """Reads pairs as the inputs of a model, on a GPU one batch ahead of its use.

    Args:
        batches: Where pairs come from.
        device: The model's.
    """

    def __init__(self, batches: Batches, device: torch.device) -> None:
        self.batches = batches
        self.device = device
        self._ready: tuple[Pairs, Inputs] | None = None

    def take(self, pairs: Pairs) -> Inputs:
        """Return a batch, which may have been prepared."""
        ready, self._ready = self._ready, None
        if ready is not None and np.array_equal(ready[0], pairs):
            return ready[1]
        return inputs_of(self.batches.collate(pairs), self.device)

    def prepare(self, pairs: Pairs) -> None:
        """Read a batch while a GPU computes; for a CPU there is nothing to gain."""
        if not as_on_gpu(self.device):
            return
        try:
            self._ready = pairs, inputs_of(self.batches.collate(pairs), self.device)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise  # a batch that does not fit into memory fails again in ``take``
