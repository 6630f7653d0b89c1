"""A training with a preset: it resumes by the same command, by its run alone, and no other way."""

from __future__ import annotations

import json

import pytest
from small_trainings import make_prepared

pytestmark = pytest.mark.integration

FLAGS = (
    *("--preset", "tiny", "--embedding-size", 8),
    *("--encoder-layers", 1, "--encoder-ffn", 8, "--decoder-ffn", 8, "--batch-sentences", 50),
    *("--accumulate", 1, "--warmup", 2, "--valid-beam", 1, "--threads", 1, "--device", "cpu", "-q"),
)


def test_a_training_with_a_preset_resumes(command_line, tmp_path):
    prepared = make_prepared(tmp_path, seed=1, joint=True)
    run = tmp_path / "run"

    def train(*arguments: object) -> str:
        outcome = command_line("train", "--run", run, *arguments)
        assert outcome.code in (0, 2)
        return outcome.err

    def effective() -> dict:
        found = json.loads((run / "config.json").read_text())
        return found["model"] | found["train"]

    assert (
        "--batch-sentences overrides batch-tokens in --preset tiny"
        in command_line("train", "--run", run, *FLAGS[:-1], "--print-config").err
    )
    assert train(prepared, *FLAGS, "--updates", 2) == ""
    options = effective()
    assert (options["lr"], options["label_smoothing"], options["ema"]) == (1e-3, 0.1, 0.9999)
    assert (options["encoder"]["encoder_heads"], options["decoder"]["kind"]) == (8, "ssru")
    assert train(prepared, *FLAGS, "--updates", 3) == ""
    assert train("-q", "--updates", 4) == ""
    assert effective() == options | {"updates": 4}
    message = train("--preset", "small", "--warmup", 3, "-q")
    for part in (
        "--embedding-size was 8, not 256",
        "--encoder-size was 8",
        "--dropout was 0.1, not 0.3",
        "--warmup was 2, not 3",
        "--encoder-heads",
    ):
        assert part in message
