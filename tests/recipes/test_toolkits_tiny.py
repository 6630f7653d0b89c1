"""The transformers of benchmark_toolkits.sh: the same subwords and sizes for every toolkit."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

SCRIPT = Path(__file__).parents[2] / "recipes" / "benchmark_toolkits.sh"
# nmtflex: hands out a prepared folder, and writes what a training writes.
PROGRAM = """#!/bin/sh
printf '%s\\037' "$@" >> "$LOG"
printf '\\036' >> "$LOG"
case $1 in
  --version) echo nmtflex 1.2.3 ;;
  preprocess) cp -r "$PREPARED" "$3" ;;
  train) mkdir -p "$4/checkpoints/update-060"
    cp "$WEIGHTS" "$4/checkpoints/update-060/weights.safetensors"
    echo update,seconds,target_tokens,split > "$4/metrics.csv"
    echo 0,1,0,valid >> "$4/metrics.csv"
    echo 60,11,30000,train >> "$4/metrics.csv" ;;
esac
"""
# A Python that has a toolkit writes its arguments down.
OTHER = """#!/bin/sh
printf '%s\\037' "$@" >> "$LOG"
printf '\\036' >> "$LOG"
case "$*" in
  *importlib*) echo 4.5 ;;
  *parameters.py*) echo 10982656 ;;
  *fairseq_cli.train*) echo '| train_inner | {"wps": "1000", "wpb": "480", "num_updates": "60"}' ;;
  *pymarian.main*) mkdir -p "$(dirname "$7")" && cp "$ARRAYS" "$7"
    echo 'Up. 60 : Time 20.0s : 1500.00 words/s' ;;
esac
"""
LINES = {"de": ["ab abc", "c ab", "abc"], "en": ["x xy", "y", "xy x"]}


@pytest.fixture
def prepared(tmp_path, command_line):
    """A prepared folder with a joint vocabulary."""
    for split in ("train", "dev"):
        for language, lines in LINES.items():
            (tmp_path / f"{split}.{language}").write_text("".join(f"{one}\n" for one in lines))
    out = tmp_path / "prepared"
    named = ("--train", tmp_path / "train", "--valid", tmp_path / "dev", "--out", out)
    languages = ("--source-lang", "de", "--target-lang", "en")
    result = command_line("preprocess", *named, *languages, "--bpe", 3, "--joint")
    assert result.code == 0, result.err
    return out


@pytest.fixture
def weights(tmp_path):
    """Weights as nmtflex and as Marian save them."""
    files = SimpleNamespace(nmtflex=tmp_path / "w.safetensors", marian=tmp_path / "w.npz")
    save_file({"a": torch.zeros(3, 4), "b": torch.zeros(5)}, files.nmtflex)
    arrays = {"a": np.zeros((3, 4)), "b": np.zeros((1, 6)), "special:model.yml": np.zeros(99)}
    np.savez(files.marian, **arrays)
    return files


def test_subwords_and_vocabularies(script, prepared, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["prepared_text.py", str(prepared), str(tmp_path / "text")])
    script("prepared_text").main()
    text = tmp_path / "text"
    for language, lines in LINES.items():
        for split in ("train", "valid"):
            written = (text / f"{split}.{language}").read_text()
            assert written.replace("@@ ", "").splitlines() == lines
    known = [line.rsplit(" ", 1) for line in (text / "dict.txt").read_text().splitlines()]
    words = [word for word, _ in known]
    written = [(text / f"train.{language}").read_text().split() for language in LINES]
    counts = {word: written[0].count(word) + written[1].count(word) for word in words}
    assert {word: int(count) for word, count in known} == counts
    assert all(counts.values())
    marian = [line.rsplit(": ", 1) for line in (text / "vocabulary.yml").read_text().splitlines()]
    assert [json.loads(word) for word, _ in marian] == ["</s>", "<unk>", *words]
    assert [int(number) for _, number in marian] == list(range(len(words) + 2))


def test_parameters_are_counted_once(script, weights, tmp_path):
    module = script("parameters")
    assert sum(module.of_nmtflex(weights.nmtflex)) == 3 * 4 + 5
    assert sum(module.of_marian(weights.marian)) == 3 * 4 + 6
    shared, other = torch.zeros(3, 4), torch.zeros(5)
    model = {
        "encoder.embed_tokens.weight": shared,
        "decoder.output_projection.weight": shared,
        "encoder.layers.0.fc1.weight": other,
        "encoder.layers.0.fc1_weight": torch.zeros(7),  # a copy for inference
        "encoder.embed_positions._float_tensor": torch.zeros(1),
        "encoder.version": torch.zeros(1),
    }
    torch.save({"model": model}, tmp_path / "last.pt")
    assert sum(module.of_fairseq(tmp_path / "last.pt")) == 3 * 4 + 5


def test_the_same_sizes_for_all(bash, prepared, weights, tmp_path, command_line):
    data = tmp_path / "data"
    data.mkdir()
    for split in ("train", "val", "test2016"):
        for language in LINES:
            (data / f"{split}.{language}").touch()
    for name, text in (("nmtflex", PROGRAM), ("other", OTHER)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    log, other = tmp_path / "log", tmp_path / "other"
    done = bash(
        SCRIPT,
        SIZE="tiny",
        DATA=data,
        NMTFLEX=tmp_path / "nmtflex",
        BEAMS="",
        MARIAN=other,
        FAIRSEQ=other,
        UPDATES=20,
        ROUNDS=1,
        LOG=log,
        PREPARED=prepared,
        WEIGHTS=weights.nmtflex,
        ARRAYS=weights.marian,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[4:] == [
        "| nmtflex | 1.2.3 | 17 | 500 | 3,000 | 3,000 | 1.00 |",
        "| nmtflex-bfloat16 | 1.2.3 | 17 | 500 | 3,000 | 3,000 | 1.00 |",
        "| nmtflex-transformer | 1.2.3 | 17 | 500 | 3,000 | 3,000 | 1.00 |",
        "| marian | 4.5 | 18 | 500 | 1,500 | 1,500 | 2.00 |",
        "| fairseq | 4.5 | 10,982,656 | 480 | 1,000 | 1,000 | 3.00 |",
    ]
    commands = [line.split("\x1f")[:-1] for line in log.read_text().split("\x1e")[:-1]]
    ours = [one for one in commands if one[0] == "train"]
    marian = next(one for one in commands if "--enc-depth" in one)
    fairseq = next(one for one in commands if "--arch" in one)

    def sizes(command, *flags):
        return [command[command.index(f"--{flag}") + 1] for flag in flags]

    names = ("layers", "size", "ffn", "heads")
    encoder, decoder = ([f"{side}-{name}" for name in names] for side in ("encoder", "decoder"))
    assert [sizes(one, *encoder, *decoder) for one in ours] == [
        ["6", "256", "1536", "8", "2", "256", "1536", "8"]
    ] * 3
    kinds = [sizes(one, "decoder", "dtype") for one in ours]
    assert kinds == [["ssru", "float32"], ["ssru", "bfloat16"], ["transformer", "float32"]]
    names = ("layers", "embed-dim", "ffn-embed-dim", "attention-heads")
    encoder, decoder = ([f"{side}-{name}" for name in names] for side in ("encoder", "decoder"))
    assert sizes(fairseq, *encoder, *decoder) == ["6", "256", "1536", "8", "2", "256", "1536", "8"]
    flags = ("enc-depth", "dec-depth", "dim-emb", "transformer-dim-ffn", "transformer-heads")
    assert sizes(marian, *flags) == ["6", "2", "256", "1536", "8"]
    shared = ("dropout", "label-smoothing", "lr")
    assert sizes(ours[0], *shared) == sizes(fairseq, *shared) == ["0.1", "0.1", "3e-4"]
    named = ("transformer-dropout", "label-smoothing", "learn-rate")
    assert sizes(marian, *named) == ["0.1", "0.1", "3e-4"]
    for command in ours:  # the folder's vocabularies are too small for nothing else
        command[1:2] = [str(tmp_path / "missing")]
        assert command_line(*command).code == 1
