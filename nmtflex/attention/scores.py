"""Score functions: how well a query fits a source position.

Legend: G sentences, W hypotheses of a sentence, S source positions, H encoder units, Q decoder
units, A units inside the score.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from nmtflex.attention.base import Sizes


class Score(nn.Module, ABC):
    """A score function in two halves: keys once a sentence, scores once a step."""

    @abstractmethod
    def keys(self, states: Tensor) -> Tensor:
        """Map encoder states [B, S, H] to what a query is compared with, [B, S, A]."""

    @abstractmethod
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Score queries [G, W, Q] against keys [G, S, A]; return [G, W, S]."""


class AdditiveScore(Score):
    """score = v . tanh(W h + U s + b).

    Bahdanau, Cho and Bengio (2015), https://arxiv.org/abs/1409.0473, appendix A.1.2; written with
    a concatenation in eq. 3 of Shu and Nakayama. ``U s`` is computed once a sentence.
    """

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.query = nn.Linear(sizes.query, sizes.keys)
        self.states = nn.Linear(sizes.states, sizes.keys, bias=False)
        self.v = nn.Parameter(torch.empty(sizes.keys))
        nn.init.uniform_(self.v, -1 / math.sqrt(sizes.keys), 1 / math.sqrt(sizes.keys))

    def keys(self, states: Tensor) -> Tensor:
        """Return U s."""
        return self.states(states)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Return v . tanh(W h + keys)."""
        hidden = torch.tanh(self.query(query).unsqueeze(2) + keys.unsqueeze(1))  # [G, W, S, A]
        return hidden @ self.v


class GeneralScore(Score):
    """score = h . W s.

    Luong, Pham and Manning (2015), https://aclanthology.org/D15-1166, eq. 8, "general".
    """

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.states = nn.Linear(sizes.states, sizes.query, bias=False)

    def keys(self, states: Tensor) -> Tensor:
        """Return W s."""
        return self.states(states)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Query times keys."""
        return query @ keys.transpose(1, 2)


class DotScore(Score):
    """score = h . s, for vectors of one size.

    Luong, Pham and Manning (2015), https://aclanthology.org/D15-1166, eq. 8, "dot".
    """

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        if sizes.query != sizes.states:
            raise ValueError(f"dot scores need Q = H, not {sizes.query} and {sizes.states}")

    def keys(self, states: Tensor) -> Tensor:
        """Return the states themselves."""
        return states

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Query times keys."""
        return query @ keys.transpose(1, 2)


SCORES: dict[str, type[Score]] = {
    "additive": AdditiveScore,
    "general": GeneralScore,
    "dot": DotScore,
}


def build_score(name: str, sizes: Sizes) -> Score:
    """Build the score function that the option ``--score`` names."""
    return SCORES[name](sizes)
