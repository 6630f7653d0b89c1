"""The command line as a whole: its options, its help, and that asking for help is quick."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import nmtflex
from nmtflex.cli import app as nmtflex_app
from nmtflex.cli.help import unwrap

OPTIONS = Path(__file__).with_name("options.txt")
UPDATE = "NMTFLEX_UPDATE_OPTIONS"  # set it to write options.txt anew after a deliberate change
HEAVY = (
    "torch",
    "numpy",
    "sacrebleu",
    "sacremoses",
    "tensorboard",
    "safetensors",
    "subword_nmt",
    "matplotlib",
)


def commands():
    """Return every command of the real application by name: "train", "generate toy"."""
    found = {}
    for name, command in nmtflex_app.command().commands.items():
        inner = getattr(command, "commands", None)
        found |= {f"{name} {key}": value for key, value in inner.items()} if inner else {}
        found |= {} if inner else {name: command}
    return dict(sorted(found.items()))


def line_of(name, parameter):
    """Describe a parameter: its spellings, and "required" or the default if there is one."""
    spellings = " / ".join([*parameter.opts, *parameter.secondary_opts])
    if parameter.param_type_name == "argument":
        spellings = parameter.metavar or parameter.name
    if parameter.required:
        return f"{name} {spellings} required"
    return f"{name} {spellings}" + (
        "" if parameter.default in (None, []) else f" = {parameter.default}"
    )


def test_option_list_is_the_recorded_one():
    found = [
        line_of(name, parameter)
        for name, command in commands().items()
        for parameter in command.params
    ]
    if os.environ.get(UPDATE):
        OPTIONS.write_text("".join(f"{line}\n" for line in found), encoding="utf-8")
    recorded = OPTIONS.read_text(encoding="utf-8").splitlines()
    assert found == recorded, f"if that is meant, run this test with {UPDATE}=1 and commit the file"


def test_every_command_and_option_has_a_help_text():
    silent = [
        f"{name} {parameter.name}"
        for name, command in commands().items()
        for parameter in command.params
        if not parameter.help
    ]
    silent += [name for name, command in commands().items() if not command.help]
    assert silent == []


def test_fixed_spellings():
    lines = OPTIONS.read_text(encoding="utf-8").splitlines()
    known = {(line.split()[0], word) for line in lines for word in line.split()[1:]}
    for command, flags in {
        "preprocess": "--source-lang --target-lang --train --valid --test --source-tokenizer "
        "--target-tokenizer --bpe --out --like --workers",
        "train": "--run --attention --decoder --embedding-size --encoder-size --decoder-size "
        "--attention-size --encoder-layers --decoder-layers --dropout --batch-tokens "
        "--batch-sentences --lr --clip --epochs --updates --validate-every --seed --device "
        "--dtype --threads --config",
        "translate": "--beam --length-penalty --max-length --n-best",
        "decode": "--beam",
        "eval": "--split --beam --hypothesis --reference --json",
    }.items():
        assert [flag for flag in flags.split() if (command, flag) not in known] == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("train", ["--attention", "[default: global]", "[default: 0.001]", "Attention: global"]),
        ("report", ["[default: 1000]", "50 kB", "5 MB"]),
        ("average", ["[default: 5]", "--keep"]),
        ("eval", ["--beam", "[default: 5]", "(default 13a)"]),
        ("preprocess", ["--bpe", "[default: 0]", "--source-lang", "[required]"]),
    ],
)
def test_help_mentions_defaults_and_what_they_cost(command_line, name, words):
    text = " ".join(command_line(name, "--help").out.replace("│", " ").split())
    assert [word for word in words if word not in text] == []


@pytest.mark.parametrize("width", [40, 80, 200])
def test_help_cuts_no_option_name(command_line, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    for name, command in commands().items():
        words = command_line(*name.split(), "--help").out.replace(",", " ").split()
        flags = [flag for item in command.params for flag in (*item.opts, *item.secondary_opts)]
        assert [flag for flag in flags if flag[0] == "-" and flag not in words] == [], name


def test_paragraphs_of_the_help_have_no_line_ends_of_their_own(command_line, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    lines = [line.strip() for line in command_line("train", "--help").out.splitlines()]
    paragraph = next(line for line in lines if line.startswith("Several processes can "))
    assert "torchrun -m nmtflex -- train ... on several. --batch-tokens" in paragraph
    assert paragraph.endswith("keeps its batches.")


def test_unwrapping():
    text = (
        "One\nline.\n\nList:\n- a\n- b\n1. c\n\n--flags\nflow::\n\n    code\n    more\nText\nend."
    )
    flowing = (
        "One line.\n\nList:\n- a\n- b\n1. c\n\n--flags flow::\n\n    code\n    more\nText end."
    )
    assert unwrap(text) == flowing


def test_version(command_line):
    assert command_line("--version") == (0, f"nmtflex {nmtflex.__version__}\n", "")


def test_group_without_command_prints_its_help(command_line):
    outcome = command_line("generate")
    assert (outcome.code, outcome.err) == (0, "")
    assert "toy" in outcome.out


def test_unknown_command_names_the_nearest(command_line):
    outcome = command_line("trian", "prepared")
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert "'trian'" in outcome.err
    assert "'train'" in outcome.err


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["train", "--help"],
        ["eval", "--help"],
        ["plot", "--help"],
        ["x"],
        ["translate", "no-such-run"],
    ],
)
def test_help_and_mistakes_load_no_heavy_library(arguments):
    program = (
        "import sys\n"
        "from nmtflex.cli.app import main\n"
        "main(sys.argv[2:])\n"
        "loaded = [name for name in sys.argv[1].split(',') if name in sys.modules]\n"
        "sys.exit(f'loaded {loaded}' if loaded else 0)\n"
    )
    command = [sys.executable, "-c", program, ",".join(HEAVY), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_full_disk_under_the_output():
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(
            [sys.executable, "-m", "nmtflex", "--version"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert result.returncode == 1
    assert result.stderr == (
        "nmtflex: error: No space left on device; free some space and run the same command again\n"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="pipes close otherwise there")
def test_reader_that_went_away():
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        result = subprocess.run(
            [sys.executable, "-m", "nmtflex", "--help"],
            stdout=pipe,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (result.returncode, result.stderr) == (1, "")


@pytest.mark.parametrize(
    ("error", "line"),
    [(MemoryError(), "not enough memory"), (MemoryError("8 TB"), "not enough memory: 8 TB")],
)
def test_memory_that_is_not_there(command_line, monkeypatch, error, line):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(nmtflex_app, "command", fail)
    assert command_line("train") == (1, "", f"nmtflex: error: {line}\n")
