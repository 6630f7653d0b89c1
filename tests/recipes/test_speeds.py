"""The table of decoding speeds, from benchmarks and the headers of checkpoints."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

SCRIPT = Path(__file__).parents[2] / "recipes" / "speeds.py"


def test_each_run_has_its_weights_and_its_speeds(tmp_path):
    paths = [tmp_path / "one", tmp_path / "two"]
    for count, path in enumerate(paths, 1):
        (path / "checkpoints").mkdir(parents=True)
        weights = {"a": torch.zeros(count, 1000), "b": torch.zeros(7), "c": torch.zeros(())}
        save_file(weights, path / "checkpoints" / "best.safetensors", {"update": "3"})
    for beam, speeds in ((1, (1234.4, 10.6)), (5, (99.0, 5000.0))):
        runs = [
            {"run": str(path), "name": path.name, "target_tokens_per_second": speed}
            for path, speed in zip(paths, speeds, strict=True)
        ]
        (tmp_path / f"beam{beam}.json").write_text(json.dumps({"runs": runs}))
    words = [sys.executable, SCRIPT, tmp_path, "beam1", "beam5"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    lines = [line.strip("|").split("|") for line in done.stdout.splitlines()[2:]]
    assert [[cell.strip() for cell in line] for line in lines] == [
        ["one", "1,008", "1,234", "99"],
        ["two", "2,008", "11", "5,000"],
    ]
