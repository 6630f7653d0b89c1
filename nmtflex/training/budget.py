"""``--batch-tokens auto``: the largest batch of a sensible size that memory holds."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, autograd

from nmtflex.corpus.batches import Batches, Pairs
from nmtflex.corpus.store import PreparedCorpus
from nmtflex.model.seq2seq import Seq2Seq
from nmtflex.ranks import Ranks
from nmtflex.training.memory import available_memory, is_out_of_memory, release_memory
from nmtflex.training.tensors import inputs_of, loss_of

LEAST = 256  # tokens
MOST = {"cuda": 1 << 16, "cpu": 1 << 13}  # larger ones are hardly faster, and learn less an epoch
UPDATES = 100  # an epoch at least
PROBE = 512  # tokens of the batch that is measured on the CPU
SHARE = 0.5  # of the memory that there is
TEMPORARY = 3  # times what is kept for the backward pass: gradients, and what is made on the way


def find_budget(model: Seq2Seq, corpus: PreparedCorpus, ranks: Ranks) -> int:
    """Find the tokens of a process's batch: a power of two, the least that any can take.

    On a GPU batches of the longest training pairs are tried, each twice the one before, until
    memory does not hold one; on the CPU one is measured, and half the memory that is free counted
    on. An epoch keeps about a hundred updates. Random numbers stay as they were.

    Args:
        model: On its device; no gradient is left in it.
        corpus: With training data.
        ranks: Processes that share the training, and on one machine its memory.
    """
    batches = Batches(corpus.store("train", "source"), corpus.store("train", "target"), LEAST)
    kind = model.device.type
    epoch = int(batches.widths().sum()) // ranks.size
    most = min(MOST.get(kind, MOST["cpu"]), epoch // UPDATES)
    devices = [model.device] if kind == "cuda" else []
    with torch.random.fork_rng(devices):
        model.train()
        if kind == "cuda":
            budget = by_trial(model, batches, most)
        else:
            free = available_memory() // ranks.launch.local_size
            budget = by_measure(model, batches, most, free)
    return int(ranks.from_first(min(ranks.gather(budget), default=budget)))


def by_trial(model: Seq2Seq, batches: Batches, most: int) -> int:
    """Double the budget while a batch of the longest pairs can be learned from."""
    # What Adam will keep of each weight takes its room now.
    kept = [torch.empty_like(weight) for weight in model.parameters() for _ in range(2)]
    budget = LEAST
    while 2 * budget <= most and _fits(model, batches, 2 * budget):
        budget *= 2
    del kept
    release_memory(model.device)
    return budget


def by_measure(model: Seq2Seq, batches: Batches, most: int, free: int) -> int:
    """Count the bytes that a batch of the longest pairs keeps; see how many ``free`` ones hold."""
    pairs = longest(batches, PROBE)
    kept: dict[int, int] = {}  # bytes by address: a tensor may be kept in several places

    def count(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        _learn(model, batches, pairs)
    weights = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    made = sum(size for address, size in kept.items() if address not in weights)
    tokens = len(pairs) * int(batches.widths(pairs).max())
    # Of each weight: its gradient, Adam's two, one to save.
    states = 4 * sum(weight.nbytes for weight in model.parameters())
    held = int(SHARE * max(0, free - states) * tokens / (TEMPORARY * max(1, made)))
    budget = LEAST
    while 2 * budget <= min(held, most):
        budget *= 2
    return budget


def longest(batches: Batches, tokens: int) -> Pairs:
    """Return the longest pairs that make a batch; the same ones again where they are too few."""
    usable = batches.usable
    pairs = usable[np.argsort(-batches.widths(usable), kind="stable")]
    count = max(1, tokens // int(batches.widths(pairs[:1])[0]))
    return np.resize(pairs, count)


def _fits(model: Seq2Seq, batches: Batches, tokens: int) -> bool:
    try:
        _learn(model, batches, longest(batches, tokens))
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        fits = False
    else:
        fits = True
    model.zero_grad(set_to_none=True)
    release_memory(model.device)
    return fits


def _learn(model: Seq2Seq, batches: Batches, pairs: Pairs) -> None:
    """Make a gradient and forget it."""
    loss = loss_of(model, inputs_of(batches.collate(pairs), model.device))
    autograd.backward(loss.objective / max(1, loss.tokens))
    model.zero_grad(set_to_none=True)
