"""The counters of a checkpoint, as they are read back."""

from __future__ import annotations

import json
import math

import pytest

from nmtflex.training.progress import Progress


def test_what_is_written_is_read():
    progress = Progress(rate=0.001, update=7, best_score=-math.inf, validated_update=-1)
    progress.window_loss = -3.5
    assert Progress.from_dict(json.loads(json.dumps(progress.to_dict()))) == progress


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("update", "7"),
        ("update", -1),
        ("update", 7.0),
        ("update", True),
        ("metric_rows", 2**63),
        ("rate", None),
        ("rate", math.nan),
        ("rate", -0.1),
        ("seconds", "1"),
        ("best_score", "1"),
        ("best_score", math.nan),
        ("best_perplexity", -1.0),
    ],
)
def test_what_no_training_counts_to(name, value):
    with pytest.raises(TypeError, match=f"'{name}' is .*, which is out of range"):
        Progress.from_dict({"rate": 0.1, name: value})


def test_names_of_another_program():
    with pytest.raises(TypeError, match="strange"):
        Progress.from_dict({"rate": 0.1, "strange": 1})
