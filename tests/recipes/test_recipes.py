"""Each recipe is a shell script whose command lines the program takes."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest
import typer

from nmtflex.cli import app as cli

FOLDER = Path(__file__).parents[2] / "recipes"
WITH_DATA = {
    "multi30k_de_en.sh": {"preprocess": 1, "train": 1, "eval": 1},
    "small_parallel_en_ja.sh": {"preprocess": 1, "train": 1, "eval": 1},
    "flexible_en_ja.sh": {"preprocess": 1, "train": 6, "finetune": 6, "sweep": 9, "eval": 18},
    "kftt_en_ja.sh": {"preprocess": 1, "train": 1, "finetune": 2, "sweep": 6, "plot": 1},
}
COMMANDS = WITH_DATA | {
    "copy_task.sh": {"generate": 1, "preprocess": 1, "train": 6, "eval": 6, "translate": 2}
}
SPLITS = ("train", "val", "valid", "dev", "test", "test2016")
LANGUAGES = ("de", "en", "ja")


def test_every_recipe_is_in_the_table():
    table = (FOLDER / "README.md").read_text()
    for recipe in FOLDER.glob("*.sh"):
        assert recipe.name == "common.sh" or f"`{recipe.name}`" in table
        subprocess.run(["bash", "-n", recipe], check=True)


SCORES = '{"bleu": 30.984, "chrf": 37.5}'


def commands_of(recipe: Path, tmp_path: Path) -> list[list[str]]:
    """Run a recipe over an empty corpus with a program that only writes its arguments down."""
    log, stub = tmp_path / "log", tmp_path / "stub"
    stub.write_text(
        f'#!/bin/sh\nprintf "%s\\037" "$@" >> {log}\nprintf "\\036" >> {log}\n'
        f"[ \"$1\" != eval ] || echo '{SCORES}'\n"
        '[ "$1" != generate ] || { mkdir -p "$OUT/copy50" && : > "$OUT/copy50/test.src"; }\n'
    )
    stub.chmod(0o755)
    for split in SPLITS:
        for language in LANGUAGES:
            (tmp_path / f"{split}.{language}").touch()
    settings = {"DATA": str(tmp_path), "OUT": str(tmp_path / "runs"), "NMTFLEX": str(stub)}
    settings["PYTHON"] = "true"  # reads what the program would have written
    subprocess.run(["bash", recipe], env=os.environ | settings, check=True, timeout=60)
    return [line.split("\x1f")[:-1] for line in log.read_text().split("\x1e")[:-1]]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_program_takes_every_command(name, tmp_path):
    assert cli.main(["--version"]) == 0  # imports the subcommands
    group = typer.main.get_command(cli.app)
    commands = commands_of(FOLDER / name, tmp_path)
    assert Counter(command[0] for command in commands) == COMMANDS[name]
    for command, *arguments in commands:
        group.commands[command].make_context(command, arguments)


def printed_by(tmp_path: Path, call: str, output: str) -> str:
    """Return what a function of common.sh prints where the program prints ``output``."""
    stub = tmp_path / "stub"
    stub.write_text(f"#!/bin/sh\necho '{output}'\n")
    stub.chmod(0o755)
    done = subprocess.run(
        ["bash", "-c", f"source {FOLDER / 'common.sh'}; {call}"],
        env=os.environ | {"NMTFLEX": str(stub)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_the_chosen_threshold_is_read_from_the_sweep(tmp_path):
    for tau in ("0.2", '"inf"', "1.3862943611198906"):
        sweep = f'{{"points": [{{"tau": 0.1}}], "chosen": {{"tau": {tau}, "bleu": 3.5}}}}'
        assert printed_by(tmp_path, "chosen_tau run 0.1", sweep) == tau.strip('"') + "\n"
    none = '{"points": [{"tau": 0.1}], "chosen": null}'
    assert printed_by(tmp_path, "chosen_tau run 0.1 --baseline 99", none) == ""


def test_the_validation_bleu_is_read_from_eval(tmp_path):
    assert printed_by(tmp_path, "valid_bleu run", SCORES) == "30.984\n"


@pytest.mark.parametrize("name", WITH_DATA)
def test_a_missing_corpus_is_named(name, tmp_path):
    recipe = FOLDER / name
    done = subprocess.run(
        ["bash", recipe],
        env=os.environ | {"DATA": str(tmp_path), "NMTFLEX": "false"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"{recipe.name}: {tmp_path}/train.")
    assert "is missing; set DATA" in done.stderr
