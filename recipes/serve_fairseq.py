"""The speed of fairseq, asked for line by line; ``benchmark_neighbours.py --fairseq`` starts it.

    PYTHON serve_fairseq.py DATA CHECKPOINT

DATA is a folder of ``fairseq-preprocess``, CHECKPOINT a model trained on it, PYTHON one that has
fairseq. Each line of standard input, "decoding" or "training", is answered with sentences or target
tokens a second.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

import torch
from benchmark_neighbours import BATCHES, BEAM, answer
from fairseq import checkpoint_utils  # type: ignore[import-not-found]


def main() -> None:
    """Load the model and answer."""
    data, checkpoint = sys.argv[1:]
    models, config, task = checkpoint_utils.load_model_ensemble_and_task(
        [checkpoint], {"data": data}
    )
    task.load_dataset("test")
    task.load_dataset("train")
    answer({
        "decoding": decoder(models, task),
        "training": trainer(models[0], task.build_criterion(config.criterion), task),
    })


def batches(task: Any, split: str, sentences: int) -> list[Any]:
    """Return the batches of a split."""
    found = task.get_batch_iterator(dataset=task.dataset(split), max_sentences=sentences)
    return list(found.next_epoch_itr(shuffle=False))


def decoder(models: list[Any], task: Any) -> Any:
    """Return a job that translates the test split."""
    generator = task.build_generator(models, Namespace(beam=BEAM, max_len_b=50))
    samples = batches(task, "test", 128)

    def decode() -> int:
        models[0].eval()
        with torch.no_grad():
            for sample in samples:
                task.inference_step(generator, models, sample)
        return sum(len(sample["id"]) for sample in samples)

    return decode


def trainer(model: Any, criterion: Any, task: Any) -> Any:
    """Return a job that makes some updates of 64 sentences."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    every = batches(task, "train", 64)
    samples = every[:: len(every) // BATCHES][:BATCHES]

    def update() -> int:
        model.train()
        for sample in samples:
            optimizer.zero_grad()
            criterion(model, sample)[0].backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 3)
            optimizer.step()
        return sum(sample["ntokens"] for sample in samples)

    return update


if __name__ == "__main__":
    main()
