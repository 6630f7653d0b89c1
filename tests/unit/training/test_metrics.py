"""metrics.csv."""

from __future__ import annotations

import csv

import pytest

from nmtflex.runs.folder import RunFolder
from nmtflex.training.metrics import COLUMNS, Metrics


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path)


def read(folder):
    with folder.metrics.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_header_is_what_other_tools_read(folder):
    with Metrics(folder, 0, 0):
        pass
    assert folder.metrics.read_text().strip() == (
        "update,epoch,seconds,target_tokens,split,loss,perplexity,bleu,learning_rate,"
        "gradient_norm,gate_mean,cps,alignment_loss"
    )


def test_what_is_not_given_stays_empty(folder):
    with Metrics(folder, 0, 0) as metrics:
        metrics.write("valid", {"update": 3, "bleu": 31.25, "loss": None})
    (row,) = read(folder)
    given = {"update": "3", "split": "valid", "bleu": "31.25"}
    assert row == dict.fromkeys(COLUMNS, "") | given


def test_resuming_drops_rows_that_the_checkpoint_does_not_know(folder):
    with Metrics(folder, 0, 0) as metrics:
        for update in (1, 2, 3):
            metrics.write("train", {"update": update, "loss": 1.0})
    with Metrics(folder, 2, 2) as metrics:
        metrics.write("train", {"update": 3, "loss": 9.0})
    assert [(row["update"], row["loss"]) for row in read(folder)] == [
        ("1", "1.0"),
        ("2", "1.0"),
        ("3", "9.0"),
    ]
    assert list(folder.tensorboard.iterdir())


def test_a_column_that_is_not_there_is_a_mistake_of_the_caller(folder):
    with Metrics(folder, 0, 0) as metrics, pytest.raises(ValueError, match="blue"):
        metrics.write("valid", {"update": 1, "blue": 3.0})
