"""From raw text to scored translations through the commands, for every kind of model."""

from __future__ import annotations

import io
import json
import math
import subprocess
import sys

import pytest

import nmtflex
from nmtflex.config import AttentionConfig

pytestmark = pytest.mark.integration

SMALL = [
    "--embedding-size",
    "8",
    "--encoder-size",
    "4",
    "--decoder-size",
    "8",
    "--threads",
    "1",
    "--device",
    "cpu",
]
ODD_LINES = ["a b c", "", "   ", "zzz <unk> </s>", "a " * 300, "c\u3000b", "f e d"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    for split, count in {"train": 40, "valid": 6, "test": 6}.items():
        lines = [" ".join("abcdef"[(i + k) % 6] for k in range(1 + i % 5)) for i in range(count)]
        (folder / f"{split}.lo").write_text("".join(f"{line}\n" for line in lines))
        (folder / f"{split}.up").write_text("".join(f"{line.upper()}\n" for line in lines))
    return folder


@pytest.fixture
def prepared(corpus, command_line):
    out = corpus / "prepared"
    if not out.exists():
        splits = [x for split in ("train", "valid", "test") for x in (f"--{split}", corpus / split)]
        outcome = command_line(
            "preprocess", *splits, "--source-lang", "lo", "--target-lang", "up", "--out", out
        )
        assert outcome.code == 0, outcome.err
    return out


def feed(monkeypatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", list(AttentionConfig.variants()))
@pytest.mark.parametrize("decoder", ["bahdanau", "luong"])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_every_mechanism_goes_the_whole_way(
    prepared, command_line, monkeypatch, tmp_path, kind, decoder, cell
):
    run = tmp_path / "run"
    model = ["--attention", kind, "--decoder", decoder, "--cell", cell]
    assert command_line("train", prepared, "--run", run, *model, *SMALL, "--updates", 2).code == 0

    feed(monkeypatch, "".join(f"{line}\n" for line in ODD_LINES))
    outcome = command_line("translate", run, "--device", "cpu", "--max-length", 9)
    assert outcome.code == 0, outcome.err
    translations = outcome.out.split("\n")
    assert translations.pop() == ""
    assert len(translations) == len(ODD_LINES)
    assert translations[1] == translations[2] == ""
    assert nmtflex.load(run, device="cpu", max_length=9).translate(ODD_LINES) == translations

    outcome = command_line("eval", run, "--split", "test", "--json", "--device", "cpu")
    assert outcome.code == 0, outcome.err
    scores = json.loads(outcome.out)
    assert scores["sentences"] == 6
    assert 0 <= scores["bleu"] <= 100
    assert 0 <= scores["chrf"] <= 100
    assert "tok:none" in scores["signature"]


def test_n_best_scores_are_those_of_forced_decoding(
    prepared, command_line, monkeypatch, tmp_path, corpus
):
    run = tmp_path / "run"
    command_line("train", prepared, "--run", run, *SMALL, "--updates", 2)
    sources = (corpus / "test.lo").read_text().splitlines()
    feed(monkeypatch, "".join(f"{line}\n" for line in sources))
    options = ["--dtype", "float64", "--device", "cpu"]
    outcome = command_line(
        "translate", run, "--format", "json", "--n-best", 3, "--max-length", 5, *options
    )
    found = [json.loads(line) for line in outcome.out.splitlines()]
    pairs = [
        (source, best["text"], best["log_probability"])
        for source, line in zip(sources, found, strict=True)
        for best in line["translations"]
    ]
    assert len(pairs) == 18
    for name, column in (("s", 0), ("t", 1)):
        (tmp_path / name).write_text("".join(f"{pair[column]}\n" for pair in pairs))
    outcome = command_line(
        "score", run, "--source", tmp_path / "s", "--target", tmp_path / "t", *options
    )
    forced = [float(line) for line in outcome.out.splitlines()]
    for (_, text, log_probability), value in zip(pairs, forced, strict=True):
        if "<unk>" not in text:  # its text stands for many words, or for none
            assert math.isclose(value, log_probability, rel_tol=1e-9), text


@pytest.mark.slow
def test_a_pipe_that_closes_early_is_no_error(prepared, command_line, tmp_path):
    run = tmp_path / "run"
    command_line("train", prepared, "--run", run, *SMALL, "--updates", 2)
    command = f"yes 'a b c' | head -n 20000 | {sys.executable} -m nmtflex translate {run} "
    command += "--buffer 64 --max-length 5 --threads 1 | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout.count("\n") == 1
    assert "Traceback" not in done.stderr
