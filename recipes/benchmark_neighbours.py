"""Decoding and training beside busy neighbours, with threads that watch for them and without.

    python recipes/benchmark_neighbours.py RUN SOURCE [--rounds 4] [--fairseq PYTHON DATA MODEL]

RUN is a trained run, SOURCE a file of sentences in its source language. Two processes hold the
run, one of them with the watcher of ``nmtflex.ops.waiting`` off. They take turns, beside 0, 1,
2 and 4 processes that do nothing but count; the rows give medians and ranges. ``fair`` is the share
of the quiet speed that an even division of the cores would leave. With ``--fairseq`` a third
process takes turns: PYTHON has fairseq, DATA is made by fairseq-preprocess, MODEL a checkpoint. Run
it on a quiet machine.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BEAM, BATCHES, PAUSE = 5, 12, 1.0
NEIGHBOURS = (0, 1, 2, 4)


def main() -> None:
    """Measure, or be one of the two processes that are measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("source")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--fairseq", nargs=3, metavar=("PYTHON", "DATA", "MODEL"))
    parser.add_argument("--serve", choices=("watching", "plain"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.run, options.source, options.serve == "watching")
    else:
        own = [sys.executable, __file__, options.run, options.source, "--serve"]
        commands = {name: [*own, name] for name in ("plain", "watching")}
        if options.fairseq:
            python, *files = options.fairseq
            commands["fairseq"] = [
                python,
                str(Path(__file__).with_name("serve_fairseq.py")),
                *files,
            ]
        measure(commands, options.rounds)


def measure(commands: dict[str, list[str]], rounds: int) -> None:
    """Start what is measured, and print a table."""
    import torch

    threads = torch.get_num_threads()
    servers = {
        name: subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for name, command in commands.items()
    }
    for server in servers.values():
        ask(server, "decoding")
    quiet: dict[tuple[str, str], float] = {}
    say(f"{threads} threads; sentences a second (decoding), target tokens a second (training)")
    for count in NEIGHBOURS:
        fair = threads / max(threads, threads + count)
        for work in ("decoding", "training"):
            found: dict[str, list[float]] = {name: [] for name in servers}
            with neighbours(count):
                for _ in range(rounds):
                    for name, server in servers.items():
                        found[name].append(ask(server, work))
            if not count:
                quiet |= {(name, work): statistics.median(found[name]) for name in found}
                quiet["watching", work] = quiet["plain", work]  # what watching costs counts too
            cells = (
                f"{name} {statistics.median(speeds):,.0f} ({min(speeds):,.0f}-{max(speeds):,.0f}), "
                f"{statistics.median(speeds) / quiet[name, work]:.2f} of quiet"
                for name, speeds in found.items()
            )
            say(f"{work}, {count} neighbours, fair {fair:.2f}: {'; '.join(cells)}")
    for server in servers.values():
        server.communicate()


def ask(server: subprocess.Popen[str], work: str) -> float:
    """Return the speed of a process at some work."""
    if server.stdin is None or server.stdout is None:
        raise ValueError("the server has no pipes")
    server.stdin.write(f"{work}\n")
    server.stdin.flush()
    return float(server.stdout.readline())


@contextmanager
def neighbours(count: int) -> Iterator[None]:
    """Keep so many processes busy."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def serve(run: str, source: str, watching: bool) -> None:
    """Load the run and answer."""
    from nmtflex.ops import waiting

    if not watching:
        waiting.watch = lambda: None  # type: ignore[assignment]
    import nmtflex

    translator = nmtflex.load(run, beam=BEAM)
    lines = Path(source).read_text(encoding="utf-8").splitlines()

    def decode() -> int:
        translator.translate(lines)
        return len(lines)

    answer({"decoding": decode, "training": trainer()})


def answer(jobs: dict[str, Callable[[], int]]) -> None:
    """Answer each line of standard input with the speed of the job that it names."""
    for job in jobs.values():
        job()
    for line in sys.stdin:
        job = jobs[line.strip()]
        speed(job, PAUSE)  # not measured: the watcher sees the neighbours in it
        say(str(speed(job, PAUSE)))


def say(line: str) -> None:
    """Write a line to standard output at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def speed(job: Callable[[], int], seconds: float) -> float:
    """Return how much a job does a second, over so many seconds at least."""
    began, done = time.perf_counter(), 0
    while (passed := time.perf_counter() - began) < seconds:
        done += job()
    return done / passed


def trainer() -> Callable[[], int]:
    """Return updates of the yardstick's model (recipes/results/toolkits.md) on random sentences."""
    import torch

    from nmtflex.config import GlobalConfig, ModelConfig
    from nmtflex.model.build import build_model

    torch.manual_seed(1)
    config = ModelConfig.from_flat(
        attention=GlobalConfig(),
        decoder="luong",
        embedding_size=128,
        encoder_size=128,
        decoder_size=256,
    )
    model = build_model(config, 4109, 4906, 60).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    batches = []
    for length in range(6, 6 + BATCHES // 2):
        words = torch.randint(4, 4000, (3, 64, length))
        batches.append((words[0], torch.full((64,), length), words[1], words[2]))

    def update() -> int:
        for batch in batches:
            optimizer.zero_grad()
            objective: Any = model.loss(*batch).objective
            objective.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 3)
            optimizer.step()
        return sum(batch[2].numel() for batch in batches)

    return update


if __name__ == "__main__":
    main()
