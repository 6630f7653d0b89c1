"""Communication between the processes that share one command.

torchrun starts them, and torch.distributed connects them: gloo between CPUs, NCCL between GPUs. A
plain start has one process, for which everything here returns at once and connects nothing.

Messages are JSON and plain tensors. torch's own object collectives unpickle what they receive,
which would let anyone who reaches the port run code.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import json
import re
import signal
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, TypeVar, cast

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from nmtflex.config import DeviceConfig
from nmtflex.errors import OptionError, RunError
from nmtflex.launch import SPEAKER, Launch, find_launch
from nmtflex.meeting import meet
from nmtflex.workers import usable_cores

Item = TypeVar("Item")
Items = TypeVar("Items", bound=Sequence[Any] | np.ndarray[Any, Any])

MISSING = object()


class Ranks:
    """This process among those that share the command.

    All of them must call every method that communicates, in the same order.

    Args:
        launch: Which process this is.
    """

    def __init__(self, launch: Launch | None = None) -> None:
        self.launch = launch or Launch()
        self.rank, self.size = self.launch.rank, self.launch.size
        self.first = self.rank == 0  # the one that reads the run and writes

    @property
    def alone(self) -> bool:
        """Whether there is no other process."""
        return self.size == 1

    def share(self, items: Items) -> Items:
        """Return this process's part of some items: every Nth.

        Sizes differ by at most one; parts of items sorted by length are about equally long.
        """
        return items if self.alone else cast("Items", items[self.rank :: self.size])

    def device(self, config: DeviceConfig) -> DeviceConfig:
        """Return this process's options: its own GPU, its share of the cores.

        Raises:
            OptionError: One GPU is named for several processes of a machine.
        """
        local = self.launch.local_size
        if local > 1 and config.device.startswith("cuda:"):
            raise OptionError(
                f"--device {config.device} names one GPU for {local} processes; with cuda "
                f"each takes its own"
            )
        if self.alone:
            return config
        name = config.device
        if name != "cpu" and torch.cuda.is_available():
            name = name if ":" in name else f"cuda:{self.launch.local_rank}"
            if int(name[5:]) < torch.cuda.device_count():  # otherwise open_device reports it
                torch.cuda.set_device(torch.device(name))
        return dataclasses.replace(
            # OMP_NUM_THREADS is ignored: torchrun sets it to 1.
            config,
            device=name,
            threads=config.threads or max(1, usable_cores() // local),
        )

    def sum(self, values: Sequence[float]) -> list[float]:
        """Return the sums over all processes, in float64."""
        if self.alone:
            return list(values)
        return self._reduced(torch.tensor(values, dtype=torch.float64)).tolist()

    def clock(self, seconds: float) -> float:
        """Return the first process's seconds in all, so that all take the same decisions."""
        return self.sum([seconds if self.first else 0.0])[0]

    def agree(self, received: signal.Signals | None) -> signal.Signals | None:
        """Return the signal that any process received, or None."""
        if self.alone:
            return received
        number = int(self._reduced(torch.tensor(int(received or 0)), dist.ReduceOp.MAX))
        return signal.Signals(number) if number else None

    def sum_gradients(self, weights: Iterable[Tensor]) -> None:
        """Give every process the sum of all gradients, in one message after the backward passes.

        DistributedDataParallel exchanges gradients during a backward pass, and so needs the same
        passes over the same weights in every process. Here a process may have no sentence of a
        batch, or split it into two passes when memory is short. The result is a sum over N
        processes, not a mean; and a recurrent network's gradients are complete only at the very
        end, so starting earlier would gain little.

        A weight that has no gradient in any process gets none.
        """
        if self.alone:
            return
        trained = [weight for weight in weights if weight.requires_grad]
        there = [weight.grad is not None for weight in trained]
        parts = [
            weight.new_zeros(weight.numel()) if weight.grad is None else weight.grad.reshape(-1)
            for weight in trained
        ]
        flat = torch.cat([*parts, trained[0].new_tensor(there)])
        *sums, counts = torch.split(self._reduced(flat), [*map(len, parts), len(there)])
        for weight, total, count in zip(trained, sums, counts.tolist(), strict=True):
            weight.grad = total.view_as(weight) if count else None

    def from_first(self, value: Any = None) -> Any:
        """Return the first process's value, which JSON can hold, in all processes."""
        if self.alone:
            return value
        data = _bytes(value) if self.first else torch.empty(0, dtype=torch.uint8)
        size = torch.tensor(len(data))
        with _connected():
            dist.broadcast(size, 0)
            if not self.first:
                data = data.new_empty(int(size))
            dist.broadcast(data, 0)
        return value if self.first else json.loads(bytes(data.numpy()))

    def gather(self, value: Any) -> list[Any]:
        """Return all processes' values, in order, in the first one; an empty list in others."""
        if self.alone:
            return [value]
        if not self.first:
            data = _bytes(value)
            with _connected():
                dist.send(torch.tensor(len(data)), 0)
                dist.send(data, 0)
            return []
        found = [value]
        for rank in range(1, self.size):
            size = torch.tensor(0)
            with _connected():
                dist.recv(size, rank)
                data = torch.empty(int(size), dtype=torch.uint8)
                dist.recv(data, rank)
            found.append(json.loads(bytes(data.numpy())))
        return found

    def spread(self, tensors: Iterable[Tensor]) -> None:
        """Overwrite tensors with the first process's."""
        if self.alone:
            return
        with _connected(), torch.no_grad():
            for tensor in tensors:
                dist.broadcast(tensor, 0)

    def _reduced(self, tensor: Tensor, operation: Any = dist.ReduceOp.SUM) -> Tensor:
        with _connected():
            dist.all_reduce(tensor, operation)
        return tensor


def merge(parts: Sequence[Sequence[Item]]) -> list[Item]:
    """Put together what ``Ranks.share`` split, in the original order."""
    rows = zip_longest(*parts, fillvalue=MISSING)
    return [item for row in rows for item in row if item is not MISSING]  # type: ignore[misc]


def open_ranks() -> Ranks:
    """Connect to the other processes that torchrun started, if any.

    Raises:
        OptionError: torchrun's variables contradict each other.
        RunError: The others cannot be reached.
    """
    launch = find_launch()
    if launch.size > 1:
        try:
            store, rank, size = next(iter(rendezvous("env://")))
            store = meet(store, rank, size)
            gpus = torch.cuda.is_available() and dist.is_nccl_available()
            backend = "cpu:gloo,cuda:nccl" if gpus else "gloo"
            dist.init_process_group(backend, store=store, rank=rank, world_size=size)
            dist.all_reduce(torch.zeros(1))
        except (RuntimeError, ValueError) as error:
            raise RunError(
                f"process {launch.rank} of {launch.size} cannot reach the others: {_line(error)}"
            ) from error
        SPEAKER.claim = lambda: _claim(store, launch)
        atexit.register(dist.destroy_process_group)  # after an error was reported
    return Ranks(launch)


def _claim(store: Any, launch: Launch) -> bool:
    """Whether this process is the first to ask."""
    try:
        return bool(store.add("nmtflex/failed", 1) == 1)
    except RuntimeError:  # the process that keeps the count is gone
        return launch.local_rank == 0


@contextlib.contextmanager
def _connected() -> Iterator[None]:
    """Turn torch's error about a lost process into one line.

    Raises:
        RunError: The connection is lost.
    """
    try:
        yield
    except RuntimeError as error:
        SPEAKER.outlive()
        raise RunError(
            f"another process is lost ({_line(error)}); give the same command again (a "
            f"training resumes from its last checkpoint), or use torchrun --max-restarts N"
        ) from error


def _line(error: Exception) -> str:
    """Return the first sentence of torch's message, without its source location."""
    message = re.sub(r"\[/[^]]*\] *", "", str(error).split("\n", 1)[0])
    return message.split(". ", 1)[0].rstrip(".")


def _bytes(value: Any) -> Tensor:
    """Return a value as JSON, [bytes] uint8."""
    return torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)
