"""The weights and sizes of a run with a transformer encoder, for to_marian and to_ctranslate2."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
END = 3  # id of the end of a sentence


class Run(NamedTuple):
    """What a converter reads of a run."""

    model: dict[str, Any]  # of config.json
    weights: dict[str, Array]
    subwords: list[str]  # of both languages, without the special symbols

    def linear(self, name: str) -> tuple[Array, Array]:
        """Return the weights [outputs, inputs] and the bias [outputs] of a layer."""
        return self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]

    def embedding(self) -> Array:
        """Return the embedding [V, D] that both languages and the output layer share."""
        return self.weights["encoder.embedding.weight"]


def read(path: Path) -> Run:
    """Read a run's best checkpoint.

    Exits with one line where other engines cannot compute what the model computes.
    """
    model = json.loads((path / "config.json").read_text(encoding="utf-8"))["model"]
    encoder, decoder, attention = model["encoder"], model["decoder"], model["attention"]
    needed = {
        "--encoder transformer": encoder["kind"] == "transformer",
        "--decoder ssru or transformer": decoder["kind"] in {"ssru", "transformer"},
        "--attention global --score dot": (attention["kind"], attention.get("score"))
        == ("global", "dot"),
        "--tie-embeddings all": model["tie_embeddings"] == "all",
        "as many heads in the encoder as in the decoder": encoder.get("encoder_heads")
        == decoder.get("decoder_heads"),
        "--encoder-window 0": not encoder.get("encoder_window"),
        "norms at the same places in the encoder and in the decoder": encoder.get("pre_norm")
        == decoder.get("pre_norm"),
    }
    if missing := [what for what, there in needed.items() if not there]:
        sys.exit(f"{path}: other engines need a run with {'; '.join(missing)}")
    lines = (path / "pipeline" / "source.vocabulary").read_text(encoding="utf-8")
    subwords = [line.split("\t")[0] for line in lines.removesuffix("\n").split("\n")]
    weights = _tensors(path / "checkpoints" / "best.safetensors")
    return Run(model, weights, subwords)


def _tensors(path: Path) -> dict[str, Array]:
    """Read a .safetensors file of float32: length of the header, header, numbers."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    found = {}
    for name, tensor in json.loads(data[8:start]).items():
        if name != "__metadata__":
            first, last = (start + offset for offset in tensor["data_offsets"])
            numbers = np.frombuffer(data[first:last], dtype="<f4")
            found[name] = numbers.reshape(tensor["shape"]).copy()
    return found
