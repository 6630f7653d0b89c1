"""Write a run's weights as a model of CTranslate2, to time both on the same model.

    to_ctranslate2.py RUN FOLDER

Needs a Python that has CTranslate2. The decoder must be a transformer: CTranslate2 has no SSRU.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from run_weights import Run, read

SPECIALS = ["<pad>", "<unk>", "<s>", "</s>"]
POSITIONS = 2048


def specification(run: Run) -> Any:
    """Return the model as CTranslate2 describes it."""
    from ctranslate2.specs import TransformerSpec

    encoder, decoder = run.model["encoder"], run.model["decoder"]
    spec = TransformerSpec.from_config(
        (encoder["encoder_layers"], decoder["decoder_layers"]),
        encoder["encoder_heads"],
        pre_norm=encoder["pre_norm"],
    )
    embedding = run.embedding()
    for side, part in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        (part.embeddings[0] if side == "encoder" else part.embeddings).weight = embedding
        part.position_encodings.encodings = sinusoids(embedding.shape[1])
        if encoder["pre_norm"]:
            part.layer_norm.gamma, part.layer_norm.beta = run.linear(f"{side}.norm")
        for number, layer in enumerate(part.layer):
            ours = f"{side}.layers.{number}"
            mixer = "attention" if side == "encoder" else "mixer"
            attention = layer.self_attention
            _attention(run, attention, f"{ours}.{mixer}", ("inputs", "output"))
            _norm(run, attention, f"{ours}.around_{mixer}")
            if side == "decoder":
                _attention(run, layer.attention, f"{ours}.attention", ("query", "source", "output"))
                _norm(run, layer.attention, f"{ours}.around_attention")
            _linear(run, layer.ffn.linear_0, f"{ours}.feed_forward.inner")
            _linear(run, layer.ffn.linear_1, f"{ours}.feed_forward.outer")
            _norm(run, layer.ffn, f"{ours}.around_feed_forward")
    spec.decoder.projection.weight = embedding
    spec.decoder.projection.bias = run.weights["output.projection.bias"]
    words = [*SPECIALS, *run.subwords]
    spec.register_source_vocabulary(words)
    spec.register_target_vocabulary(words)
    spec.config.add_source_bos = spec.config.add_source_eos = False
    spec.config.decoder_start_token = "<s>"
    spec.config.layer_norm_epsilon = 1e-5
    return spec


def sinusoids(size: int) -> Any:
    """Return the encodings of positions [POSITIONS, D]: all sines, then all cosines."""
    angles = np.arange(POSITIONS)[:, None] / 10000.0 ** (np.arange(0, size, 2) / size)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype("f4")


def _linear(run: Run, layer: Any, ours: str) -> None:
    layer.weight, layer.bias = run.linear(ours)


def _norm(run: Run, owner: Any, ours: str) -> None:
    owner.layer_norm.gamma, owner.layer_norm.beta = run.linear(f"{ours}.norm")


def _attention(run: Run, attention: Any, ours: str, products: tuple[str, ...]) -> None:
    for layer, product in zip(attention.linear, products, strict=True):
        _linear(run, layer, f"{ours}.{product}")


if __name__ == "__main__":
    made = specification(read(Path(sys.argv[1])))
    made.validate()
    made.optimize(quantization="int8" if sys.argv[3:] == ["int8"] else None)
    Path(sys.argv[2]).mkdir(parents=True, exist_ok=True)
    made.save(sys.argv[2])
