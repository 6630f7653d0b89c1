"""``nmtflex finetune``."""

from __future__ import annotations

from nmtflex.cli.app import app
from nmtflex.cli.bind import command
from nmtflex.cli.processes import share_work
from nmtflex.cli.train import run_trainer
from nmtflex.config import DeviceConfig, FinetuneConfig, ProcessConfig


@command(app, "finetune")
def finetune(config: FinetuneConfig, device: DeviceConfig, processes: ProcessConfig) -> None:
    """Train a run further: to reduce its computations (eq. 9 of flexible attention) or on new data.

    Validates at the threshold --tau before the first update and then as in training: BLEU, mean
    gate and CPS. Run the same command again to resume, or just nmtflex finetune --run RUN. Several
    processes share the work as in nmtflex train.
    """
    if share_work(processes):
        return
    from nmtflex.ranks import open_ranks
    from nmtflex.training.finetune import open_finetuning

    run_trainer(open_finetuning(config, device, open_ranks()))
