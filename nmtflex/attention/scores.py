"""Score functions: how well a query fits a source position.

Legend: B sentences, S source positions, N hypotheses, H encoder units, Q decoder units, A units
inside the score.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from nmtflex.attention.base import Sizes
from nmtflex.layers.linear import Linear, Product
from nmtflex.ops.tensors import precise


class ScoreFunction(nn.Module, ABC):
    """A score function in two halves, keys once a sentence and queries once a step.

    ``nmtflex.ops`` combines them: v . tanh(query + key), or query . key without a v.
    """

    v: Tensor | None  # [A] of the additive score, None for a dot product
    scale = 1.0  # of dot products

    @abstractmethod
    def keys(self, states: Tensor) -> Tensor:
        """Map encoder states [B, S, H] to what a query is compared with, [B, S, A]."""

    def queries(self, query: Tensor) -> Tensor:
        """Map decoder states [N, Q] to what is compared with the keys, [N, A]."""
        return query if self.scale == 1.0 else query * self.scale

    def of_queries(self) -> tuple[Tensor, ...]:
        """Return the weights behind ``queries``, weight [A, Q] and bias [A], and v; none without v.

        They are all that queries and scores need if the scale is 1.
        """
        return ()


class AdditiveScore(ScoreFunction):
    """score = v . tanh(W h + U s + b).

    Bahdanau, Cho and Bengio (2015), https://arxiv.org/abs/1409.0473, appendix A.1.2; written with
    a concatenation in eq. 3 of Shu and Nakayama. ``U s`` is computed once a sentence.
    """

    v: Tensor

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.query = Product(sizes.query, sizes.keys)
        self.states = Linear(sizes.states, sizes.keys, bias=False)
        self.v = nn.Parameter(torch.empty(sizes.keys))
        nn.init.uniform_(self.v, -1 / math.sqrt(sizes.keys), 1 / math.sqrt(sizes.keys))

    def keys(self, states: Tensor) -> Tensor:
        """Return U s."""
        return self.states(states)

    def queries(self, query: Tensor) -> Tensor:
        """Return W h + b."""
        return self.query(query)

    def of_queries(self) -> tuple[Tensor, ...]:
        """Return W, b and v."""
        return self.query.weight, self.query.bias, self.v


class NormalizedScore(AdditiveScore):
    """score = g v / |v| . tanh(W h + U s + b), whose scale g is learnt apart from its direction.

    Raffel et al. (2017), https://arxiv.org/abs/1704.00784, section 2.4.

    Args:
        sizes: Widths of query, states and keys.
        scale: g sqrt(A) at first: no score is beyond it. The paper's is 1.
    """

    def __init__(self, sizes: Sizes, scale: float) -> None:
        super().__init__(sizes)
        self.g = nn.Parameter(torch.full((1,), scale / math.sqrt(sizes.keys)))

    def normalized(self) -> Tensor:
        """Return g v / |v|, [A] in float32 at least, for all steps of a batch."""
        v = self.v.to(precise(self.v.dtype))
        return self.g.to(v.dtype) * v / torch.linalg.vector_norm(v)


class GeneralScore(ScoreFunction):
    """score = h . W s.

    Luong, Pham and Manning (2015), https://aclanthology.org/D15-1166, eq. 8, "general".
    """

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.states = Linear(sizes.states, sizes.query, bias=False)
        self.v, self.scale = None, sizes.scale

    def keys(self, states: Tensor) -> Tensor:
        """Return W s."""
        return self.states(states)


class DotScore(ScoreFunction):
    """score = h . s, for vectors of one size.

    Luong, Pham and Manning (2015), https://aclanthology.org/D15-1166, eq. 8, "dot".
    """

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        if sizes.query != sizes.states:
            raise ValueError(f"dot scores need Q = H, not {sizes.query} and {sizes.states}")
        self.v, self.scale = None, sizes.scale

    def keys(self, states: Tensor) -> Tensor:
        """Return the states themselves."""
        return states


SCORES: dict[str, type[ScoreFunction]] = {
    "additive": AdditiveScore,
    "general": GeneralScore,
    "dot": DotScore,
}


def build_score(name: str, sizes: Sizes) -> ScoreFunction:
    """Build the score function that the option ``--score`` names."""
    return SCORES[name](sizes)
