"""Write a run's weights as a model of Marian, to time both on the same model.

    to_marian.py RUN FOLDER

Writes FOLDER/model.npz and FOLDER/vocabulary.yml. Marian computes the same only for runs that were
trained or finetuned by as_marian.py: it ends each source with </s>, and has zeros in place of the
embedding of the symbol that begins a translation.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from prepared_text import SPECIALS, marian_vocabulary
from run_weights import END, Array, Run, read

VERSION = "v1.12.31"


class Arrays(dict[str, Array]):
    """Marian's arrays by name, made of a run's weights.

    Args:
        run: The run.
    """

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run = run
        self.suffix = "_pre" if run.model["encoder"]["pre_norm"] else ""
        words = [END, 1, *range(SPECIALS, len(run.embedding()))]  # no padding and no begin
        self["Wemb"] = run.embedding()[words]
        self["decoder_ff_logit_out_b"] = run.weights["output.projection.bias"][words][None]
        for side, add in (("encoder", self.encoder_layer), ("decoder", self.decoder_layer)):
            if self.suffix:
                self.norm(f"{side}_top", side, "")
            for number in range(run.model[side][f"{side}_layers"]):
                name, ours = f"{side}_l{number + 1}", f"{side}.layers.{number}"
                add(name, ours)
                self.product(f"{name}_ffn", f"{ours}.feed_forward.inner", "1")
                self.product(f"{name}_ffn", f"{ours}.feed_forward.outer", "2")
                self.norm(f"{name}_ffn_ffn", f"{ours}.around_feed_forward", self.suffix)

    def encoder_layer(self, name: str, ours: str) -> None:
        """Add what comes before the feed-forward sublayer."""
        self.self_attention(f"{name}_self", f"{ours}.attention", f"{ours}.around_attention")

    def decoder_layer(self, name: str, ours: str) -> None:
        """Add what comes before the feed-forward sublayer."""
        if self.run.model["decoder"]["kind"] == "transformer":
            self.self_attention(f"{name}_self", f"{ours}.mixer", f"{ours}.around_mixer")
        else:
            gate, candidate = np.split(self.run.weights[f"{ours}.mixer.joint.weight"], 2)
            self[f"{name}_rnn_Wf"], self[f"{name}_rnn_W"] = gate.T, candidate.T
            self[f"{name}_rnn_bf"] = self.run.weights[f"{ours}.mixer.bias"][None]
            self.norm(f"{name}_rnn", f"{ours}.around_mixer", self.suffix)
        self.product(f"{name}_context", f"{ours}.attention.query", "q")
        self.product(f"{name}_context", f"{ours}.attention.source", "kv")
        self.product(f"{name}_context", f"{ours}.attention.output", "o")
        self.norm(f"{name}_context_Wo", f"{ours}.around_attention", self.suffix)

    def self_attention(self, name: str, ours: str, around: str) -> None:
        """Add a sublayer of self-attention."""
        self.product(name, f"{ours}.inputs", "qkv")
        self.product(name, f"{ours}.output", "o")
        self.norm(f"{name}_Wo", around, self.suffix)

    def product(self, name: str, ours: str, parts: str) -> None:
        """Add a layer's products, which are one here, under a letter or a number each."""
        weight, bias = self.run.linear(ours)
        count = len(parts)
        for part, w, b in zip(parts, np.split(weight, count), np.split(bias, count), strict=True):
            self[f"{name}_W{part}"], self[f"{name}_b{part}"] = w.T, b[None]

    def norm(self, name: str, ours: str, suffix: str) -> None:
        """Add a layer norm."""
        scale, bias = self.run.linear(f"{ours}.norm")
        self[f"{name}_ln_scale{suffix}"], self[f"{name}_ln_bias{suffix}"] = scale[None], bias[None]


def options(run: Run) -> str:
    """Return the part of Marian's options that a model keeps."""
    encoder, decoder = run.model["encoder"], run.model["decoder"]
    size, pre_norm = len(run.subwords) + 2, encoder["pre_norm"]
    found = {
        "type": "transformer",
        "enc-depth": encoder["encoder_layers"],
        "dec-depth": decoder["decoder_layers"],
        "dim-emb": run.model["embedding_size"],
        "dim-vocabs": [size, size],
        "transformer-heads": encoder["encoder_heads"],
        "transformer-dim-ffn": encoder["encoder_ffn"],
        "transformer-decoder-dim-ffn": decoder["decoder_ffn"],
        "transformer-ffn-depth": 2,
        "transformer-ffn-activation": "relu",
        "transformer-preprocess": "n" if pre_norm else "",
        "transformer-postprocess": "da" if pre_norm else "dan",
        "transformer-postprocess-emb": "d",
        "transformer-postprocess-top": "n" if pre_norm else "",
        "transformer-decoder-autoreg": "rnn" if decoder["kind"] == "ssru" else "self-attention",
        "dec-cell": "ssru",
        "tied-embeddings-all": True,
        "input-types": [],
        "version": VERSION,
    }
    return "".join(f"{name}: {json.dumps(value)}\n" for name, value in found.items())


def write(path: Path, out: Path) -> None:
    """Write model and vocabulary."""
    run = read(path)
    out.mkdir(parents=True, exist_ok=True)
    text = options(run).encode() + b"\0"
    model: dict[str, Any] = {
        name: np.ascontiguousarray(array, "f4") for name, array in Arrays(run).items()
    }
    np.savez(out / "model.npz", **model | {"special:model.yml": np.frombuffer(text, "i1")})
    (out / "vocabulary.yml").write_text(marian_vocabulary(run.subwords), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
