"""The output layer: from vectors to words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from nmtflex.layers.dropout import Dropout
from nmtflex.layers.linear import Linear, Product
from nmtflex.ops.tensors import precise
from nmtflex.ops.vocabulary import best_words
from nmtflex.ops.vocabulary.cross_entropy import cross_entropy

CHUNK = 1 << 20  # logits of a step that are computed at once: 4 MB in float32
LEAST_ROWS = 64  # hypotheses at once, fewer of which make slow products


# From hidden units [N, H], bias, how many, words that are not returned, and the only ones.
Best = Callable[[Tensor, Tensor, int, Sequence[int], Tensor | None], tuple[Tensor, Tensor]]


class OutputLayer(nn.Module):
    """An optional linear bottleneck, then a product with one row per target word.

    Args:
        input_size: Units of the decoder's output vector.
        bottleneck: Units between, 0 for none.
        vocabulary_size: V.
        tied: Target embedding whose weights serve here too, or None.
        dropout: Share of input units dropped in training.
    """

    def __init__(
        self,
        input_size: int,
        bottleneck: int,
        vocabulary_size: int,
        tied: nn.Embedding | None,
        dropout: float,
    ) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.fast_best: Best | None = None  # for a weight that will not change
        self.bottleneck = Linear(input_size, bottleneck) if bottleneck else None
        self.projection = Product(bottleneck or input_size, vocabulary_size)
        if tied is not None:
            self.projection.weight = tied.weight
        nn.init.zeros_(self.projection.bias)

    def forward(self, output: Tensor) -> Tensor:
        """Return logits: [.., O] to [.., V]."""
        return self.projection(self._hidden(output))

    def log_probs(self, output: Tensor) -> Tensor:
        """Return natural logarithms of probabilities, in float32 at least: [N, O] to [N, V]."""
        logits = self.projection.bare(self._hidden(output))
        # The bias is added in the sum's format, as in ``best_words``: bfloat16 would round twice.
        logits = logits.to(precise(logits.dtype)) + self.projection.bias
        return torch.log_softmax(logits, dim=1)

    def best_words(
        self,
        output: Tensor,
        count: int,
        never: Sequence[int],
        only: Tensor | None,
        also: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return the most probable words [N, K] of output vectors [N, O]; see ``ops.vocabulary``.

        The logits are computed a few rows at a time and used while they are in the cache. The words
        ``also`` [N, P], none of which is in ``never``, follow the most probable ones.
        """
        hidden, bias = self._hidden(output), self.projection.bias
        if self.fast_best is not None and also is None:
            return self.fast_best(hidden, bias, count, never, only)
        rows = max(LEAST_ROWS, CHUNK // len(bias))
        found = []
        for first in range(0, len(hidden), rows):
            chunk = slice(first, first + rows)
            of_chunk = None if only is None else only[chunk]
            logits = self.projection.bare(hidden[chunk])
            logits = logits.to(precise(logits.dtype))
            best = best_words(logits, bias, count, never, of_chunk)
            found.append(best if also is None else _followed(best, logits, also[chunk]))
        values, words = zip(*found, strict=True)
        return torch.cat(values), torch.cat(words)

    def loss(
        self, output: Tensor, references: Tensor, smoothing: float = 0.0
    ) -> tuple[Tensor, Tensor]:
        """Return the sums of smoothed and of plain cross-entropy; see ``cross_entropy``.

        Args:
            output: [M, O].
            references: [M] word ids.
            smoothing: Probability that label smoothing spreads evenly over V.
        """
        weight, bias = self.projection.weight, self.projection.bias
        return cross_entropy(self._hidden(output), weight, bias, references, smoothing)

    def _hidden(self, output: Tensor) -> Tensor:
        output = self.dropout(output)
        return output if self.bottleneck is None else self.bottleneck(output)


def _followed(best: tuple[Tensor, Tensor], logits: Tensor, also: Tensor) -> tuple[Tensor, Tensor]:
    """Append words [N, P] to the best ones; ``logits`` [N, V] have the bias."""
    values, words = best
    # Two words' probabilities differ as their logits do.
    differences = logits.gather(1, also) - logits.gather(1, words[:, :1])
    return torch.cat([values, values[:, :1] + differences], 1), torch.cat([words, also], 1)
