"""Logits over a vocabulary in plain PyTorch. Legend: M rows, V words, K words asked for."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from nmtflex.ops.vocabulary.ranking import best


def cross_entropy_rows(
    logits: Tensor, bias: Tensor, references: Tensor, smoothing: float, gradient: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Return both sums, and the gradient of the bias; see ``nmtflex.ops.vocabulary``."""
    scores = logits + bias
    total = scores.logsumexp(1, keepdim=True)
    wanted = references.unsqueeze(1)
    plain = (total - scores.gather(1, wanted)).sum()
    smoothed = (1 - smoothing) * plain
    if smoothing:
        smoothed = smoothed + smoothing * (total.squeeze(1) - scores.mean(1)).sum()
    if not gradient:
        return smoothed, plain, torch.zeros_like(bias)
    scores.sub_(total).exp_()  # softmax - target
    if smoothing:
        scores.sub_(smoothing / scores.shape[1])
    scores.scatter_add_(1, wanted, torch.full_like(total, smoothing - 1))
    logits.copy_(scores)
    return smoothed, plain, scores.sum(0)


def best_words(
    logits: Tensor, bias: Tensor, count: int, never: Sequence[int] = (), only: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the best words; see ``nmtflex.ops.vocabulary``."""
    return best_of(torch.log_softmax(logits.add_(bias), dim=1), count, never, only)


def best_of(
    log_probs: Tensor, count: int, never: Sequence[int] = (), only: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the same as ``best_words`` for log-probabilities [M, V], which are overwritten."""
    place = None if only is None else only.clamp(min=0).unsqueeze(1)
    wanted = None if place is None else log_probs.gather(1, place)
    for word in never:
        log_probs[:, word] = -torch.inf
    if only is not None and place is not None and wanted is not None:
        # Masks, since indices of rows would make the CPU wait for a GPU.
        ending = (only >= 0).unsqueeze(1)
        log_probs.masked_fill_(ending, -torch.inf)
        log_probs.scatter_(1, place, torch.where(ending, wanted, log_probs.gather(1, place)))
    return best(log_probs, count)
