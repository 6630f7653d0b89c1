"""Each recipe is a shell script whose command lines the program takes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import typer

from nmtflex.cli import app as cli

FOLDER = Path(__file__).parents[2] / "recipes"
RECIPES = [FOLDER / "multi30k_de_en.sh", FOLDER / "small_parallel_en_ja.sh"]
SPLITS = ("train", "val", "valid", "dev", "test", "test2016")
LANGUAGES = ("de", "en", "ja")


def test_every_recipe_is_in_the_table():
    table = (FOLDER / "README.md").read_text()
    for recipe in FOLDER.glob("*.sh"):
        assert recipe.name == "common.sh" or f"`{recipe.name}`" in table
        subprocess.run(["bash", "-n", recipe], check=True)


def commands_of(recipe: Path, tmp_path: Path) -> list[list[str]]:
    """Run a recipe over an empty corpus with a program that only writes its arguments down."""
    log, stub = tmp_path / "log", tmp_path / "stub"
    stub.write_text(f'#!/bin/sh\nprintf "%s\\037" "$@" >> {log}\nprintf "\\036" >> {log}\n')
    stub.chmod(0o755)
    for split in SPLITS:
        for language in LANGUAGES:
            (tmp_path / f"{split}.{language}").touch()
    settings = {"DATA": str(tmp_path), "OUT": str(tmp_path / "runs"), "NMTFLEX": str(stub)}
    subprocess.run(["bash", recipe], env=os.environ | settings, check=True, timeout=60)
    return [line.split("\x1f")[:-1] for line in log.read_text().split("\x1e")[:-1]]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)
def test_the_program_takes_every_command(recipe, tmp_path):
    assert cli.main(["--version"]) == 0  # imports the subcommands
    group = typer.main.get_command(cli.app)
    commands = commands_of(recipe, tmp_path)
    assert [command[0] for command in commands] == ["preprocess", "train", "eval"]
    for name, *arguments in commands:
        group.commands[name].make_context(name, arguments)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)
def test_a_missing_corpus_is_named(recipe, tmp_path):
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
