"""Hypotheses grouped by sentence, so that a memory is not copied for the beam.

On a GPU each hypothesis reads its own copy: the group sizes would make the CPU wait.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nmtflex.ops.dispatch import as_on_gpu


class Groups:
    """N hypotheses laid out as [G, W]: G groups of one sentence each, W the most that one has.

    Args:
        rows: [N], ascending: the sentence of each hypothesis; None for one each.
        num_sentences: B.
    """

    def __init__(self, rows: Tensor | None, num_sentences: int) -> None:
        self.present: Tensor | None = None  # [G] sentences of the groups, None for all
        self.slots: Tensor | None = None  # [N] places in the flat [G * W], None for all in order
        self.width = 1
        self.num_groups = num_sentences
        if rows is None:
            return
        if as_on_gpu(rows.device):  # a group for each hypothesis
            self.present, self.num_groups = rows, len(rows)
            return
        counts = torch.bincount(rows, minlength=num_sentences)
        self.width = int(counts.max())
        present = counts.nonzero().squeeze(1)
        if len(present) < num_sentences:
            self.present = present
            self.num_groups = len(present)
            rows = torch.repeat_interleave(counts[present])
            counts = counts[present]
        if len(rows) < self.num_groups * self.width:
            firsts = counts.cumsum(0) - counts
            place = torch.arange(len(rows), device=rows.device) - firsts[rows]
            self.slots = rows * self.width + place

    def memory(self, tensor: Tensor) -> Tensor:
        """Return each group's sentence: [B, ...] to [G, ...]."""
        return tensor if self.present is None else tensor.index_select(0, self.present)

    def spread(self, tensor: Tensor) -> Tensor:
        """Lay hypotheses out by sentence, with zeros in the gaps: [N, D] to [G, W, D]."""
        if self.slots is not None:
            flat = tensor.new_zeros(self.num_groups * self.width, tensor.shape[1])
            tensor = flat.index_copy(0, self.slots, tensor)
        return tensor.view(self.num_groups, self.width, tensor.shape[1])

    def collect(self, tensor: Tensor) -> Tensor:
        """Undo ``spread``: [G, W, D] to [N, D]."""
        flat = tensor.flatten(0, 1)
        return flat if self.slots is None else flat.index_select(0, self.slots)


def summed(weights: Tensor, parts: Tensor, rows: Tensor | None) -> Tensor:
    """Return what each hypothesis makes of its sentence: sums of parts by weights.

    Args:
        weights: [N, K].
        parts: [B, K, D].
        rows: [N], as in ``Groups``.

    Returns:
        [N, D], without a copy of the parts for each hypothesis.
    """
    groups = Groups(rows, len(parts))
    return groups.collect(groups.spread(weights) @ groups.memory(parts))
