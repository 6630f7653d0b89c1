"""How several processes begin a training in the same state, and what each keeps for itself.

Only the first process reads and writes the run folder; the others get weights, optimiser and
progress from it, so that machines need not share a file system. Only the random numbers of dropout
differ between processes.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nmtflex.config import LoopConfig, flattened
from nmtflex.errors import DataError, OptionError, RunError
from nmtflex.files import is_free
from nmtflex.model.seq2seq import Seq2Seq
from nmtflex.ranks import Ranks
from nmtflex.runs.folder import RunFolder, read_run_config
from nmtflex.runs.weights import load_tensors
from nmtflex.training.describe import Options
from nmtflex.training.optimizers.base import Optimizer
from nmtflex.training.progress import Progress
from nmtflex.training.same_options import NOT_COMPARED

MOST_PROCESSES = 1 << 16  # more in a config.json means that it is damaged


def join(
    ranks: Ranks,
    model: Seq2Seq,
    optimizer: Optimizer,
    progress: Progress,
    trainer_file: Path | None,
    seed: int,
) -> Progress:
    """Bring all processes to the first one's state; return its progress.

    A process whose random numbers are in the checkpoint restores them. If the checkpoint was
    written by fewer processes, the others begin with new ones: dropout masks differ then.

    Args:
        ranks: The processes.
        model: In the first process, with the restored weights.
        optimizer: In the first process, with the restored state.
        progress: The first one's counts.
        trainer_file: The checkpoint's tensors besides the weights; None at the start of a training.
        seed: The run's.

    Raises:
        RunError: The checkpoint's random numbers are damaged.
    """
    if ranks.alone:
        return progress
    progress = Progress(**ranks.from_first(dataclasses.asdict(progress)))
    ranks.spread(model.state_dict().values())
    _spread_optimizer(ranks, optimizer)
    saved: dict[str, list[int]] = {}
    if ranks.first and trainer_file is not None:
        tensors, _ = load_tensors(trainer_file)
        saved = {name: kept.tolist() for name, kept in tensors.items() if name.startswith("rng.")}
    saved = ranks.from_first(saved)
    if not ranks.first:
        _set_random(saved, ranks.rank, [seed, progress.update, ranks.rank], model.device)
    return progress


def _spread_optimizer(ranks: Ranks, optimizer: Optimizer) -> None:
    """Give all processes the first one's state of the optimiser, and its average."""
    ranks.spread(optimizer.average.values.values())
    known = ranks.from_first([weight in optimizer.state for weight in optimizer.weights])
    for weight, moved in zip(optimizer.weights, known, strict=True):
        if moved:
            if not ranks.first:
                optimizer.state[weight] = optimizer.first_state(weight)
            ranks.spread(optimizer.state[weight].values())


def _set_random(
    saved: dict[str, list[int]], rank: int, entropy: list[int], device: torch.device
) -> None:
    """Restore a process's own random numbers, or begin with new ones.

    Raises:
        RunError: They are damaged.
    """
    seed = np.random.SeedSequence(entropy).generate_state(1, np.uint64)
    torch.manual_seed(int(seed[0]) >> 1)
    try:
        if cpu := saved.get(f"rng.cpu.{rank}"):
            torch.set_rng_state(torch.tensor(cpu, dtype=torch.uint8))
        if device.type == "cuda" and (cuda := saved.get(f"rng.cuda.{rank}")):
            torch.cuda.set_rng_state(torch.tensor(cuda, dtype=torch.uint8), device)
    except (RuntimeError, TypeError) as error:
        raise RunError(
            f"the last checkpoint's random numbers of process {rank} are damaged: {error}; delete "
            f"its folder to resume from the one before"
        ) from error


def random_states(ranks: Ranks, device: torch.device) -> dict[str, Tensor]:
    """Return, in the first process, the random generators of the others for a checkpoint."""
    if ranks.alone:
        return {}
    own = {"cpu": torch.get_rng_state().tolist()}
    if device.type == "cuda":
        own["cuda"] = torch.cuda.get_rng_state(device).tolist()
    return {
        f"rng.{kind}.{rank}": torch.tensor(state, dtype=torch.uint8)
        for rank, states in enumerate(ranks.gather(own))
        if rank
        for kind, state in states.items()
    }


def whole_batches(config: LoopConfig, processes: int) -> LoopConfig:
    """Return the loop's options with the budget of all processes together.

    A run keeps the batches that it began with for any number of processes that resume it, so that
    its updates and the position in the epoch keep their meaning.

    Args:
        config: Its budget is one process's.
        processes: How many the run began with.
    """
    if config.batch_sentences:
        return dataclasses.replace(config, batch_sentences=config.batch_sentences * processes)
    return dataclasses.replace(config, batch_tokens=config.token_budget * processes)


def began_with(ranks: Ranks, folder: RunFolder) -> int:
    """Return how many processes a run began with; if it is new, how many there are now.

    Raises:
        RunError: The folder exists and is not a run, or the number is invalid.
    """
    count = ranks.size
    if ranks.first and not is_free(folder.path):
        count = processes_of(read_run_config(folder), folder.config)
    return int(ranks.from_first(count))


def processes_of(config: dict[str, Any], where: Path) -> int:
    """Return how many processes a run began with, from its ``config.json``.

    Raises:
        RunError: The number is invalid.
    """
    processes = config.get("processes", 1)
    if type(processes) is not int or not 1 <= processes <= MOST_PROCESSES:
        raise RunError(
            f"{where}: damaged: 'processes' is {processes!r}, not a number from 1 to "
            f"{MOST_PROCESSES:,}"
        )
    return processes


def check_same_data(ranks: Ranks, fingerprint: str, folder: Path) -> None:
    """Check that every process reads the same prepared data.

    Raises:
        DataError: This process's data differs.
    """
    if ranks.from_first(fingerprint) != fingerprint:
        raise DataError(
            f"{folder} is not the data of the first process; copy it to this machine again"
        )


def check_same_options(ranks: Ranks, options: Options) -> None:
    """Check that every process has the first one's options, except folders and threads.

    A process that cannot see the run's folder takes no options from it.

    Raises:
        OptionError: This process's options differ.
    """
    model, loop, device = options
    own = {**flattened(model.to_dict()), **flattened(loop.to_dict()), "dtype": device.dtype}
    for name in NOT_COMPARED:
        own.pop(name, None)
    first = ranks.from_first(own)
    if differing := [name for name in own if own[name] != first.get(name)]:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in differing)
        raise OptionError(
            f"process {ranks.rank} has other options than the first one ({flags}); give them on "
            f"every machine that cannot see the run's folder"
        )
