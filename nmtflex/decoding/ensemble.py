"""A list of models, decoded as one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from nmtflex.errors import RunError
from nmtflex.text.vocabulary import PAD_ID

Ids = list[int]


class Step(Protocol):
    """What a model's step returns."""

    @property
    def log_probs(self) -> Tensor:
        """Natural logarithms [N, V]; the caller may write into them."""

    @property
    def state(self) -> tuple[Tensor, ...]:
        """The next step's state, each tensor with N rows."""


class StepModel(Protocol):
    """What decoding asks of a model: N hypotheses, each of one of B encoded sentences."""

    @property
    def device(self) -> torch.device:
        """Where its parameters lie."""

    def encode(self, source: Tensor, lengths: Tensor) -> tuple[Any, tuple[Tensor, ...]]:
        """Return what is kept of sentences [B, S], and the start state of a hypothesis each."""

    def step(self, memory: Any, rows: Tensor, state: tuple[Tensor, ...], tokens: Tensor) -> Step:
        """Predict the words after ``tokens`` [N], for hypotheses of the sentences ``rows`` [N]."""


class Ensemble:
    """Models with a batch of sentences encoded, and the states of its hypotheses.

    Several models give the average of their probabilities. Their vocabularies must be the same.

    Args:
        models: At least one, in evaluation mode.
        sources: Ids of B sentences, none of them empty.
    """

    def __init__(self, models: Sequence[StepModel], sources: Sequence[Ids]) -> None:
        self.device = models[0].device
        self._models = models
        self._memories: list[Any] = []
        self._states: list[tuple[Tensor, ...]] = []
        lengths = torch.tensor([len(ids) for ids in sources])
        batch = torch.full((len(sources), int(lengths.max())), PAD_ID)
        for row, ids in zip(batch, sources, strict=True):
            row[: len(ids)] = torch.tensor(ids)
        for model in models:
            memory, state = model.encode(batch.to(model.device), lengths.to(model.device))
            self._memories.append(memory)
            self._states.append(state)

    def step(self, rows: Tensor, tokens: Tensor) -> Tensor:
        """Return log-probabilities [N, V] of the words after ``tokens`` [N]."""
        log_probs = []
        for at, model in enumerate(self._models):
            output = model.step(self._memories[at], rows, self._states[at], tokens)
            log_probs.append(output.log_probs)
            self._states[at] = output.state
        if len(log_probs) == 1:
            return log_probs[0]
        return torch.stack(log_probs).logsumexp(0) - math.log(len(log_probs))

    def select(self, index: Tensor) -> None:
        """Go on with the hypotheses ``index``; the sentences' memory stays where it is."""
        self._states = [
            tuple(part.index_select(0, index) for part in state) for state in self._states
        ]


def check_numbers(log_probs: Tensor) -> None:
    """Refuse what no search can rank.

    Raises:
        RunError: A log-probability is NaN or infinite.
    """
    sound = log_probs < torch.inf
    if not sound.all():
        value = log_probs[~sound][0].item()
        raise RunError(
            f"the model predicts a log-probability of {value}: its weights are broken; "
            f"take an earlier checkpoint or train again with a lower --lr"
        )
