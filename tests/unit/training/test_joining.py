"""What a run says of its processes, and the batches that it keeps."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from nmtflex.config import TrainConfig
from nmtflex.errors import RunError
from nmtflex.training.joining import _set_random, processes_of, whole_batches

PATHS = {"data": Path("data"), "run": Path("run")}


def test_a_run_keeps_the_budget_of_all_processes_together():
    assert whole_batches(TrainConfig(**PATHS), 3).token_budget == 3 * 4096
    assert whole_batches(TrainConfig(**PATHS, batch_tokens=10), 2).token_budget == 20
    by_count = whole_batches(TrainConfig(**PATHS, batch_sentences=5), 2)
    assert (by_count.batch_sentences, by_count.batch_tokens) == (10, None)


def test_a_run_of_an_older_version_began_with_one_process():
    assert processes_of({}, Path("config.json")) == 1
    assert processes_of({"processes": 8}, Path("config.json")) == 8


@pytest.mark.parametrize("value", [0, -1, 1 << 40, 2.0, True, "2", None, [1]])
def test_what_is_no_number_of_processes_is_named(value):
    with pytest.raises(RunError, match=r"config.json: damaged: 'processes' is "):
        processes_of({"processes": value}, Path("config.json"))


def test_a_process_goes_on_with_its_own_random_numbers_or_begins_with_new_ones():
    before = torch.get_rng_state()
    try:
        torch.manual_seed(5)
        saved = {"rng.cpu.2": torch.get_rng_state().tolist()}
        device = torch.device("cpu")
        expected = torch.rand(3)
        _set_random(saved, 2, [1, 7, 2], device)
        assert torch.equal(torch.rand(3), expected)
        drawn = []
        for rank in (1, 3, 1):
            _set_random(saved, rank, [1, 7, rank], device)
            drawn.append(torch.rand(3))
        assert torch.equal(drawn[0], drawn[2])
        assert not torch.equal(drawn[0], drawn[1])
        with pytest.raises(RunError, match="random numbers of process 2 are damaged"):
            _set_random({"rng.cpu.2": [1, 2]}, 2, [1], device)
    finally:
        torch.set_rng_state(before)
