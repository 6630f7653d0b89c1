"""The gradient of an update, in pieces if it does not fit into memory at once."""

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
from nmtflex.training.guidance import Guidance
from nmtflex.training.memory import is_out_of_memory, release_memory
from nmtflex.training.tensors import Feed, loss_of

ROUNDING = 1e-6  # added by torch.nn.utils to a norm before dividing by it


@dataclass(slots=True)
class Sums:
    """Sums over an update's pairs, over all processes."""

    tokens: int = 0  # target tokens, including the end of sentence
    objective: float = 0.0  # nats
    cross_entropy: float = 0.0
    gate: float = 0.0  # over sentences, of their mean gate
    sentences: int = 0
    alignment: float = 0.0  # nats; see ``nmtflex.training.guidance``
    linked: int = 0  # target tokens that it is a sum over
    splits: int = 0  # batches halved because memory ran out
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
        largest: Estimated most tokens of a piece, padding included, that fit into memory; larger
            ones are split before they are tried. None for no limit.
        show: Called before each piece with the numbers of pieces done and in all.
        guidance: Of attention by the batches' links, if there is one.
    """

    model: Seq2Seq
    batches: Batches
    smoothing: float
    beta: float
    ranks: Ranks = field(default_factory=Ranks)
    tau: float = math.inf
    largest: int | None = None
    show: Callable[[int, int], None] = lambda _done, _pieces: None
    guidance: Guidance | None = None
    left_out: list[int] = field(default_factory=list)  # this process's pairs too large even alone
    feed: Feed = field(init=False)

    def __post_init__(self) -> None:
        """Open the feed to the model's device."""
        self.feed = Feed(self.batches, self.model.device)

    def of(self, chosen: list[Pairs], following: list[Pairs] | None = None) -> Sums:
        """Compute the gradient of the objective of batches of pairs, divided by their tokens.

        If memory runs out, the batch is halved and the update starts again: the objective is a sum
        over pairs divided by the tokens of the update, so the gradient does not depend on the
        split, up to rounding. A pair too large even alone is left out, and its tokens are not
        counted; the first process then has the left-out pairs of all.

        Args:
            chosen: The pairs of each batch.
            following: Those of the next update; the first one is read while a GPU computes.
        """
        tokens = self.batches.target_tokens(chosen)
        own = self._own(self._shared(chosen), tokens, self._shared(following or [])[:1])
        self.ranks.sum_gradients(self.model.parameters())
        kinds = (type(value) for value in astuple(own))
        values = zip(kinds, self.ranks.sum(astuple(own)), strict=True)
        sums = Sums(*(kind(value) for kind, value in values))
        if sums.left_out:
            self.left_out = [pair for part in self.ranks.gather(self.left_out) for pair in part]
        if sums.tokens != tokens:  # without those left out, or segmented anew
            for weight in self.model.parameters():
                if weight.grad is not None:
                    weight.grad.mul_(tokens / max(1, sums.tokens))
        return sums

    def _shared(self, chosen: list[Pairs]) -> list[Pairs]:
        """Return this process's share of batches."""
        return [pairs for pairs in map(self.ranks.share, chosen) if len(pairs)]

    def _own(self, pieces: list[Pairs], tokens: int, following: list[Pairs]) -> Sums:
        """Compute the gradient of this process's pairs, in as many pieces as memory needs."""
        self.left_out = []
        splits = 0
        pieces = [piece for pairs in pieces for piece in self._cut(pairs)]
        while True:
            sums = Sums()
            # A failed attempt may have left part of a gradient.
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
        """Halve a batch until each piece should fit into memory."""
        tokens = len(pairs) * int(self.batches.widths(pairs).max())
        if self.largest is None or tokens <= self.largest or len(pairs) == 1:
            return [pairs]
        return [piece for half in np.array_split(pairs, 2) for piece in self._cut(half)]

    def _first_failing(
        self, pieces: list[Pairs], tokens: int, sums: Sums, following: list[Pairs]
    ) -> int | None:
        """Add the gradients of all pieces; return the index of one that exceeds memory."""
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
        loss = loss_of(self.model, batch, self.smoothing, self.beta, self.tau, self.guidance)
        autograd.backward(loss.objective / tokens)
        for after in following:
            self.feed.prepare(after)
        nothing = torch.zeros_like(loss.cross_entropy)
        parts = loss.objective.detach(), loss.cross_entropy, loss.gate, loss.alignment
        values = torch.stack([nothing if part is None else part.to(nothing) for part in parts])
        objective, cross_entropy, gate, alignment = values.tolist()  # waits for a GPU once
        sums.tokens += batch.num_tokens
        sums.objective += objective
        sums.cross_entropy += cross_entropy
        sums.sentences += loss.sentences
        sums.gate += gate
        sums.alignment += alignment
        sums.linked += loss.linked


def clip_gradient(model: nn.Module, limit: float) -> float:
    """Scale the gradient down if its norm exceeds a limit (0: never); return the norm before.

    Like ``torch.nn.utils.clip_grad_norm_``, which multiplies a gradient below the limit by 1.
    """
    grads = [weight.grad for weight in model.parameters() if weight.grad is not None]
    if not grads:
        return 0.0
    norm = float(nn.utils.get_total_norm(grads))
    if limit and not norm < limit - ROUNDING:
        nn.utils.clip_grad_norm_(model.parameters(), limit)
    return norm
