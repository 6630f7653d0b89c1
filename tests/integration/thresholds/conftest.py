"""Tiny runs of every mechanism, and what is asked of them."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path

import pytest
from capitals import MODEL, PLACE, call


@pytest.fixture(scope="session")
def corpus(tmp_path_factory) -> Path:
    """Letters to capitals; most target words of the training are seen once, and so unknown."""
    folder = tmp_path_factory.mktemp("thresholds")
    draw = random.Random(3)
    for split, count in {"train": 60, "valid": 8, "test": 10}.items():
        lines = [draw.choices("abcdef", k=draw.randint(1, 9)) for _ in range(count)]
        texts = {"lo": lines, "up": [[word.upper() for word in line] for line in lines]}
        if split == "train":
            texts["up"] = [
                [f"rare{draw.random()}" if draw.random() < 0.7 else word for word in line]
                for line in texts["up"]
            ]
        for language, words in texts.items():
            text = "".join(" ".join(line) + "\n" for line in words)
            (folder / f"{split}.{language}").write_text(text)
    splits = [
        item for split in ("train", "valid", "test") for item in (f"--{split}", folder / split)
    ]
    languages = ["--source-lang", "lo", "--target-lang", "up"]
    call("preprocess", *splits, *languages, "--min-frequency", 2, "--out", folder / "prepared")
    return folder


@pytest.fixture(scope="session")
def run_of(corpus):
    """Return a tiny run of a mechanism, trained once."""

    def make(kind: str) -> Path:
        run = corpus / f"run-{kind}"
        if not run.exists():
            options = ["--attention", kind, "--updates", 12, "--batch-sentences", 16]
            if kind in ("memory", "abc"):
                options += ["--K", 3]
            call("train", corpus / "prepared", "--run", run, *MODEL, *options, *PLACE)
        return run

    return make


@pytest.fixture
def flexible(run_of) -> Path:
    return run_of("flexible")


@pytest.fixture
def feed(monkeypatch):
    def put(lines: list[str]) -> None:
        data = "".join(f"{line}\n" for line in lines).encode()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))

    return put


@pytest.fixture
def translate(command_line, feed):
    """Return the lines that a run makes of lines, and what was said beside."""

    def run(folder, lines, *options):
        feed(lines)
        outcome = command_line("translate", folder, "--max-length", 12, *PLACE, *options)
        assert outcome.code == 0, outcome.err
        found = outcome.out.split("\n")
        assert found.pop() == ""
        assert len(found) == len(lines)
        return found, outcome.err

    return run


@pytest.fixture
def evaluate(command_line):
    def run(folder, *options):
        outcome = command_line("eval", folder, "--json", "--beam", 2, *PLACE, *options)
        assert outcome.code == 0, outcome.err
        return json.loads(outcome.out)

    return run
