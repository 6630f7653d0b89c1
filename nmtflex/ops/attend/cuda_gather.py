"""The gradients of keys and values over all steps of a decoder, on a GPU; see ``gather``."""

from __future__ import annotations

import torch
from torch import Tensor

from nmtflex.ops.attend import triton_backward as kernels
from nmtflex.ops.attend.gather import Note, by_v
from nmtflex.ops.launch import POSITIONS, UNITS, blocks, launching


def gradients(notes: list[Note], keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of keys [B, S, A] and values [B, S, H] over all steps, in float32.

    A program sums over the hypotheses of its sentence in order, so that gradients are reproducible.
    """
    summands = [_of_one_score(steps, keys, values) for steps in by_v(notes)]
    of_keys, of_values = summands[0]
    for more_keys, more_values in summands[1:]:
        of_keys, of_values = of_keys + more_keys, of_values + more_values
    return of_keys, of_values


def _of_one_score(notes: list[Note], keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of keys and values over steps that have one v, or none."""
    (num_sentences, length, size), units = keys.shape, values.shape[2]
    query, weights, scores, context, rows, start, stop = (
        torch.cat([getattr(step, name) for step in notes])
        for name in ("query", "weights", "scores", "context", "rows", "start", "stop")
    )
    # Sorted on the GPU: reading the order would make the CPU wait for it.
    ordered, order = torch.sort(rows, stable=True)
    ends = torch.searchsorted(ordered, torch.arange(num_sentences + 1, device=keys.device))
    of_keys, of_values = (
        torch.empty(part.shape, dtype=torch.float32, device=part.device) for part in (keys, values)
    )
    v = notes[0].v
    of_hypotheses = start, stop, order, ends, length
    tiles = num_sentences, blocks(length, POSITIONS)
    with launching(keys.device):
        kernels.of_values[*tiles, blocks(units, UNITS)](
            weights, context, *of_hypotheses, units, of_values, POSITIONS, UNITS
        )
        kernels.of_keys[*tiles, blocks(size, UNITS)](
            scores, query, keys if v is None else v, keys, *of_hypotheses, size, of_keys,
            v is not None, POSITIONS, UNITS,
        )  # fmt: skip
    return of_keys, of_values
