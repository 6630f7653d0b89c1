"""Each recipe is a shell script whose command lines the program takes, at both scales."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from nmtflex.cli import app as cli

FOLDER = Path(__file__).parents[2] / "recipes"
SOURCED = {"common.sh", "aspec.sh", "fetch.sh", "toolkits_tiny.sh"}  # no recipes of their own


class Recipe(NamedTuple):
    """The files of a corpus, and how often each command stands in the recipe, full and small."""

    files: list[str]
    full: dict[str, int]
    small: dict[str, int]


def pairs(splits: str, languages: str) -> list[str]:
    return [f"{split}.{language}" for split, language in product(splits.split(), languages.split())]


ASPEC = ["train-1.txt", "train-2.txt", "dev.txt", "test.txt"]
WMT15 = "europarl-v7.de-en commoncrawl.de-en news-commentary-v10.de-en newstest2013 newstest2015"
WMT17 = [
    f"{other}-en/{split}.{language}"
    for other in ("cs", "de", "fi", "tr")
    for split in ("corpus.tc", "newsdev2016.tc", "newstest2015.tc", "newstest2016.tc")
    for language in ("en", other)
]
aspec = {"preprocess": 1, "train": 7, "finetune": 1, "eval": 12, "sweep": 2, "plot": 1}
aspec_char = {"preprocess": 1, "train": 2, "finetune": 1, "eval": 4}
wmt15 = {"preprocess": 1, "train": 3, "finetune": 1, "eval": 10, "tokenize": 6}
wmt17 = {"preprocess": 4, "train": 32, "eval": 32, "bench": 4, "plot": 4}
kftt = {"preprocess": 1, "train": 2, "finetune": 2, "sweep": 6, "eval": 7, "plot": 1}
multi30k = {"preprocess": 1, "train": 2, "eval": 4}
iwslt14 = {"preprocess": 1, "train": 4, "finetune": 1, "eval": 7}
backbones = {"preprocess": 1, "train": 4, "eval": 4, "bench": 2}
modern = {"preprocess": 1, "train": 5, "finetune": 4, "sweep": 1, "eval": 9, "bench": 1}
paragraphs = {"preprocess": 2, "train": 4, "finetune": 3, "translate": 15, "eval": 28, "bench": 2}
RECIPES = {
    "copy_task.sh": Recipe(
        [],
        {"generate": 4, "preprocess": 4, "train": 51, "eval": 51, "plot": 1, "translate": 10},
        {"generate": 2, "preprocess": 2, "train": 6, "eval": 6, "plot": 1},
    ),
    "long_copies.sh": Recipe(
        [],
        {"generate": 4, "preprocess": 2, "train": 4, "sweep": 1, "eval": 4, "bench": 2},
        {"generate": 3, "preprocess": 2, "train": 4, "sweep": 1, "eval": 2, "bench": 1},
    ),
    "aspec_en_ja.sh": Recipe(ASPEC, aspec, aspec),
    "aspec_en_ja_char.sh": Recipe(ASPEC, aspec_char, aspec_char),
    "wmt15_de_en.sh": Recipe(pairs(WMT15, "de en"), wmt15, wmt15),
    "wmt17.sh": Recipe(WMT17, wmt17, {command: number // 4 for command, number in wmt17.items()}),
    "multi30k_de_en.sh": Recipe(pairs("train val test2016", "de en"), multi30k, multi30k),
    "small_parallel_en_ja.sh": Recipe(
        pairs("train dev test", "en ja"),
        {"preprocess": 1, "train": 12, "finetune": 6, "sweep": 9, "eval": 24},
        {"preprocess": 1, "train": 4, "finetune": 2, "sweep": 3, "eval": 8},
    ),
    "kftt_en_ja.sh": Recipe(pairs("train dev test", "en ja"), kftt, kftt),
    "iwslt14_de_en.sh": Recipe(pairs("train valid test", "de en"), iwslt14, iwslt14),
    "backbones.sh": Recipe(pairs("train dev test", "en ja"), backbones, backbones),
    "modern_attention.sh": Recipe(pairs("train valid test", "de en"), modern, modern),
    "paragraphs.sh": Recipe(pairs("train valid test", "de en"), paragraphs, paragraphs),
}
# Takes the place of Python: writes the commands down, and gives what the recipes read.
STAND_IN = """#!/bin/sh
case $1 in
  */step.py)
    shift
    while [ "$1" = --stdout ] || [ "$1" = --stdin ]; do
      [ "$1" = --stdout ] || shift
      shift
    done
    output=$1
    shift
    printf '%s\\037' "$@" >> "$LOG"
    printf '\\036' >> "$LOG"
    [ "$1" != train ] || { mkdir -p "$output/raw" && : > "$output/raw/test.target.txt"; }
    [ "$1" != bench ] || : > "$output" ;;
  */value.py) echo 0.5 ;;
  */table.py) echo "$3"; cat ;;
  */corpus.py)
    case $2 in
      head | join) : > "$5" ;;
      solid) cp "$3" "$4" ;;
    esac ;;
  */trainings.py) shift 2; echo "trained: $*" ;;
  *) exit 0 ;;
esac
"""


@pytest.fixture(scope="module")
def subcommands() -> Any:
    return cli.command().commands


@pytest.fixture
def log_of(tmp_path, bash):
    """Run a recipe over an empty corpus with a program that does nothing; return its commands."""

    def run(name: str, **settings: object) -> tuple[list[list[str]], str]:
        log, stand_in, data = tmp_path / "log", tmp_path / "python", tmp_path / "data"
        stand_in.write_text(STAND_IN)
        stand_in.chmod(0o755)
        for file in [*(RECIPES[name].files if name in RECIPES else []), "model.bin"]:
            (data / file).parent.mkdir(parents=True, exist_ok=True)
            (data / file).touch()
        # Of the run that paragraphs.sh begins with.
        first = tmp_path / "out" / "modern-iwslt14-first-1"
        first.mkdir(parents=True)
        model = {"encoder": {"kind": "transformer"}}
        config = {"format": 2, "model": model, "train": {}, "device": {}}
        first.joinpath("config.json").write_text(json.dumps(config))
        own = {"DATA": data, "KYTEA_MODEL": data / "model.bin", "PYTHON": stand_in, "LOG": log}
        done = bash(FOLDER / name, **own, **settings)
        assert done.returncode == 0, done.stderr
        text = log.read_text()
        return [line.split("\x1f")[:-1] for line in text.split("\x1e")[:-1]], done.stdout

    return run


def test_every_recipe_is_listed_and_tested():
    table = (FOLDER / "README.md").read_text()
    others = {
        "demo.sh",
        "gpu.sh",
        "benchmark_preprocess.sh",
        "benchmark_sizes.sh",
        "benchmark_toolkits.sh",
        "compare.sh",
        "multi30k_fairseq.sh",
    }
    found = {path.name for path in FOLDER.glob("*.sh")}
    assert found == RECIPES.keys() | SOURCED | others
    for name in found:
        subprocess.run(["bash", "-n", FOLDER / name], check=True)
        assert name in SOURCED or f"`{name}`" in table


@pytest.fixture
def check(subcommands, command_line):
    """Check that the program takes commands, each combination of options once."""

    def all_are_taken(commands: list[list[str]]) -> None:
        # Runs and files have many names, and options few combinations.
        once = {tuple(one for one in line if "/" not in one): line for line in commands}
        for command, *arguments in once.values():
            if command == "generate":
                group = subcommands["generate"]
                group.commands[arguments[0]].make_context(arguments[0], arguments[1:])
            elif command == "tokenize" or "--synthetic" in arguments:
                subcommands[command].make_context(command, arguments)
            else:  # there is nothing to read, which is exit 1; a mistake in the options is exit 2
                outcome = command_line(command, *arguments)
                assert outcome.code == 1, (command, arguments, outcome.err)

    return all_are_taken


@pytest.mark.parametrize("scale", ["full", "small"])
def test_the_program_takes_the_commands_of_gpu_sh(scale, log_of, check):
    settings = {"DEVICE": "cpu", "PARTS": "training decoding", "BEAMS": "1 5 20"}
    commands, _ = log_of("gpu.sh", SCALE=scale, **settings)
    presets = 2 if scale == "full" else 1
    expected = {"generate": 1, "preprocess": 1, "train": 2 * presets, "bench": 6}
    assert Counter(command for command, *_ in commands) == expected
    check(commands)


@pytest.mark.parametrize("scale", ["full", "small"])
@pytest.mark.parametrize("name", RECIPES)
def test_the_program_takes_every_command(name, scale, log_of, check):
    commands, printed = log_of(name, SCALE=scale)
    expected = getattr(RECIPES[name], scale)
    assert Counter(command for command, *_ in commands) == expected
    assert f"({scale}: " in printed  # the table says its sizes
    assert "trained: \n" not in printed  # a table without rows
    runs = [line.split()[1:] for line in printed.splitlines() if line.startswith("trained:")]
    assert sum(map(len, runs)) == expected.get("train", 0) + expected.get("finetune", 0)
    check(commands)


PAPERS = {
    "copy_task.sh": "--encoder-layers 2 --decoder-layers 2 --embedding-size 256 --encoder-size 256 "
    "--decoder-size 256 --dropout 0.2 --lr 1e-4 --batch-sentences 128 --updates 200000",
    "aspec_en_ja.sh": "--decoder bahdanau --score additive --embedding-size 1000 --encoder-size "
    "1000 --decoder-size 1000 --bottleneck 600 --dropout 0 --batch-sentences 32 --lr 1e-4 "
    "--halve-from 4 --epochs 6 --clip 3",
    "aspec_en_ja_char.sh": "--decoder-size 1000 --bottleneck 600 --batch-sentences 64 --lr 1e-4 "
    "--halve-from 4 --epochs 6 --clip 3",
    "wmt15_de_en.sh": "--decoder-size 1000 --batch-sentences 64 --lr 1e-4 --halve-from 4",
    "wmt17.sh": "--embedding-size 512 --encoder-size 512 --decoder-size 512 --encoder-layers 2 "
    "--dropout 0.2 --lr 1e-4 --batch-sentences 128 --updates 1000000 --validate-every 30m",
}


@pytest.mark.parametrize("name", PAPERS)
def test_the_full_size_is_the_papers(name, log_of):
    words = PAPERS[name].split()
    settings = set(zip(words[::2], words[1::2], strict=True))
    commands, _ = log_of(name)
    for line in commands:
        assert line[0] != "train" or settings <= set(pairwise(line))


@pytest.mark.parametrize("name", RECIPES)
def test_another_scale_python_or_program_is_refused(name, bash, tmp_path):
    done = bash(FOLDER / name, DATA=tmp_path, SCALE="tiny")
    assert (done.returncode, done.stderr) == (1, f"{name}: SCALE is full or small, not tiny\n")
    done = bash(FOLDER / name, DATA=tmp_path, PYTHON="false")
    assert done.stderr == f"{name}: PYTHON=false is no Python 3.11 or newer; set it to one\n"
    done = bash(FOLDER / name, DATA=tmp_path, NMTFLEX="false")
    assert done.returncode == 1
    assert done.stderr == (
        f"{name}: false does not run; install nmtflex, or set NMTFLEX to the command that runs it\n"
    )


@pytest.mark.parametrize("name", [name for name in RECIPES if RECIPES[name].files])
def test_a_missing_corpus_is_named(name, bash, tmp_path):
    model = tmp_path / "model.bin"
    model.touch()
    done = bash(FOLDER / name, KYTEA_MODEL=model)
    assert done.returncode == 1
    assert done.stderr.startswith(f"{name}: set DATA to the folder of ")
    assert done.stderr.count("\n") == 1
    done = bash(FOLDER / name, KYTEA_MODEL=model, DATA=tmp_path / "nowhere")
    assert done.returncode == 1
    assert done.stderr.startswith(f"{name}: {tmp_path}/nowhere/")
    assert " is missing; set DATA to the folder of " in done.stderr
    assert ("FETCH=yes" in done.stderr) == name.startswith("wmt")
    assert ("https://jipsti.jst.go.jp/aspec/" in done.stderr) == name.startswith("aspec")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["aspec_en_ja.sh", "aspec_en_ja_char.sh"])
def test_aspec_says_where_to_apply_and_what_it_needs(name, bash, tmp_path):
    assert "https://jipsti.jst.go.jp/aspec/" in bash(FOLDER / name).stderr
    done = bash(FOLDER / name, DATA=tmp_path, KYTEA_MODEL="nowhere.bin")
    assert done.stderr.startswith(f"{name}: KYTEA_MODEL=nowhere.bin is no file; set it to a model")
    for file in (name, "aspec.sh"):
        assert "curl" not in (FOLDER / file).read_text()


def test_updates_shorten_every_training(log_of):
    commands, printed = log_of("small_parallel_en_ja.sh", UPDATES=7, SEEDS=4)
    trainings = [line for line in commands if line[0] in ("train", "finetune")]
    assert len(trainings) == 6
    for line in trainings:
        assert line[line.index("--updates") + 1] == "7"
        assert line[line.index("--seed") + 1] == "4"
    assert "seeds 4) [a trial of 7 updates]" in printed


def test_a_recipe_stops_at_a_failed_step(bash, tmp_path):
    program = tmp_path / "program"
    program.write_text(
        '#!/bin/sh\ncase $1 in\n  --version) echo nmtflex 1.2.3 ;;\n  preprocess) mkdir "$3" ;;\n'
        "  train) echo nmtflex: error: no memory >&2; exit 1 ;;\nesac\n"
    )
    program.chmod(0o755)
    for file in RECIPES["iwslt14_de_en.sh"].files:
        (tmp_path / file).touch()
    done = bash(FOLDER / "iwslt14_de_en.sh", DATA=tmp_path, NMTFLEX=program)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "nmtflex: error: no memory"
    assert done.stdout == ""  # no table


@pytest.mark.parametrize("name", ["backbones.sh", "modern_attention.sh"])
def test_an_aligner_guides_attention(name, log_of, tmp_path):
    aligner, program = tmp_path / "align", tmp_path / "tokenizes"
    aligner.write_text('#!/bin/sh\ncat "$2" "$4" > "$8"\n')  # -s FILE -t FILE -m 3 -f LINKS
    program.write_text('#!/bin/sh\n[ "$1" != tokenize ] || echo "$@"\n')
    for file in (aligner, program):
        file.chmod(0o755)
    commands, _ = log_of(name, ALIGN=aligner, NMTFLEX=program)
    [prepared] = [line for line in commands if line[0] == "preprocess"]
    links = Path(prepared[prepared.index("--guided-alignment") + 1])
    assert links.read_text() == 2 * "tokenize --quiet --tokenizer none\n"
    trainings = [line for line in commands if line[0] in ("train", "finetune")]
    count = RECIPES[name].full
    assert len(trainings) == count["train"] + count.get("finetune", 0)
    for line in trainings:
        assert line[line.index("--guided-weight") + 1] == "0.5"


def test_more_mechanisms_begin_with_the_same_weights(log_of):
    commands, _ = log_of("modern_attention.sh", MORE="abc mocha")
    trained = [line for line in commands if line[0] == "train"]
    own = RECIPES["modern_attention.sh"].full["train"]
    assert len(trained) == own + 2
    kinds = [line[line.index("--attention") + 1] for line in trained]
    assert kinds[-2:] == ["abc", "mocha"]
    firsts = {line[line.index("--init-from") + 1] for line in trained[1:]}
    assert len(firsts) == 1


@pytest.mark.parametrize("name", ["backbones.sh", "modern_attention.sh"])
def test_without_an_aligner_nothing_guides(name, log_of):
    for line in log_of(name)[0]:
        assert not any(option.startswith("--guided") for option in line)
