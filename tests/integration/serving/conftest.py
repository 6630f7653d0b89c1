"""Runs to serve."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from served import Served

GOLDEN = Path(__file__).parents[2] / "golden"
KEYS = "# client, and its requests a minute\nunlimited 0\nslow 2\nusual\n"


@pytest.fixture(scope="session")
def english() -> Path:
    """Return a run from English to Japanese."""
    return GOLDEN / "bahdanau-global"


@pytest.fixture(scope="session")
def japanese() -> Path:
    """Return a run from Japanese to English."""
    return GOLDEN / "luong-flexible"


@pytest.fixture(scope="session")
def relabelled(english, tmp_path_factory) -> Callable[..., Path]:
    """Make a run of other languages out of the one from English, or of as many random weights."""
    import torch
    from safetensors.torch import load_file, save_file

    def make(source: str, target: str, *, random: bool = False) -> Path:
        folder = tmp_path_factory.mktemp(f"{source}-{target}") / "run"
        shutil.copytree(english, folder)
        file = folder / "pipeline" / "pipeline.json"
        pipeline = json.loads(file.read_text())
        pipeline["source"]["language"] = source
        pipeline["target"]["language"] = target
        file.write_text(json.dumps(pipeline))
        if random:
            torch.manual_seed(1)
            weights = folder / "checkpoints" / "best.safetensors"
            drawn = {name: torch.randn_like(tensor) for name, tensor in load_file(weights).items()}
            save_file(drawn, weights, {"update": "1"})
        return folder

    return make


@pytest.fixture(scope="session")
def french(relabelled) -> Path:
    """Return a run from French to English."""
    return relabelled("fr", "en")


@pytest.fixture(scope="session")
def germans(relabelled) -> list[Path]:
    """Return two runs from German to Japanese, which form an ensemble."""
    return [relabelled("de", "ja"), relabelled("de", "ja", random=True)]


@pytest.fixture(scope="session")
def server(english, japanese, french, germans, tmp_path_factory):
    """Return a server of them all, with small limits."""
    keys = tmp_path_factory.mktemp("keys") / "keys"
    keys.write_text(KEYS)
    limits = ("--char-limit", 400, "--batch-limit", 20, "--alternatives-limit", 3)
    access = ("--api-keys", keys, "--cors", "https://example.com", "--body-limit", 20_000)
    runs = (english, japanese, french, *germans)
    with Served(*runs, "--workers", 1, *limits, *access) as served:
        yield served
