"""A model without weights: log-probabilities looked up by source and prefix, and nothing else."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from nmtflex.text.vocabulary import BOS_ID, EOS_ID, PAD_ID

MODULUS = 1_000_003


class Output(NamedTuple):
    output: Tensor  # log-probabilities
    state: tuple[Tensor, ...]


def _mix(left, right):
    """Mix two integers, or two tensors of integers, into one below MODULUS."""
    return (left * 7919 + right * 104_729 + 17) % MODULUS


class Predicting:
    """Predicts from outputs that are log-probabilities already."""

    attending = 1

    def log_probs(self, output):
        return output

    def best_words(self, output, count, never=(), only=None, also=None):
        found = []
        for row, values in enumerate(output.tolist()):
            allowed = [
                (-value, word)
                for word, value in enumerate(values)
                if (word not in never if only is None or only[row] < 0 else word == only[row])
            ]
            # NaN, which sorts nowhere, comes first, and what is missing is -inf.
            allowed.sort(key=lambda pair: (pair[0] == pair[0], pair))
            found.append((allowed + [(torch.inf, 0)] * count)[:count])
        values, words = torch.tensor(found, dtype=output.dtype).unbind(2)
        if also is None:
            return -values, words.long()
        values = torch.cat([-values, output.gather(1, also)], 1)
        return values, torch.cat([words.long(), also], 1)


class TableModel(Predicting):
    """Log-probabilities are rows of a random table; the row is a hash of source and prefix.

    Rounding to multiples of ``grain`` makes ties, and sums of such numbers are exact.
    """

    def __init__(
        self,
        vocabulary: int,
        seed: int = 0,
        *,
        grain: float = 0.0,
        eos_bonus: float = 0.0,
        dtype: torch.dtype = torch.float64,
        entries: int = 997,
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        logits = 2 * torch.randn(entries, vocabulary, generator=generator, dtype=torch.float64)
        logits[:, EOS_ID] += eos_bonus
        table = logits.log_softmax(1)
        if grain:
            table = (table / grain).round() * grain
        self.table = table.to(dtype)
        self.device = torch.device("cpu")
        self.steps: list[int] = []  # hypotheses of each step

    def encode(
        self, source: Tensor, lengths: Tensor, *, traced: bool = True
    ) -> tuple[Any, tuple[Tensor, ...]]:
        memory = torch.zeros(len(source), dtype=torch.int64)
        for position in range(source.shape[1]):
            here = position < lengths
            memory = torch.where(here, _mix(memory, source[:, position]), memory)
        return memory, (torch.ones_like(memory),)

    def step(
        self,
        memory: Any,
        rows: Tensor,
        state: tuple[Tensor, ...],
        tokens: Tensor,
        trace: bool = False,
    ) -> Output:
        self.steps.append(len(rows))
        state = (_mix(state[0], tokens),)
        index = _mix(memory[rows], state[0]) % len(self.table)
        return Output(self.table[index], state)

    def defined(self, source: list[int], prefix: list[int]) -> list[float]:
        """The same numbers from the definition, one prefix at a time."""
        memory, state = 0, 1
        for token in source:
            memory = _mix(memory, token)
        for token in [BOS_ID, *prefix]:
            state = _mix(state, token)
        return self.table[_mix(memory, state) % len(self.table)].tolist()


def repeats(ids: list[int], size: int) -> bool:
    """Return whether the last ``size`` tokens stand together before, too."""
    return any(ids[end - size : end] == ids[-size:] for end in range(size, len(ids)))


def slow_beam_search(
    model: TableModel,
    source: list[int],
    beam: int,
    alpha: float,
    limit: int,
    no_repeat: int = 0,
) -> list[tuple[list[int], float, float, list[float]]]:
    """Beam search of one sentence in plain loops, best first.

    Each is (ids, score, log-probability, what each token added to that).
    """
    live: list[tuple[list[int], float, list[float]]] = [([], 0.0, [])]
    finished: list[tuple[list[int], float, float, list[float]]] = []
    while live:
        candidates = []
        for rank, (ids, total, _) in enumerate(live):
            for token, value in enumerate(model.defined(source, ids)):
                if token in {PAD_ID, BOS_ID} or (len(ids) == limit and token != EOS_ID):
                    continue
                if no_repeat and token != EOS_ID and repeats([*ids, token], no_repeat):
                    continue
                candidates.append((-(total + value), token, rank))
        continued = []
        for cost, token, rank in sorted(candidates)[: beam - len(finished)]:
            ids, total, each = live[rank]
            each = [*each, -cost - total]
            if token == EOS_ID:
                finished.append((ids, -cost / (len(ids) + 1) ** alpha, -cost, each))
            else:
                continued.append(([*ids, token], -cost, each))
        live = continued
    return sorted(finished, key=lambda item: -item[1])
