"""The gradients of keys and values over all steps of a decoder, on the CPU; see ``gather``."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from nmtflex.ops.arrays import Steps
from nmtflex.ops.attend import loops
from nmtflex.ops.attend.gather import Note, by_v
from nmtflex.ops.threads import run, threads_for


def gradients(notes: list[Note], keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of keys [B, S, A] and values [B, S, H] over all steps."""
    grad_keys, grad_values = torch.zeros_like(keys), torch.zeros_like(values)
    for steps in by_v(notes):
        positions = sum(step.weights.numel() for step in steps)
        run(
            loops.backward_memory,
            threads_for(positions * (keys.shape[2] + values.shape[2])),
            _join(steps, len(keys)),
            keys.numpy(),
            grad_keys.numpy(),
            grad_values.numpy(),
        )
    return grad_keys, grad_values


def _join(notes: list[Note], num_sentences: int) -> Steps:
    """Concatenate steps, and order their hypotheses by sentence."""
    rows = np.concatenate([step.rows for step in notes])
    order = np.argsort(rows, kind="stable")
    widths = np.concatenate([np.full(len(s.rows), s.weights.shape[1]) for s in notes])
    v = notes[0].v
    query = torch.cat([step.query for step in notes]).numpy()
    return Steps(
        query=query,
        v=query[:0, 0] if v is None else v.numpy(),
        start=np.concatenate([step.start for step in notes]),
        stop=np.concatenate([step.stop for step in notes]),
        weights=torch.cat([step.weights.flatten() for step in notes]).numpy(),
        scores=torch.cat([step.scores.flatten() for step in notes]).numpy(),
        place=widths.cumsum() - widths,
        context=torch.cat([step.context for step in notes]).numpy(),
        order=order,
        ends=np.searchsorted(rows[order], np.arange(num_sentences + 1)),
    )
