"""What fits into memory: the model, batches of ``--batch-tokens auto``, the pieces of a batch."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch
from torch import Tensor, autograd

from nmtflex.config import AUTO, LoopConfig
from nmtflex.corpus.batches import Batches, Pairs
from nmtflex.corpus.store import PreparedCorpus
from nmtflex.errors import OptionError
from nmtflex.files import is_free
from nmtflex.model.seq2seq import Seq2Seq
from nmtflex.ranks import Ranks
from nmtflex.runs.folder import RunFolder, read_run_config
from nmtflex.training.memory import (
    available_memory,
    free_memory,
    is_out_of_memory,
    release_memory,
)
from nmtflex.training.tensors import inputs_of, loss_of

LEAST = 256  # tokens
MOST = {"cuda": 1 << 16, "cpu": 1 << 13}  # larger ones are hardly faster, and learn less per epoch
UPDATES = 100  # per epoch, at least
PROBE = 512  # tokens of the batch that is measured on the CPU
SHARE = 0.5  # of free memory
TEMPORARY = 3  # times what is kept for the backward pass: gradients and temporary tensors
# The same without a margin; measured 1.8 for global, flexible and memory attention.
PEAK = 2
GIGABYTE = 1e9  # bytes


def check_states(model: Seq2Seq, device: torch.device, copies: int, processes: int = 1) -> None:
    """Refuse a model whose training does not fit into memory.

    Each weight has its value; one that is trained also has a gradient and ``copies``.

    Args:
        model: On any device; ``meta`` takes no memory.
        device: Where it is to be trained.
        copies: Numbers that optimiser and moving average keep for each weight that is trained.
        processes: That share the device's memory.

    Raises:
        OptionError: It does not fit; names the bytes needed and free.
    """
    weights = list(model.parameters())
    needed = sum(weight.nbytes * (2 + copies if weight.requires_grad else 1) for weight in weights)
    free = free_memory(device) // processes
    if needed > free:
        count = sum(weight.numel() for weight in weights)
        largest, weight = max(model.named_parameters(), key=lambda item: item[1].numel())
        raise OptionError(
            f"the model has {count:,} weights and needs {needed / GIGABYTE:,.1f} GB to be trained "
            f"(weights, gradients, optimiser and --ema), but {free / GIGABYTE:,.1f} GB is free; "
            f"its largest weight is {largest} ({' x '.join(map(str, weight.shape))}): lower "
            f"--decoder-size, --encoder-size, --embedding-size or the vocabularies"
        )


def largest_piece(
    model: Seq2Seq, batches: Batches, largest: int, ranks: Ranks, copies: int
) -> int | None:
    """Estimate how many tokens a batch may have on the CPU; None if all batches fit.

    A batch far beyond memory takes minutes to fail, so it is split before it is tried. Batches of
    ordinary size are never measured, so that their sums do not depend on free memory.

    Args:
        model: On its device; left without gradients. Random numbers are unaffected.
        batches: Where the pairs come from.
        largest: Tokens of a process's largest batch, padding included.
        ranks: The processes that share the machine's memory.
        copies: As in ``check_states``.
    """
    if model.device.type != "cpu" or largest <= MOST["cpu"]:
        return None
    with torch.random.fork_rng([]):
        model.train()
        each = PEAK * bytes_per_token(model, batches)
    free = max(0, available_memory() // ranks.launch.local_size - _states(model, copies))
    fitting = max(LEAST, int(free / each))
    return fitting if fitting < largest else None


def settle_budget(
    config: LoopConfig, model: Seq2Seq, corpus: PreparedCorpus, ranks: Ranks
) -> LoopConfig:
    """Replace ``--batch-tokens auto`` by a number: that of the run, or for a new run what fits.

    Raises:
        RunError: The folder exists and is not a run.
    """
    if config.batch_tokens != AUTO:
        return config
    known = ranks.from_first(_known_budget(RunFolder(config.run)) if ranks.first else None)
    budget = find_budget(model, corpus, ranks, config.copies) if known is None else known
    return dataclasses.replace(config, batch_tokens=budget)


def _known_budget(folder: RunFolder) -> int | None:
    """Return the tokens per batch of a run; None if it does not exist yet."""
    if is_free(folder.path):
        return None
    known = read_run_config(folder).get("train", {}).get("batch_tokens")
    return known if type(known) is int and known > 0 else None


def find_budget(model: Seq2Seq, corpus: PreparedCorpus, ranks: Ranks, copies: int) -> int:
    """Find the tokens of a process's batch: a power of two, the minimum over processes.

    On a GPU, batches of the longest training pairs are doubled until one does not fit; on the CPU
    one is measured, and half of the free memory used. An epoch keeps about a hundred updates.
    Random numbers are unaffected.

    Args:
        model: On its device; left without gradients.
        corpus: With training data.
        ranks: Processes that share the training, and on one machine its memory.
        copies: As in ``check_states``.
    """
    batches = Batches(corpus.store("train", "source"), corpus.store("train", "target"), LEAST)
    kind = model.device.type
    epoch = int(batches.widths().sum()) // ranks.size
    most = min(MOST.get(kind, MOST["cpu"]), epoch // UPDATES)
    devices = [model.device] if kind == "cuda" else []
    with torch.random.fork_rng(devices):
        model.train()
        if kind == "cuda":
            budget = by_trial(model, batches, most, copies)
        else:
            free = available_memory() // ranks.launch.local_size
            budget = by_measure(model, batches, most, free, copies)
    return int(ranks.from_first(min(ranks.gather(budget), default=budget)))


def by_trial(model: Seq2Seq, batches: Batches, most: int, copies: int) -> int:
    """Double the budget while a batch of the longest pairs fits."""
    # Reserve the memory of the optimiser and the moving average.
    kept = [torch.empty_like(weight) for weight in model.parameters() for _ in range(copies)]
    budget = LEAST
    while 2 * budget <= most and _fits(model, batches, 2 * budget):
        budget *= 2
    del kept
    release_memory(model.device)
    return budget


def by_measure(model: Seq2Seq, batches: Batches, most: int, free: int, copies: int) -> int:
    """Compute how many tokens fit into ``free`` bytes, from a batch of the longest pairs."""
    each = TEMPORARY * bytes_per_token(model, batches)
    held = int(SHARE * max(0, free - _states(model, copies)) / each)
    return 1 << max(LEAST, min(held, most)).bit_length() - 1


def bytes_per_token(model: Seq2Seq, batches: Batches) -> float:
    """Measure what a batch of the longest pairs keeps for the backward pass, in bytes per token."""
    pairs = longest(batches, PROBE)
    kept: dict[int, int] = {}  # bytes by address: a tensor may be kept several times

    def count(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        _learn(model, batches, pairs)
    weights = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    made = sum(size for address, size in kept.items() if address not in weights)
    return max(1, made) / (len(pairs) * int(batches.widths(pairs).max()))


def _states(model: Seq2Seq, copies: int) -> int:
    """Return the bytes kept besides all weights: gradients, ``copies``, and one to save."""
    return (2 + copies) * sum(weight.nbytes for weight in model.parameters())


def longest(batches: Batches, tokens: int) -> Pairs:
    """Return the longest pairs that fill a batch, repeated if there are too few."""
    usable = batches.usable
    pairs = usable[np.argsort(-batches.widths(usable), kind="stable")]
    count = max(1, tokens // int(batches.widths(pairs[:1])[0]))
    return np.resize(pairs, count)


def _fits(model: Seq2Seq, batches: Batches, tokens: int) -> bool:
    fits = True
    try:
        _learn(model, batches, longest(batches, tokens))
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        fits = False
    model.zero_grad(set_to_none=True)
    release_memory(model.device)
    return fits


def _learn(model: Seq2Seq, batches: Batches, pairs: Pairs) -> None:
    """Compute a gradient and drop it."""
    loss = loss_of(model, inputs_of(batches.collate(pairs), model.device))
    autograd.backward(loss.objective / max(1, loss.tokens))
    model.zero_grad(set_to_none=True)
