"""A vocabulary beyond two bytes and very long sentences: prepare, train, resume, translate."""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys

import pytest

TINY = ["--embedding-size", "4", "--encoder-size", "4", "--decoder-size", "4"]
BATCHES = ["--batch-sentences", "1", "--threads", "1", "--device", "cpu"]


def run(*arguments, text=None):
    done = subprocess.run(
        [sys.executable, "-m", "nmtflex", *map(str, arguments)],
        input=text,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize(
    ("words", "length", "gigabytes"),
    [
        pytest.param(66_000, 600, 1.5, marks=pytest.mark.integration),
        pytest.param(200_000, 10_000, 4, marks=pytest.mark.slow),
    ],
)
def test_many_words_in_long_sentences(tmp_path, words, length, gigabytes):
    draw = random.Random(1)
    for language in "ab":
        vocabulary = [f"{language}{number}" for number in range(words)]
        draw.shuffle(vocabulary)
        lines = [vocabulary[first : first + length] for first in range(0, words, length)]
        (tmp_path / f"train.{language}").write_text("".join(" ".join(x) + "\n" for x in lines))
    prepared, folder = tmp_path / "prepared", tmp_path / "run"
    run("preprocess", "--source-lang", "a", "--target-lang", "b", "--train", tmp_path / "train",
        "--max-length", length, "--out", prepared)  # fmt: skip
    train = json.loads((prepared / "manifest.json").read_text())["splits"]["train"]
    assert (train["read"], train["kept"]) == (words // length, words // length)
    expected = {"dtype": "<u4", "tokens": words, "longest": length, "unknown": 0}
    assert train["source"] == train["target"] == expected
    for updates in (1, 2):
        told = run("train", prepared, "--run", folder, *TINY, *BATCHES, "--updates", updates).stderr
        assert ("resuming" in told) == (updates == 2)
        assert f"is done: {updates} updates" in told
    line = " ".join(f"a{draw.randrange(words)}" for _ in range(length))
    out = run("translate", folder, "--beam", 2, "--max-length", 5, "--threads", 1, text=line + "\n")
    assert out.stdout.count("\n") == 1
    assert set(out.stdout.split()) <= {f"b{number}" for number in range(words)} | {"<unk>"}
    # Logits of all tokens at once would be words x length floats.
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    assert most < gigabytes
