"""Weights for other engines: Marian's layout computes, in plain loops, what the model computes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import nmtflex
from nmtflex.layers.embedding import Embedding
from nmtflex.model.encoders.transformer import TransformerEncoder
from nmtflex.text.vocabulary import BOS_ID

RECIPES = Path(__file__).parents[2] / "recipes"
LINES = {"de": ["ab abc", "c ab", "abc"], "en": ["x xy", "y", "xy x"]}
SIZES = {"--encoder-size": 8, "--decoder-size": 8, "--embedding-size": 8, "--encoder-layers": 2}
SIZES |= {"--encoder-heads": 2, "--decoder-heads": 2, "--encoder-ffn": 12, "--decoder-ffn": 20}
SIZES |= {"--decoder-layers": 2, "--dropout": 0, "--updates": 3, "--lr": 0.05, "--warmup": 0}


@pytest.fixture
def recipes(monkeypatch):
    """The scripts import each other."""
    monkeypatch.syspath_prepend(str(RECIPES))
    yield
    for name in ("run_weights", "prepared_text", "to_marian", "as_marian"):
        sys.modules.pop(name, None)


@pytest.fixture
def trained(tmp_path, command_line):
    """Train a tiny transformer."""
    for split in ("train", "dev"):
        for language, lines in LINES.items():
            (tmp_path / f"{split}.{language}").write_text("".join(f"{one}\n" for one in lines))
    text = ["--train", tmp_path / "train", "--valid", tmp_path / "dev", "--test", tmp_path / "dev"]
    text += ["--source-lang", "de", "--target-lang", "en", "--bpe", 3, "--joint"]
    assert command_line("preprocess", *text, "--out", tmp_path / "data").code == 0

    def train(*options):
        run = tmp_path / "run"
        sizes = [part for pair in SIZES.items() for part in pair]
        fixed = ["--encoder", "transformer", "--valid-beam", 1, "--device", "cpu"]
        given = command_line("train", tmp_path / "data", "--run", run, *sizes, *fixed, *options)
        assert given.code == 0, given.err
        return run

    return train


class Marian:
    """Marian's transformer for one sentence, in float64; ``{}_ln`` and so on are its names."""

    def __init__(self, arrays, options):
        self.arrays = {name: value.astype("f8") for name, value in arrays.items()}
        self.heads, self.pre_norm = options["transformer-heads"], options["transformer-preprocess"]
        self.options = options

    def norm(self, x, name, suffix):
        scale, bias = (
            self.arrays[f"{name}_ln_scale{suffix}"],
            self.arrays[f"{name}_ln_bias{suffix}"],
        )
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + bias

    def residual(self, x, name, sublayer):
        if self.pre_norm:
            return x + sublayer(self.norm(x, name, "_pre"))
        return self.norm(x + sublayer(x), name, "")

    def linear(self, x, name, part):
        return x @ self.arrays[f"{name}_W{part}"] + self.arrays[f"{name}_b{part}"]

    def attend(self, queries, states, name):
        q = self.linear(queries, name, "q")
        k, v = (self.linear(states, name, part) for part in "kv")
        size = q.shape[1] // self.heads
        made = np.empty_like(q)
        for head in range(self.heads):
            own = slice(head * size, (head + 1) * size)
            for row in range(len(q)):
                scores = k[:, own] @ q[row, own] / np.sqrt(size)
                weights = np.exp(scores - scores.max())
                made[row, own] = weights @ v[:, own] / weights.sum()
        return self.linear(made, name, "o")

    def feed(self, x, name):
        def sublayer(x):
            return self.linear(np.maximum(self.linear(x, name, "1"), 0), name, "2")

        return self.residual(x, f"{name}_ffn", sublayer)

    def embed(self, ids):
        size = self.arrays["Wemb"].shape[1]
        found = np.empty((len(ids), size))
        for at, number in enumerate(ids):
            word = np.zeros(size) if number is None else self.arrays["Wemb"][number]
            angles = [at / 10000 ** (2 * i / size) for i in range(size // 2)]
            found[at] = word * np.sqrt(size) + np.concatenate([np.sin(angles), np.cos(angles)])
        return found

    def encode(self, ids):
        x = self.embed([*ids, 0])
        for layer in range(1, self.options["enc-depth"] + 1):
            name = f"encoder_l{layer}"
            x = self.residual(
                x, f"{name}_self_Wo", lambda y, name=name: self.attend(y, y, f"{name}_self")
            )
            x = self.feed(x, f"{name}_ffn")
        return self.norm(x, "encoder_top", "") if self.pre_norm else x

    def ssru(self, x, name):
        cell, made = np.zeros(x.shape[1]), []
        for row in x:
            forget = 1 / (1 + np.exp(-(self.linear(row, name, "f")[0])))
            cell = forget * cell + (1 - forget) * (row @ self.arrays[f"{name}_W"])
            made.append(np.maximum(cell, 0))
        return np.stack(made)

    def look_back(self, x, name):
        return np.concatenate([self.attend(x[t : t + 1], x[: t + 1], name) for t in range(len(x))])

    def logits(self, source, target):
        states = self.encode(source)
        x = self.embed([None, *target])
        for layer in range(1, self.options["dec-depth"] + 1):
            name = f"decoder_l{layer}"
            if self.options["transformer-decoder-autoreg"] == "rnn":
                x = self.residual(
                    x, f"{name}_rnn", lambda y, name=name: self.ssru(y, f"{name}_rnn")
                )
            else:
                x = self.residual(
                    x,
                    f"{name}_self_Wo",
                    lambda y, name=name: self.look_back(y, f"{name}_self"),
                )
            x = self.residual(
                x,
                f"{name}_context_Wo",
                lambda y, name=name: self.attend(y, states, f"{name}_context"),
            )
            x = self.feed(x, f"{name}_ffn")
        x = self.norm(x, "decoder_top", "") if self.pre_norm else x
        return x @ self.arrays["Wemb"].T + self.arrays["decoder_ff_logit_out_b"]


@pytest.mark.parametrize("decoder", ["ssru", "transformer"])
@pytest.mark.parametrize("pre_norm", [True, False])
@pytest.mark.usefixtures("recipes")
def test_marian_computes_the_same(trained, tmp_path, monkeypatch, script, decoder, pre_norm):
    own = ["--decoder", decoder, "--score", "dot", "--tie-embeddings", "all"]
    run = trained(*own, "--pre-norm" if pre_norm else "--no-pre-norm")
    script("to_marian").write(run, tmp_path / "marian")
    with np.load(tmp_path / "marian" / "model.npz") as arrays:
        lines = arrays["special:model.yml"].tobytes().decode().rstrip("\0").splitlines()
        numbers = {name: arrays[name] for name in arrays.files if ":" not in name}
    options = {key: json.loads(value) for key, value in (line.split(": ", 1) for line in lines)}
    marian = Marian(numbers, options)

    patches = script("as_marian")
    monkeypatch.setattr(Embedding, "forward", patches.look_up_words)
    monkeypatch.setattr(TransformerEncoder, "forward", patches.read_to_the_end)
    opened = nmtflex.load(run, device="cpu", threads=1)
    words = (tmp_path / "marian" / "vocabulary.yml").read_text().splitlines()
    names = [json.loads(line.rsplit(": ", 1)[0]) for line in words]
    known = opened.pipeline.source.vocabulary
    source, target = names[2:5], names[3:6]
    assert [options["dim-vocabs"][0], *names[:2]] == [len(names), "</s>", "<unk>"]
    (model,) = opened._models
    with torch.inference_mode():
        memory, state = model.encode(torch.tensor([known.ids(source)]), torch.tensor([len(source)]))
        found = []
        for number in (BOS_ID, *known.ids(target)):
            step = model.step(memory, None, state, torch.tensor([number]))
            found.append(model.log_probs(step.output)[0].double().numpy())
            state = step.state
    ours = [3, 1, *range(4, len(names) + 2)]
    expected = marian.logits(list(map(names.index, source)), list(map(names.index, target)))
    for row, logits in zip(found, expected, strict=True):
        shift = row[ours] - logits  # the normalisation, and nothing else
        assert np.ptp(shift) < 1e-4


@pytest.mark.parametrize(("options", "named"), [
    (["--decoder", "ssru"], "--tie-embeddings all"),
    (["--decoder", "ssru", "--attention", "memory", "--K", 2], "--attention global"),
    (["--decoder", "ssru", "--score", "general", "--tie-embeddings", "all"], "--score dot"),
    (["--decoder", "ssru", "--encoder-window", 2], "--encoder-window 0"),
])  # fmt: skip
@pytest.mark.usefixtures("recipes")
def test_other_runs_are_refused(trained, tmp_path, script, options, named):
    run = trained(*options)
    with pytest.raises(SystemExit) as refused:
        script("to_marian").write(run, tmp_path / "marian")
    assert named in str(refused.value)
    assert str(run) in str(refused.value)
