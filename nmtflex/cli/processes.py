"""``--processes N``: one command line in several processes, started by torch's elastic launcher."""

from __future__ import annotations

import logging
import os
import signal
import sys
import uuid
from collections.abc import Sequence

from nmtflex.cli.app import given_arguments
from nmtflex.config import ProcessConfig
from nmtflex.errors import OptionError, RunError

VARIABLE = "NMTFLEX_PROCESSES"  # tells a process that --processes started it


def share_work(config: ProcessConfig) -> bool:
    """Start this command line in several processes, if they are asked for, and wait for them.

    Returns:
        Whether they have done the work; otherwise it is this process's.

    Raises:
        OptionError: torchrun has started several processes already.
        RunError: A process was killed.
        SystemExit: A process failed, and has said why; with its exit code.
    """
    if config.processes == 1 or os.environ.get(VARIABLE) == str(config.processes):
        return False
    if "RANK" in os.environ:
        raise OptionError(
            f"--processes {config.processes} under torchrun, which starts the processes itself; "
            f"leave it out, or start without torchrun"
        )
    os.environ[VARIABLE] = str(config.processes)
    try:
        code = _launch(config, given_arguments())
    finally:
        del os.environ[VARIABLE]
    if code:
        sys.exit(code)
    return True


def _launch(config: ProcessConfig, arguments: Sequence[str]) -> int:
    """Run the launcher; return the exit code of the first process that failed, 0 if none did."""
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    # Each process tells what went wrong in one line; the launcher's account of it is for torch.
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    launch = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=config.processes,
        run_id=uuid.uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=config.restarts,
    )
    try:
        elastic_launch(launch, sys.executable)("-m", "nmtflex", *arguments)
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        if failure.exitcode >= 0:
            return failure.exitcode
        name = signal.Signals(-failure.exitcode).name
        raise RunError(
            f"process {rank} of {config.processes} was ended by {name}; the same command again "
            f"goes on, a training from its last checkpoint, and --restarts N gives it by itself"
        ) from error
    except SignalException as error:
        return 128 + int(error.sigval)
    return 0
