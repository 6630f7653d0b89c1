"""``--processes N``: run one command in several processes, with torch's elastic launcher."""

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

VARIABLE = "NMTFLEX_PROCESSES"  # set in processes that --processes started


def share_work(config: ProcessConfig) -> bool:
    """Run this command in several processes if requested, and wait for them.

    Returns:
        Whether they did the work; if not, this process must.

    Raises:
        OptionError: torchrun has already started several processes.
        RunError: A process was killed.
        SystemExit: A process failed and reported why; carries its exit code.
    """
    if config.processes == 1 or os.environ.get(VARIABLE) == str(config.processes):
        return False
    if "RANK" in os.environ:
        raise OptionError(
            f"--processes {config.processes} conflicts with torchrun, which starts the processes "
            f"itself; remove the option, or start without torchrun"
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
    """Run the launcher; return the exit code of the first process that failed, or 0."""
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    # Each process reports its own error in one line, so silence the launcher's.
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
            f"process {rank} of {config.processes} was killed by {name}; run the same command "
            f"again to continue (training resumes from its last checkpoint), or use --restarts N"
        ) from error
    except SignalException as error:
        return 128 + int(error.sigval)
    return 0
