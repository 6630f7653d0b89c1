"""The recipe of comparisons: its files are valid, and it prepares what they need."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "recipes"
FILES = sorted((FOLDER / "compare").glob("*.toml"))
CORPORA = {
    "copy": [],
    "enja": ["train", "dev", "test"],
    "kftt": ["train", "dev", "test"],
    "iwslt14": ["train", "valid", "test"],
}
PROGRAM = """#!/bin/sh
echo "$@" >> "$LOG"
case $1 in
  --version) echo nmtflex 1.2.3 ;;
  generate) mkdir -p "$6" && touch "$6/train" "$6/valid" "$6/test" ;;
  preprocess) mkdir -p "$3" ;;
esac
"""


def test_each_corpus_has_a_file_for_each_decoder():
    assert {path.stem for path in FILES} == {"enja-backbones"} | {
        f"{corpus}-{decoder}" for corpus in CORPORA for decoder in ("ssru", "luong")
    }


@pytest.mark.sampled(2)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_program_takes_every_file(path, command_line):
    for flags in ((), ("--updates", 20)):
        outcome = command_line("compare", path, "--dry-run", *flags)
        assert (outcome.code, outcome.err) == (0, "")
        commands = [shlex.split(line)[1:] for line in outcome.out.splitlines()[:-1]]
        trainings = [words for words in commands if words[0] == "train"]
        decoders = [words[words.index("--decoder") + 1] for words in trainings]
        models = path.stem.split("-")[1]
        if models == "backbones":
            assert set(decoders) == {"luong", "ssru", "transformer"}
        else:
            assert set(decoders) == {models}


@pytest.fixture
def log_of(tmp_path, bash):
    """Run the recipe with a program that does nothing; return its commands but --version."""

    def run(**settings: object) -> list[str]:
        program, log = tmp_path / "program", tmp_path / "log"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        for split in CORPORA.get(str(settings.get("CORPUS")), []):
            for language in ("en", "ja", "de"):
                (tmp_path / f"{split}.{language}").touch()
        own = {"DATA": tmp_path, "NMTFLEX": program, "LOG": log}
        done = bash(FOLDER / "compare.sh", **own | settings)
        assert done.returncode == 0, done.stderr
        return [line for line in log.read_text().splitlines() if line != "--version"]

    return run


@pytest.mark.parametrize("corpus", CORPORA)
def test_a_corpus_is_prepared_and_compared(corpus, log_of, tmp_path):
    out = tmp_path / "out"
    *_, prepared, compared = log_of(CORPUS=corpus, MODELS="luong")
    assert prepared.startswith(f"preprocess --out {out}/compare-{corpus}.prepared --train ")
    assert compared == (
        f"compare {FOLDER}/compare/{corpus}-luong.toml --data {out}/compare-{corpus}.prepared "
        f"--out {out}/compare-{corpus}-luong"
    )


def test_the_layers_of_kftt_begin_with_guided_attention(log_of, tmp_path, bash):
    align, out = tmp_path / "align", tmp_path / "out"
    align.write_text('#!/bin/sh\ntouch "$8"\n')  # -s FILE -t FILE -m 3 -f LINKS
    align.chmod(0o755)
    *_, prepared, compared = log_of(CORPUS="kftt", MODELS="ssru", ALIGN=align)
    assert prepared.startswith(f"preprocess --out {out}/compare-kftt-guided.prepared --train ")
    assert f"--guided-alignment {out}/kftt.links" in prepared
    assert f"--data {out}/compare-kftt-guided.prepared" in compared
    done = bash(FOLDER / "compare.sh", CORPUS="kftt", DATA=tmp_path)
    assert done.returncode == 1
    assert (
        done.stderr
        == "compare.sh: CORPUS=kftt MODELS=ssru needs ALIGN=eflomal-align (pip install eflomal)\n"
    )


def test_the_small_size_is_a_trial(log_of):
    *_, prepared, compared = log_of(SCALE="small", CORPUS="enja")
    assert "--max-pairs 10000" in prepared
    assert "enja-ssru.toml" in compared
    assert compared.endswith(" --updates 200")
    *_, compared = log_of(SCALE="small", CORPUS="enja", JOBS=2)
    assert compared.endswith(" --updates 200 --jobs 2")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"CORPUS": "wmt"}, "CORPUS is copy, enja, kftt or iwslt14, not wmt"),
        ({"MODELS": "gru"}, "MODELS is ssru, luong or, of the corpus enja, backbones; not gru"),
        ({"MODELS": "backbones"}, "MODELS is ssru, luong or, of the corpus enja, backbones; not"),
        ({"CORPUS": "enja"}, "set DATA to the folder of the corpus"),
    ],
)
def test_another_corpus_or_decoder_is_refused(bash, settings, message):
    done = bash(FOLDER / "compare.sh", **settings)
    assert done.returncode == 1
    assert done.stderr.startswith(f"compare.sh: {message}")
