"""Starting the server, and ending it when it has answered what it has begun."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import uvicorn

from nmtflex.config import AccessConfig, Decoding, LimitConfig, ServeConfig
from nmtflex.errors import OptionError
from nmtflex.runs.folder import RunFolder, read_run_config
from nmtflex.serving.access import Access
from nmtflex.serving.app import build_app
from nmtflex.serving.connection import PatientProtocol
from nmtflex.serving.desk import Desk
from nmtflex.serving.languages import Pair
from nmtflex.serving.metrics import Metrics
from nmtflex.serving.pool import Pool
from nmtflex.serving.queueing import Dispatcher
from nmtflex.serving.service import Model, Service
from nmtflex.serving.splitting import TextSplitter
from nmtflex.text.pipeline import TextPipeline
from nmtflex.workers import usable_cores

DRAIN = 30  # seconds for the requests that are being answered when the server is to end
CONNECTIONS = 1000  # at once
HEAD = 16_384  # bytes of the head of a request


class Plan(NamedTuple):
    """All options of a server."""

    serve: ServeConfig
    limits: LimitConfig
    access: AccessConfig
    decoding: Decoding


def serve(runs: Sequence[Path], plan: Plan, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or Ctrl-C; requests that are being answered get their answers.

    Args:
        runs: Run folders; those of one direction form an ensemble.
        plan: The options.
        announce: Called with a line about what happens.

    Raises:
        RunError: A run cannot be opened.
        OptionError: The address cannot be listened on, or an option does not fit the runs.
    """
    models = find_models(runs, plan.serve.join, plan.decoding.search.max_source_length)
    access = Access(plan.access, plan.limits)
    with _listen(plan.serve) as listener:
        asyncio.run(_run(models, plan, access, listener, announce))


async def _run(
    models: Sequence[Model],
    plan: Plan,
    access: Access,
    listener: socket.socket,
    announce: Callable[[str], None],
) -> None:
    """Start the workers, serve, and stop the workers."""
    count = plan.serve.workers or _usual_workers(plan)
    pool = Pool(_setup(models, plan.decoding, count), count)
    directions = ", ".join("-".join(model.pair) for model in models)
    announce(f"loading {directions} in {count} worker process{'es' * (count > 1)}")
    about = await pool.start()
    models = [
        dataclasses.replace(model, **known) for model, known in zip(models, about, strict=True)
    ]
    limits = plan.limits
    dispatcher = Dispatcher(pool, limits.queue_limit, plan.serve.latency, limits.timeout)
    dispatcher.start()
    try:
        metrics = Metrics()
        metrics.watch(dispatcher)
        service = Service(models, dispatcher)
        desk = Desk(service.languages, plan.limits, access)
        app = build_app(desk, service, plan.access.cors, metrics, page=plan.serve.page)
        host, port = listener.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        announce(f"serving on http://{shown}:{port}; Ctrl-C ends it")
        await _until_signal(app, listener)
    finally:
        await dispatcher.stop()


async def _until_signal(app: Any, listener: socket.socket) -> None:
    """Serve until a signal comes, and then until the last answer is given."""
    config = uvicorn.Config(
        app,
        http=PatientProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",  # not a line for each bad request
        access_log=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
        h11_max_incomplete_event_size=HEAD,
        timeout_graceful_shutdown=DRAIN,
    )
    server = _Server(config)
    loop = asyncio.get_running_loop()
    for ending in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(ending, server.handle_exit, ending, None)
    await server.serve(sockets=[listener])


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the event loop: uvicorn would send them again after the drain."""
        yield


def _listen(config: ServeConfig) -> socket.socket:
    """Return a socket that listens.

    Raises:
        OptionError: The address is wrong or taken.
    """
    try:
        address = config.host, config.port
        family = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server(address, family=family, backlog=CONNECTIONS)
    except OSError as error:
        raise OptionError(
            f"cannot listen on --host {config.host} --port {config.port}: "
            f"{error.strerror or error}; choose another port, or 0 for a free one"
        ) from error
    # Connections inherit it. Otherwise the body of an answer waits for the client to confirm the
    # head: 40 ms. asyncio sets it only on sockets that name TCP as their protocol.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _usual_workers(plan: Plan) -> int:
    """Return one process a core, or one if threads are given or a GPU is used."""
    on_cpu = plan.decoding.device.device == "cpu" or not _has_gpu()
    return max(1, usable_cores() // max(1, plan.decoding.device.threads)) if on_cpu else 1


def _has_gpu() -> bool:
    """Whether there is a GPU, found out without torch."""
    return any(Path("/dev").glob("nvidia[0-9]*"))


def _setup(models: Sequence[Model], decoding: Decoding, count: int) -> dict[str, Any]:
    """Return what each worker opens, and how."""
    device = decoding.device
    threads = device.threads or max(1, usable_cores() // count)
    groups = decoding._replace(device=dataclasses.replace(device, threads=threads))
    return {
        "models": [list(map(str, model.runs)) for model in models],
        "options": {name: group.to_dict() for name, group in groups._asdict().items()},
    }


def find_models(runs: Sequence[Path], join: int, longest: int) -> list[Model]:
    """Return the models of some runs; those of one direction form an ensemble.

    Args:
        runs: Run folders.
        join: Most sentences that are translated together.
        longest: Most source tokens that are translated together; 0 for as many as in training.

    Raises:
        RunError: A folder is not a run.
    """
    directions: dict[Pair, list[Path]] = {}
    pipelines: dict[Path, TextPipeline] = {}
    trained: dict[Path, int] = {}  # tokens of the longest source
    for run in runs:
        folder = RunFolder(run)
        trained[run] = read_run_config(folder)["data"]["longest_source"]
        pipelines[run] = TextPipeline.load(folder.pipeline)
        pair = Pair(pipelines[run].source.language, pipelines[run].target.language)
        directions.setdefault(pair, []).append(run)

    def splitter(paths: Sequence[Path]) -> TextSplitter:
        most = longest or min(trained[path] for path in paths)
        return TextSplitter(pipelines[paths[0]], join, most)

    return [Model(paths, pair, splitter(paths)) for pair, paths in directions.items()]
