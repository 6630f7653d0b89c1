"""From a batch of numpy arrays to a loss on the model's device."""

from __future__ import annotations

import torch

from nmtflex.corpus.batches import Batch
from nmtflex.model.seq2seq import Loss, Seq2Seq


def loss_of(model: Seq2Seq, batch: Batch, smoothing: float = 0.0, beta: float = 0.0) -> Loss:
    """Score a batch; see ``Seq2Seq.loss``."""
    source, lengths, target_in, target_out = (
        torch.from_numpy(array).to(model.device)
        for array in (batch.source, batch.lengths, batch.target_in, batch.target_out)
    )
    return model.loss(source, lengths, target_in, target_out, smoothing, beta)
