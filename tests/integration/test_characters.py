"""Translation by characters, hundreds of positions a sentence, with the defaults for its limits."""

from __future__ import annotations

import io
import json

import pytest

pytestmark = pytest.mark.integration

CHARACTERS = ["--source-tokenizer", "char", "--target-tokenizer", "char"]
SMALL = ["--embedding-size", "8", "--encoder-size", "4", "--decoder-size", "8"]
PLACE = ["--device", "cpu", "--threads", "1"]


@pytest.fixture
def toy(command_line, tmp_path):
    """Make a toy corpus with two long pairs: of 400 characters, and of 1,200."""
    sizes = ["--train", 60, "--valid", 4, "--test", 4]
    assert command_line("generate", "toy", "--out", tmp_path / "toy", *sizes).code == 0
    for language in ("en", "ja"):
        with (tmp_path / f"toy/train.{language}").open("a", encoding="utf-8") as file:
            file.write(f"{'ab ' * 133}c\n{'ab ' * 400}\n")
    return tmp_path / "toy"


def test_characters_go_the_whole_way(toy, command_line, monkeypatch, tmp_path):
    splits = [x for name in ("train", "valid", "test") for x in (f"--{name}", toy / name)]
    languages = ["--source-lang", "en", "--target-lang", "ja"]
    prepared, run = tmp_path / "prepared", tmp_path / "run"
    outcome = command_line("preprocess", *splits, *languages, *CHARACTERS, "--out", prepared)
    assert outcome.code == 0, outcome.err
    assert "62 pairs read, 61 kept, 1 dropped (0 with an empty side, 1 longer than 500 tokens)" in (
        outcome.err
    )
    manifest = json.loads((prepared / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["splits"]["train"]["source"]["longest"] == 400

    outcome = command_line("train", prepared, "--run", run, *SMALL, *PLACE, "--updates", 2)
    assert outcome.code == 0, outcome.err
    lines = ["the dog", "", "x " * 300, "日本 ▁"]
    text = "".join(f"{line}\n" for line in lines).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    outcome = command_line("translate", run, *PLACE, "--beam", 1)
    assert outcome.code == 0, outcome.err
    translations = outcome.out.split("\n")[:-1]
    assert len(translations) == len(lines)
    assert translations[1] == ""
