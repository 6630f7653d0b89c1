"""Random feature attention (RFA): the source as sums over random features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmtflex.attention.base import (
    UNLIMITED,
    Attention,
    Glimpse,
    Limits,
    Sizes,
    State,
    Trace,
    register,
)
from nmtflex.attention.grouping import summed
from nmtflex.attention.scores import build_score
from nmtflex.attention.source import exactly, real
from nmtflex.config import RfaConfig
from nmtflex.ops.linear.looking import SHORTEST
from nmtflex.ops.tensors import full_precision


class Features(NamedTuple):
    """A batch's source in F features a sentence."""

    sums: Tensor  # [B, F, H], of the values
    norm: Tensor  # [B, F], of the keys alone
    shares: Tensor  # [B, S, F], how the values were weighed; for traces, see ``Limits.kept``


class FeatureMap(ABC):
    """How random projections become features, and features the weights of a step.

    Legend: D random vectors, F features, x scaled vectors of query and keys.
    """

    num_features: int  # F

    @abstractmethod
    def fill(self, projected: Tensor, squares: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return what the source keeps of its keys.

        Args:
            projected: [B, S, D], w . x.
            squares: [B, S, 1], |x|^2.
            mask: [B, S], True at real tokens.

        Returns:
            The shares [B, S, F] by which values are summed, 0 at padding, and the norm [B, F].
        """

    @abstractmethod
    def read(self, projected: Tensor, norm: Tensor) -> Tensor:
        """Return the weights of the sums in a step, [.., F] of [.., D] and [.., F]."""

    def least_sum(self, length: int) -> float:
        """Return the least sum of a step's weights over ``length`` positions."""
        return 1.0


class Fourier(FeatureMap):
    """phi(x) = sqrt(1 / D) [sin(w_1 . x), .., sin(w_D . x), cos(w_1 . x), .., cos(w_D . x)].

    phi(x) . phi(y) estimates the kernel exp(-|x - y|^2 / 2) without bias, and lies between -1 and
    1. Where no key is near the query, the sum of the estimates may be 0 or less, so weights are
    divided by 1 at least, the kernel of a key equal to the query. No weight is beyond -1 or 1 then.
    """

    def __init__(self, num_vectors: int) -> None:
        self.num_features = 2 * num_vectors

    def fill(self, projected: Tensor, squares: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Sum over the source; see ``FeatureMap.fill``."""
        shares = real(self._phi(projected), mask)
        return shares, shares.sum(1)

    def read(self, projected: Tensor, norm: Tensor) -> Tensor:
        """Divide by the sum of the kernels; see ``FeatureMap.read``."""
        phi = self._phi(projected)
        return phi / (phi * norm).sum(-1, keepdim=True).clamp(min=1.0)

    def least_sum(self, length: int) -> float:
        """Every position may weigh -1."""
        return -float(length)

    def _phi(self, projected: Tensor) -> Tensor:
        scale = projected.shape[-1] ** -0.5
        return torch.cat([projected.sin(), projected.cos()], dim=-1) * scale


class Positive(FeatureMap):
    """phi(x) = sqrt(1 / D) exp(-|x|^2 / 2) [exp(w_1 . x), .., exp(w_D . x)].

    Choromanski et al. (2021), "Rethinking Attention with Performers",
    https://arxiv.org/abs/2009.14794, the positive features of FAVOR+: phi(x) . phi(y) estimates
    exp(x . y) without bias and is never negative. It is computed from logarithms, which is the same
    and cannot overflow or divide by 0::

        shares[s, i] = softmax over s of w_i . x_s - |x_s|^2 / 2
        norm[i]      = log sum over s of exp(w_i . x_s - |x_s|^2 / 2)
        weights[i]   = softmax over i of w_i . q + norm[i]
    """

    def __init__(self, num_vectors: int) -> None:
        self.num_features = num_vectors

    def fill(self, projected: Tensor, squares: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Weigh the source by each feature; see ``FeatureMap.fill``."""
        logs = (projected - squares / 2).masked_fill(~mask.unsqueeze(2), -torch.inf)
        return torch.softmax(logs, dim=1), torch.logsumexp(logs, dim=1)

    def read(self, projected: Tensor, norm: Tensor) -> Tensor:
        """Weigh the features; see ``FeatureMap.read``."""
        return torch.softmax(projected + norm, dim=-1)


FEATURE_MAPS: dict[str, type[Fourier | Positive]] = {"fourier": Fourier, "positive": Positive}


@register(RfaConfig)
class RfaAttention(Attention):
    """Random feature attention, as cross-attention.

    Peng, Pappas, Yogatama, Schwartz, Smith and Kong (2021), "Random Feature Attention",
    https://arxiv.org/abs/2103.02143::

        q   = sigma * h / |h|,  x_s = sigma * k_s / |k_s|
        S   = sum over s of phi(x_s) (x) v_s,  z = sum over s of phi(x_s)    once a sentence
        c   = phi(q)^T S / (phi(q) . z)                                      F numbers a step

    phi has F random features; see ``Fourier`` (the paper's) and ``Positive``. sigma, one factor a
    unit, is learned and starts at 1; it scales the random vectors w in the paper, which is the
    same. With sigma s everywhere, c estimates softmax attention with the scores s^2 cos(h, k_s).
    k_s and v_s are key and value of source position s: with heads two projections of its encoder
    state, otherwise W states[s] (``general``) or the state itself (``dot``), and the state.

    A step costs F products, whatever the length of the source: F is counted as its score
    computations, because each number of phi(q) weighs a row of S as a score weighs a position.
    phi(x_s) costs F more a source position. Shown as an alignment, source position s weighs
    phi(q) . phi(x_s) / (phi(q) . z). These weights sum to 1. Those of ``Fourier`` may be negative,
    and sum to less where the denominator is bounded.

    Departures: w is drawn once, from the standard normal distribution, and kept with the weights;
    the paper's program draws it anew for each batch in training. With heads, one w and one sigma
    serve all of them. The denominator is 1 at least; the paper's program bounds it too, by another
    constant. Features and sums are float32 at least.

    Args:
        sizes: Widths of query, states and keys.
        config: ``features``, ``feature_map``, ``score``.
    """

    random: Tensor  # [D, Q], w

    def __init__(self, sizes: Sizes, config: RfaConfig) -> None:
        super().__init__()
        self.context_size = sizes.states
        self.score = build_score(config.score, sizes)
        self.map = FEATURE_MAPS[config.feature_map](config.features)
        self.sigma = nn.Parameter(torch.ones(sizes.query))
        self.register_buffer("random", torch.randn(config.features, sizes.query))

    def prepare(
        self, states: Tensor, mask: Tensor, limits: Limits = UNLIMITED, keys: Tensor | None = None
    ) -> Features:
        """Sum the values by features; see ``Attention.prepare``."""
        values = real(states, mask)
        keys = self.score.keys(values if keys is None else real(keys, mask))
        with full_precision(states.device):
            projected, squares = self._projected(keys)
            shares, norm = self.map.fill(projected, squares, mask)
            sums = shares.transpose(1, 2) @ values.to(shares.dtype)
            return Features(sums, norm, limits.kept(shares))

    def forward(
        self,
        query: Tensor,
        feedback: Tensor,
        memory: Features,
        rows: Tensor | None,
        state: State,
        trace: bool = False,
    ) -> Glimpse:
        """Read the sums; see ``Attention.forward``."""
        with full_precision(query.device):
            norm = memory.norm if rows is None else memory.norm[rows]
            weights = self.map.read(self._projected(query)[0], norm)  # [N, F]
            context = summed(weights, memory.sums, rows)
            if not trace:
                return Glimpse(context, state)
            seen = Trace(
                computed=torch.full((len(query),), self.map.num_features, device=query.device),
                weights=summed(weights, memory.shares.transpose(1, 2), rows),
            )
        return Glimpse(context, state, trace=seen)

    def sequence(
        self, queries: Tensor, feedback: Tensor, memory: Features, state: State
    ) -> tuple[Tensor, None]:
        """Read the sums in all steps; see ``Attention.sequence``."""
        with full_precision(queries.device):
            weights = self.map.read(self._projected(queries)[0], memory.norm.unsqueeze(1))
            return weights @ memory.sums, None

    def weight_sums(self, length: int) -> tuple[float, float]:
        """The sum is 1, or less where the denominator of ``Fourier`` is bounded."""
        return self.map.least_sum(length), 1.0

    def encoding_computations(self, lengths: Tensor) -> Tensor:
        """F numbers a source position."""
        return self.map.num_features * lengths

    def _projected(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Return w . x [.., D] and |x|^2 [.., 1] of x = sigma * v / |v|, for vectors v [.., Q]."""
        vectors = exactly(vectors)
        squares = vectors.square().sum(-1, keepdim=True)
        scaled = self.sigma * vectors * torch.rsqrt(squares + SHORTEST**2)
        return scaled @ self.random.t(), scaled.square().sum(-1, keepdim=True)
