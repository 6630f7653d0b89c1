"""The gradient of an update, in pieces where the memory does not hold it whole."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import astuple, dataclass, field

import numpy as np
import torch
from torch import autograd, nn

from nmtflex.corpus.batches import Batches, Pairs
from nmtflex.model.seq2seq import Seq2Seq
from nmtflex.ranks import Ranks
from nmtflex.training.memory import is_out_of_memory, release_memory
from nmtflex.training.tensors import Feed, loss_of

ROUNDING = 1e-6  # that torch.nn.utils adds to a norm before it divides by it


@dataclass(slots=True)
class Sums:
    """What an update's pairs add up to, over all processes."""

    tokens: int = 0  # target tokens, end-of-sentence counted
    objective: float = 0.0  # nats
    cross_entropy: float = 0.0
    gate: float = 0.0  # over sentences, of their mean gate
    sentences: int = 0
    splits: int = 0  # batches halved for want of memory
    left_out: int = 0  # pairs too large even alone


@dataclass(slots=True)
class Gradients:
    """The gradient of an update, left in the weights.

    Args:
        model: In training mode.
        batches: Where pairs come from.
        smoothing: Label smoothing.
        beta: Weight of the mean gate.
        ranks: Processes that share the pairs; each is left with the gradient of all.
        tau: Penalty threshold.
        largest: Most tokens of a piece, padding counted, that memory is thought to hold; larger
            ones are cut before they are tried. None for no limit.
        show: Called before each piece with the number done and the number of all.
    """

    model: Seq2Seq
    batches: Batches
    smoothing: float
    beta: float
    ranks: Ranks = field(default_factory=Ranks)
    tau: float = math.inf
    largest: int | None = None
    show: Callable[[int, int], None] = lambda _done, _pieces: None
    left_out: list[int] = field(default_factory=list)  # this process's pairs too large even alone
    feed: Feed = field(init=False)

    def __post_init__(self) -> None:
        """Read pairs to where the model is."""
        self.feed = Feed(self.batches, self.model.device)

    def of(self, chosen: list[Pairs], following: list[Pairs] | None = None) -> Sums:
        """Make the gradient of the objective of batches of pairs, divided by their tokens.

        Where memory does not suffice, the batch is halved and the update begun again: the
        objective is a sum over pairs divided by the tokens of the update, so that its gradient is
        the same up to rounding, however it is cut. A pair too large even alone is left out, and
        its tokens are not counted. The first process then has the pairs that any left out.

        Args:
            chosen: The pairs of each batch.
            following: Those of the next update, the first of which is read while a GPU computes.
        """
        tokens = self.batches.target_tokens(chosen)
        own = self._own(self._shared(chosen), tokens, self._shared(following or [])[:1])
        self.ranks.sum_gradients(self.model.parameters())
        kinds = (type(value) for value in astuple(own))
        values = zip(kinds, self.ranks.sum(astuple(own)), strict=True)
        sums = Sums(*(kind(value) for kind, value in values))
        if sums.left_out:
            self.left_out = [pair for part in self.ranks.gather(self.left_out) for pair in part]
            for weight in self.model.parameters():
                if weight.grad is not None:
                    weight.grad.mul_(tokens / max(1, sums.tokens))
        return sums

    def _shared(self, chosen: list[Pairs]) -> list[Pairs]:
        """Return this process's share of batches."""
        return [pairs for pairs in map(self.ranks.share, chosen) if len(pairs)]

    def _own(self, pieces: list[Pairs], tokens: int, following: list[Pairs]) -> Sums:
        """Make the gradient of this process's pairs, in as many pieces as memory asks for."""
        self.left_out = []
        splits = 0
        pieces = [piece for pairs in pieces for piece in self._cut(pairs)]
        while True:
            sums = Sums()
            # Weights may hold part of the gradient of what failed.
            self.model.zero_grad(set_to_none=True)
            failed = self._first_failing(pieces, tokens, sums, following)
            if failed is None:
                sums.splits, sums.left_out = splits, len(self.left_out)
                return sums
            release_memory(self.model.device)
            pairs = pieces[failed]
            if len(pairs) > 1:
                splits += 1
                pieces[failed : failed + 1] = np.array_split(pairs, 2)
            else:
                self.left_out.append(int(pairs[0]))
                del pieces[failed]

    def _cut(self, pairs: Pairs) -> list[Pairs]:
        """Halve a batch until memory is thought to hold each piece."""
        tokens = len(pairs) * int(self.batches.widths(pairs).max())
        if self.largest is None or tokens <= self.largest or len(pairs) == 1:
            return [pairs]
        return [piece for half in np.array_split(pairs, 2) for piece in self._cut(half)]

    def _first_failing(
        self, pieces: list[Pairs], tokens: int, sums: Sums, following: list[Pairs]
    ) -> int | None:
        """Add the gradients of all pieces; return the number of one that memory does not hold."""
        for number, pairs in enumerate(pieces):
            self.show(number, len(pieces))
            try:
                self._add(pairs, tokens, sums, (pieces[number + 1 :] + following)[:1])
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                return number
        return None

    def _add(self, pairs: Pairs, tokens: int, sums: Sums, following: list[Pairs]) -> None:
        batch = self.feed.take(pairs)
        loss = loss_of(self.model, batch, self.smoothing, self.beta, self.tau)
        autograd.backward(loss.objective / tokens)
        for after in following:
            self.feed.prepare(after)
        values = [loss.objective.detach(), loss.cross_entropy]
        if loss.gate is not None:
            values.append(loss.gate)
        objective, cross_entropy, *gate = torch.stack(values).tolist()  # waits for a GPU once
        sums.tokens += batch.num_tokens
        sums.objective += objective
        sums.cross_entropy += cross_entropy
        sums.sentences += loss.sentences
        sums.gate += sum(gate)


def clip_gradient(model: nn.Module, limit: float) -> float:
    """Scale the gradient down where its norm is above a limit, 0 for none; return what it was.

    As ``torch.nn.utils.clip_grad_norm_``, which multiplies a gradient below the limit by 1.
    """
    grads = [weight.grad for weight in model.parameters() if weight.grad is not None]
    if not grads:
        return 0.0
    norm = float(nn.utils.get_total_norm(grads))
    if limit and not norm < limit - ROUNDING:
        nn.utils.clip_grad_norm_(model.parameters(), limit)
    return norm
