"""A vocabulary beyond two bytes and very long sentences: prepare, train, resume, translate."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys

import pytest

TINY = ["--embedding-size", "4", "--encoder-size", "4", "--decoder-size", "4"]
BATCHES = ["--batch-sentences", "1", "--threads", "1", "--device", "cpu"]


# Starts a command and writes the memory that it took at most, in kB, to a file. A process of its
# own: Linux counts the memory of the process that starts another to that other's.
MEASURE = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[2:])
with open(sys.argv[1], "w") as file:
    file.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(code)
"""


def run(folder, *arguments, text=None):
    """What a command writes, what it says, and its memory at most, in GB."""
    command = [sys.executable, "-m", "nmtflex", *map(str, arguments)]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, folder / "memory", *command],
        input=text,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr, int((folder / "memory").read_text()) / 1e6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "length", "gigabytes"),
    [
        pytest.param(66_000, 600, 1, marks=pytest.mark.integration),
        (200_000, 10_000, 4),
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
    run(tmp_path, "preprocess", "--source-lang", "a", "--target-lang", "b",
        "--train", tmp_path / "train", "--max-length", length, "--out", prepared)  # fmt: skip
    train = json.loads((prepared / "manifest.json").read_text())["splits"]["train"]
    assert (train["read"], train["kept"]) == (words // length, words // length)
    expected = {"dtype": "<u4", "tokens": words, "longest": length, "unknown": 0}
    assert train["source"] == train["target"] == expected
    memory = []
    for updates in (1, 2):
        command = ["train", prepared, "--run", folder, *TINY, *BATCHES, "--updates", updates]
        _, told, most = run(tmp_path, *command)
        assert ("resuming" in told) == (updates == 2)
        assert f"finished after {updates} update{'s' * (updates > 1)}; " in told
        memory.append(most)
    line = " ".join(f"a{draw.randrange(words)}" for _ in range(length))
    options = ["--beam", 2, "--max-length", 5, "--threads", 1]
    out, _, most = run(tmp_path, "translate", folder, *options, text=line + "\n")
    assert out.count("\n") == 1
    assert set(out.split()) <= {f"b{number}" for number in range(words)} | {"<unk>"}
    # Logits of all tokens at once would be words x length floats, 8 GB in the greater case.
    assert max(*memory, most) < gigabytes
