"""What is asked of logits over a vocabulary: their cross-entropy, and the most probable words.

On the CPU both take one pass over rows of logits while they are in the cache, instead of the
several that log-softmax, top-k and their like take. Legend: M rows, V words, K words asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch.nn import functional

from nmtflex.ops.dispatch import implementation
from nmtflex.ops.tensors import precise

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
    chosen = implementation("vocabulary", logits.device)
    return chosen.cross_entropy_rows(logits, bias, references, smoothing, gradient)


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
    return implementation("vocabulary", logits.device).best_words(logits, bias, count, never, only)
