"""Logits over a vocabulary in loops on the CPU. Legend: M rows, V words, K words asked for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from nmtflex.ops.threads import most_threads, run_rows
from nmtflex.ops.vocabulary import loops

UNITS = 4  # of a key, that take no longer than a logit


def cross_entropy_rows(
    logits: Tensor, bias: Tensor, references: Tensor, smoothing: float, gradient: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Return both sums, and the gradient of the bias; see ``nmtflex.ops.vocabulary``."""
    sums = np.empty((len(logits), 2))
    of_bias = torch.zeros(most_threads(), len(bias), dtype=bias.dtype)
    loop = loops.cross_entropy
    if logits.dtype == torch.bfloat16:
        loop, logits = loops.cross_entropy_bfloat16, logits.view(torch.uint16)
    arrays = bias.numpy(), references.numpy()
    _run(loop, logits, *arrays, smoothing, gradient, sums, of_bias.numpy())
    smoothed, plain = torch.from_numpy(sums).sum(0).to(bias.dtype)
    return smoothed, plain, of_bias.sum(0)


def best_words(
    logits: Tensor, bias: Tensor, count: int, never: Sequence[int] = (), only: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the best words; see ``nmtflex.ops.vocabulary``."""
    values = logits.new_empty(len(logits), count)
    words = torch.empty(values.shape, dtype=torch.long)
    _run(
        loops.best_words,
        logits,
        bias.to(logits.dtype).numpy(),
        np.array(never, dtype=np.int64),
        np.full(len(logits), -1) if only is None else only.numpy(),
        values.numpy(),
        words.numpy(),
    )
    return values, words


def _run(loop: object, logits: Tensor, *arguments: object) -> None:
    """Run a loop over rows of logits, shared among threads."""
    # Rows with their padding are contiguous, or the loops would not be vectorised.
    # The stride of a single row does not say how much memory there is.
    stride = logits.stride(0) if len(logits) > 1 else logits.shape[1]
    rows = torch.as_strided(logits, (len(logits), stride), (stride, 1))
    run_rows(loop, len(logits), UNITS * logits.numel(), rows.numpy(), *arguments)
