"""A list of models, decoded as one."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmtflex.attention import Trace
from nmtflex.decoding.tally import Tally
from nmtflex.errors import RunError
from nmtflex.model.decoders.base import Step
from nmtflex.ops.beam import Beam, Rules
from nmtflex.ops.dispatch import steady_threads
from nmtflex.ops.tensors import upload
from nmtflex.ops.vocabulary.reference import best_of
from nmtflex.text.vocabulary import PAD_ID

Ids = list[int]


class StepModel(Protocol):
    """What decoding needs of a model: N hypotheses, each of one of B encoded sentences."""

    @property
    def device(self) -> torch.device:
        """The device of its parameters."""

    @property
    def attending(self) -> int:
        """How often a step attends: heads times attending layers."""

    @property
    def aligned(self) -> bool:
        """Whether attention has weights over source positions."""

    def encode(
        self, source: Tensor, lengths: Tensor, *, traced: bool = True
    ) -> tuple[Any, tuple[Tensor, ...]]:
        """Return the memory of sentences [B, S], and the start state of one hypothesis each.

        ``lengths`` [B] are on the CPU. Unless ``traced``, traces need not show source positions,
        and the memory is not larger for their sake.
        """

    def step(
        self,
        memory: Any,
        rows: Tensor,
        state: tuple[Tensor, ...],
        tokens: Tensor,
        trace: bool = False,
    ) -> Step:
        """Advance by the words ``tokens`` [N], for hypotheses of the sentences ``rows`` [N]."""

    def log_probs(self, output: Tensor) -> Tensor:
        """Return natural logarithms [N, V] of the probabilities of the next word."""

    def best_words(
        self,
        output: Tensor,
        count: int,
        never: Sequence[int] = (),
        only: Tensor | None = None,
        also: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return the most probable next words [N, K], then ``also``; see ``Ensemble``."""

    def encoding_computations(self, lengths: Tensor) -> Tensor:
        """Return the attention scores [B] that ``encode`` computes for sources of ``lengths``."""


class Encoded(NamedTuple):
    """B sentences, as each of some models has encoded them.

    Searches and forced decoding, one after another, may begin with it.
    """

    lengths: Tensor  # [B] tokens, on the CPU
    memories: list[Any]  # of each model
    states: list[tuple[Tensor, ...]]  # of each model, before the first step
    traced: bool  # whether traces show source positions

    def of(self, model: int) -> Encoded:
        """Return what the model of this number has encoded."""
        return Encoded(self.lengths, [self.memories[model]], [self.states[model]], self.traced)


@torch.inference_mode()
@steady_threads()
def encode(models: Sequence[StepModel], sources: Sequence[Ids], traced: bool = False) -> Encoded:
    """Encode sentences.

    Args:
        models: At least one, in evaluation mode.
        sources: Ids of B sentences, none of them empty.
        traced: Whether traces are to show source positions.
    """
    lengths = torch.tensor([len(ids) for ids in sources])
    batch = torch.full((len(sources), int(lengths.max())), PAD_ID)
    for row, ids in zip(batch, sources, strict=True):
        row[: len(ids)] = torch.tensor(ids)
    each = [model.encode(upload(batch, model.device), lengths, traced=traced) for model in models]
    return Encoded(lengths, [memory for memory, _ in each], [state for _, state in each], traced)


class Ensemble:
    """Models with a batch of sentences encoded, and the states of its hypotheses.

    The probabilities of several models are averaged. They must share a vocabulary.

    Args:
        models: At least one, in evaluation mode.
        encoded: B sentences that they have encoded.
        counting: Whether to keep traces, and to sum score computations over the models; those of
            several heads and layers are divided by their number, model by model.
    """

    def __init__(
        self, models: Sequence[StepModel], encoded: Encoded, counting: bool = False
    ) -> None:
        self.device = models[0].device
        self._models = models
        self.lengths, self._memories, states, _ = encoded
        self._states = list(states)
        self.counting = counting
        self._outputs: list[Tensor] = []  # of the last step, a model each
        self.traces: list[Trace] = []  # of the last step, a model each
        self.total = torch.zeros(len(self.lengths), dtype=torch.long, device=self.device)  # [B]
        self.computed = torch.zeros_like(self.total, dtype=torch.float64)  # [B]
        self.pairs = torch.zeros_like(self.total)  # [B] (hypothesis, step)

    def fused(self) -> Callable[[Beam, Rules], tuple[list[Beam], list[Beam], float]] | None:
        """Return the search of one model that takes all steps in few calls, if it has one.

        It takes one hypothesis of each sentence; see ``nmtflex.model.fused_search``.
        """
        fused = getattr(self._models[0], "fused_search", None)
        if fused is None or self.counting or len(self._models) > 1:
            return None
        return functools.partial(fused.grow, self._memories[0])

    def upload(self, *parts: NDArray[Any]) -> Tensor:
        """Copy arrays [N] to the models' device without waiting; return them as one tensor."""
        return upload(torch.from_numpy(np.stack(parts)), self.device)

    def step(self, rows: Tensor, tokens: Tensor) -> None:
        """Advance hypotheses of the sentences ``rows`` [N] by the words ``tokens`` [N]."""
        self._outputs = []
        self.traces = []
        for at, model in enumerate(self._models):
            step = model.step(self._memories[at], rows, self._states[at], tokens, self.counting)
            self._outputs.append(step.output)
            self._states[at] = step.state
            if self.counting and step.trace is not None:
                self.traces.append(step.trace)
                found = step.trace.computed
                self.total.index_add_(0, rows, found)
                self.computed.index_add_(0, rows, found.double() / model.attending)
        if self.counting:
            self.pairs.index_add_(0, rows, torch.ones_like(rows))

    def log_probs(self) -> Tensor:
        """Return log-probabilities [N, V] of the words after those of the last step."""
        log_probs = [
            model.log_probs(output)
            for model, output in zip(self._models, self._outputs, strict=True)
        ]
        if len(log_probs) == 1:
            return log_probs[0]
        return torch.stack(log_probs).logsumexp(0) - math.log(len(log_probs))

    def best_words(
        self,
        count: int,
        never: Sequence[int],
        only: Tensor | None = None,
        also: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return the most probable words after those of the last step, the best first.

        Args:
            count: K.
            never: Words that are not returned.
            only: [N], the only word that may be returned, or -1.
            also: [N, P], words that follow the K best; none of them is in ``never``.

        Returns:
            Log-probabilities [N, K] and words [N, K]; P more of each with ``also``.
        """
        if len(self._models) == 1:
            return self._models[0].best_words(self._outputs[0], count, never, only, also)
        log_probs = self.log_probs()
        if also is None:
            return best_of(log_probs, count, never, only)
        others = log_probs.gather(1, also)
        values, words = best_of(log_probs, count, never, only)
        return torch.cat([values, others], 1), torch.cat([words, also], 1)

    def report(self, tally: Tally) -> None:
        """Add the counts to a tally."""
        encoding = torch.zeros(len(self.lengths), dtype=torch.float64)
        for model in self._models:
            encoding += model.encoding_computations(self.lengths).double() / model.attending
        tally.add(self.computed, self.pairs, encoding, self.total)

    def select(self, index: NDArray[Any]) -> None:
        """Continue with the hypotheses ``index``; the sentences' memory is not copied."""
        if np.array_equal(index, np.arange(len(self._states[0][0]))):
            return
        chosen = upload(torch.from_numpy(index), self.device)
        self._states = [_chosen(state, chosen) for state in self._states]


def _chosen(state: tuple[Tensor, ...], index: Tensor) -> tuple[Tensor, ...]:
    """Return the rows ``index`` of each part; parts that are one tensor stay one."""
    parts = {id(part): part for part in state}
    chosen = {own: part.index_select(0, index) for own, part in parts.items()}
    return tuple(chosen[id(part)] for part in state)


def check_numbers(log_probs: NDArray[Any]) -> None:
    """Refuse numbers that no search can rank.

    Raises:
        RunError: A log-probability is NaN or infinite.
    """
    sound = log_probs < np.inf
    if not sound.all():
        value = log_probs[~sound][0].item()
        raise RunError(
            f"the model predicts a log-probability of {value}: its weights are broken; "
            f"take an earlier checkpoint or train again with a lower --lr"
        )
