"""Cross-entropy and the most probable words of logits over a vocabulary.

On the CPU both take one pass over rows of logits while they are in the cache, instead of the
several that log-softmax, top-k and their like take. Legend: M rows, V words, K words asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from nmtflex.ops.dispatch import implementation
from nmtflex.ops.tensors import precise

ALIGNED = 16  # row lengths are rounded up to a multiple: MKL's products are a third faster


def room_for_logits(like: Tensor, rows: int, words: int) -> Tensor:
    """Return an empty tensor [rows, words], laid out so that the product into it is fast."""
    stride = -(-words // ALIGNED) * ALIGNED
    return like.new_empty(rows, stride)[:, :words]


def cross_entropy_rows(
    logits: Tensor, bias: Tensor, references: Tensor, smoothing: float, gradient: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Return sums of the cross-entropy of rows of logits, in nats.

    Args:
        logits: [M, V] without the bias, in the bias's format or in bfloat16; overwritten, if asked
            for by the gradient of the smoothed sum.
        bias: [V], float32 at least.
        references: [M] word numbers.
        smoothing: e; the target is 1 - e at the reference plus e / V at each word.
        gradient: Whether the gradient is wanted.

    Returns:
        The smoothed sum [], the plain one [], and the gradient of the bias [V] if asked for.
    """
    chosen = implementation("vocabulary", logits.device)
    return chosen.cross_entropy_rows(logits, bias, references, smoothing, gradient)


def best_words(
    logits: Tensor, bias: Tensor, count: int, never: Sequence[int] = (), only: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the most probable words of each row, the best first, equal ones by lowest number.

    Args:
        logits: [M, V] without the bias, which is added to all words but ``never``.
        bias: [V].
        count: How many; at most V are returned.
        never: Words that are not returned, but keep their probability.
        only: [M], the only word that may be returned of a row, or -1 for all but ``never``.

    Returns:
        Natural logarithms of their probabilities [M, K], in float32 at least, and their numbers
        [M, K]. Missing words are -inf, with undefined numbers.
    """
    count = min(count, logits.shape[1])
    logits = logits.to(precise(logits.dtype))
    return implementation("vocabulary", logits.device).best_words(logits, bias, count, never, only)
