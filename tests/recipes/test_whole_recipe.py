"""One recipe from start to end, small, with the program itself."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

FOLDER = Path(__file__).parents[2] / "recipes"
WORDS = {"de": "der Hund läuft schnell durch den Wald", "en": "the dog runs fast through the wood"}


def write_corpus(folder: Path) -> None:
    for split, count in {"train": 60, "val": 4, "test2016": 4}.items():
        for language, text in WORDS.items():
            words = text.split()
            lines = [" ".join(words[: 2 + i % 5]) + "." for i in range(count)]
            (folder / f"{split}.{language}").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.slow
def test_multi30k_small_and_again(bash, tmp_path):
    write_corpus(tmp_path)
    settings = {"DATA": tmp_path, "SCALE": "small", "UPDATES": 2}
    program = f"{sys.executable} -m nmtflex"
    first = bash(FOLDER / "multi30k_de_en.sh", NMTFLEX=program, **settings)
    assert first.returncode == 0, first.stderr
    assert "Multi30k, test2016, cased and detokenised, 13a (small: " in first.stdout
    assert "| transformer + ssru, beam 5 | " in first.stdout
    for kind in ("recurrent", "transformer"):
        assert f"| multi30k-{kind}-1 | 2 | " in first.stdout
    again = bash(FOLDER / "multi30k_de_en.sh", NMTFLEX=program, **settings)
    assert again.stdout == first.stdout
    runs = ("-recurrent-1", "-transformer-1")
    scores = [f"{run}.beam{beam}.json" for run in runs for beam in (1, 5)]
    out = tmp_path / "out"
    assert again.stderr.splitlines() == [
        f"-- {out}/multi30k{name} is there" for name in (".prepared", *runs, *scores)
    ]
    settings["UPDATES"] = 3
    other = bash(FOLDER / "multi30k_de_en.sh", NMTFLEX=program, **settings)
    assert other.returncode == 1
    assert other.stderr.splitlines()[-1] == (
        f"multi30k_de_en.sh: {out}/multi30k-recurrent-1 was made with other settings: --updates 2, "
        f"now --updates 3; delete it, or set OUT to another folder"
    )
