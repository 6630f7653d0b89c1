"""What is asked of logits over a vocabulary: their cross-entropy, and the most probable words.

Both in one pass over rows of logits while they are in the cache, instead of the several that
log-softmax, top-k and their like make; in plain PyTorch on a GPU, and wherever
``NMTFLEX_KERNELS=reference``. Legend: M rows, V words, K words that are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from nmtflex.kernels import choice
from nmtflex.kernels.operation import precise
from nmtflex.kernels.ranking import best

UNITS = 4  # of a key, that take no longer than a logit
ALIGNED = 16  # logits that a row's length is rounded up to: MKL's products are a third faster


def room_for_logits(like: Tensor, rows: int, words: int) -> Tensor:
    """Return room for logits [rows, words], laid out so that the product into it is fast."""
    stride = -(-words // ALIGNED) * ALIGNED
    return like.new_empty(rows, stride)[:, :words]


def aligned(weight: Tensor) -> Tensor:
    """Return a weight [V, O] with rows of zeros below, so that rows of its logits lie well."""
    missing = -len(weight) % ALIGNED
    return functional.pad(weight, (0, 0, 0, missing)) if missing else weight


def cross_entropy_rows(
    logits: Tensor, bias: Tensor, references: Tensor, smoothing: float, gradient: bool
) -> tuple[Tensor, Tensor]:
    """Return sums of the cross-entropy of rows of logits, in nats.

    Args:
        logits: [M, V] without the bias, in the bias's format; written over, by the gradient of the
            smoothed sum if that is asked for.
        bias: [V].
        references: [M] word numbers.
        smoothing: Probability e that is spread evenly: the target is 1 - e at the reference, and
            e / V at each word.
        gradient: Whether the gradient is wanted.

    Returns:
        The smoothed sum [] and the plain one [].
    """
    if choice(logits.device) != "cpu":
        return _cross_entropy(logits.add_(bias), references, smoothing, gradient)
    from nmtflex.kernels import word_loops

    sums = np.empty((len(logits), 2))
    _run(
        word_loops.cross_entropy,
        logits,
        bias.numpy(),
        references.numpy(),
        smoothing,
        gradient,
        sums,
    )
    smoothed, plain = torch.from_numpy(sums).sum(0).to(bias.dtype)
    return smoothed, plain


def best_words(
    logits: Tensor, bias: Tensor, count: int, never: Sequence[int] = (), only: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the most probable words of each row, the best first, equal ones by lowest number.

    Args:
        logits: [M, V] without the bias; written over.
        bias: [V].
        count: How many; fewer are returned where V is less.
        never: Words that have a probability but are not to be found.
        only: [M], the one word that may be found in a row, or -1 for all but ``never``.

    Returns:
        Natural logarithms of their probabilities [M, K], in float32 at least, and their numbers
        [M, K]. Where there are no K words, -inf, with numbers that mean nothing.
    """
    count = min(count, logits.shape[1])
    logits = logits.to(precise(logits.dtype))
    if choice(logits.device) != "cpu":
        return best_of(torch.log_softmax(logits.add_(bias), dim=1), count, never, only)
    from nmtflex.kernels import word_loops

    values = logits.new_empty(len(logits), count)
    words = torch.empty(values.shape, dtype=torch.long)
    _run(
        word_loops.best_words,
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
    from nmtflex.kernels.threads import run_rows

    # Whole rows lie in one piece of memory, without which the loops would not run on vectors.
    # The stride of a single row says nothing of how much memory there is.
    stride = logits.stride(0) if len(logits) > 1 else logits.shape[1]
    rows = torch.as_strided(logits, (len(logits), stride), (stride, 1))
    run_rows(loop, len(logits), UNITS * logits.numel(), rows.numpy(), *arguments)


def _cross_entropy(
    logits: Tensor, references: Tensor, smoothing: float, gradient: bool
) -> tuple[Tensor, Tensor]:
    """Do in PyTorch what ``cross_entropy_rows`` says, with the bias added."""
    total = logits.logsumexp(1, keepdim=True)
    wanted = references.unsqueeze(1)
    plain = (total - logits.gather(1, wanted)).sum()
    smoothed = (1 - smoothing) * plain
    if smoothing:
        smoothed = smoothed + smoothing * (total.squeeze(1) - logits.mean(1)).sum()
    if gradient:
        logits.sub_(total).exp_()  # softmax - target
        if smoothing:
            logits.sub_(smoothing / logits.shape[1])
        logits.scatter_add_(1, wanted, torch.full_like(total, smoothing - 1))
    return smoothed, plain


def best_of(
    log_probs: Tensor, count: int, never: Sequence[int] = (), only: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return what ``best_words`` does of log-probabilities [M, V], which are written over."""
    place = None if only is None else only.clamp(min=0).unsqueeze(1)
    wanted = None if place is None else log_probs.gather(1, place)
    for word in never:
        log_probs[:, word] = -torch.inf
    if only is not None and place is not None and wanted is not None:
        # Masks, not indices of rows, for which the processor would wait for a GPU.
        ending = (only >= 0).unsqueeze(1)
        log_probs.masked_fill_(ending, -torch.inf)
        log_probs.scatter_(1, place, torch.where(ending, wanted, log_probs.gather(1, place)))
    return best(log_probs, count)
