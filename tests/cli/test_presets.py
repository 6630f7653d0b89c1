"""Presets are option files of the package: flag over file over preset over the run."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from toy_command import complaint

import nmtflex

NAMES = ("base", "small", "tiny", "yardstick")


@pytest.fixture
def options_of(command_line):
    """Return what --print-config prints, and what is noted beside it."""

    def read(*arguments: object, command: str = "train") -> tuple[dict, str]:
        outcome = command_line(command, *arguments, "--print-config")
        assert outcome.code == 0, outcome.err
        return tomllib.loads(outcome.out), outcome.err

    return read


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_the_presets_are_files_of_the_package():
    folder = Path(nmtflex.__file__).parent / "presets"
    assert sorted(path.name for path in folder.iterdir()) == [f"{name}.toml" for name in NAMES]


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_is_an_option_file(options_of, name):
    path = Path(nmtflex.__file__).parent / "presets" / f"{name}.toml"
    assert options_of("--preset", name) == options_of("--config", path)
    assert options_of("--preset", name)[1] == ""


def test_the_yardstick(options_of):
    found, _ = options_of("--preset", "yardstick")
    sizes = (found["embedding-size"], found["encoder"]["encoder-size"])
    assert (*sizes, found["decoder"]["decoder-size"]) == (128, 128, 256)
    assert (found["encoder"]["kind"], found["encoder"]["cell"]) == ("recurrent", "lstm")
    assert found["attention"] == {"kind": "global", "score": "additive"}
    assert (found["dropout"], found["lr"], found["clip"]) == (0.2, 1e-3, 3)
    assert (found["batch-sentences"], found["epochs"]) == (64, 6)
    assert found["optimizer"]["kind"] == "adam"


@pytest.mark.parametrize(
    ("name", "size", "ffn", "layers", "heads", "schedule"),
    [
        ("tiny", 256, 1536, (6, 2), 8, "inverse-sqrt"),
        ("base", 512, 2048, (6, 2), 8, "inverse-sqrt"),
        ("small", 256, 512, (4, 2), 4, "cosine"),
    ],
)
def test_transformers(options_of, name, size, ffn, layers, heads, schedule):
    found, _ = options_of("--preset", name)
    encoder, decoder = found["encoder"], found["decoder"]
    assert (encoder["kind"], decoder["kind"]) == ("transformer", "ssru")
    assert {found["embedding-size"], encoder["encoder-size"], decoder["decoder-size"]} == {size}
    assert {encoder["encoder-ffn"], decoder["decoder-ffn"]} == {ffn}
    assert {encoder["encoder-heads"], decoder["decoder-heads"]} == {heads}
    assert (encoder["encoder-layers"], decoder["decoder-layers"]) == layers
    assert (found["tie-embeddings"], found["label-smoothing"]) == ("all", 0.1)
    assert (found["optimizer"]["adam-beta1"], found["optimizer"]["adam-beta2"]) == (0.9, 0.98)
    assert found["schedule"] == schedule
    assert found["attention"] == {"kind": "global", "score": "dot"}


def test_flag_over_file_over_preset(options_of, tmp_path):
    path = write(tmp_path / "mine.toml", "dropout = 0.25\nlr = 0.5\n")
    found, _ = options_of("--lr", "0.75", "--config", path, "--preset", "small")
    assert (found["lr"], found["dropout"], found["clip"]) == (0.75, 0.25, 1)


def test_another_kind_drops_the_options_of_the_presets_kind(options_of, tmp_path):
    path = write(tmp_path / "mine.toml", 'decoder = "luong"\n')
    for given in (["--decoder", "luong"], ["--config", path]):
        found, note = options_of("--preset", "tiny", *given)
        assert (found["decoder"]["kind"], found["decoder"]["decoder-size"]) == ("luong", 256)
        assert found["attention"]["score"] == "additive"
        assert note.count("\n") == 1
        for part in ("--decoder luong", "decoder-heads and decoder-ffn", "--preset tiny"):
            assert part in note


def test_a_kind_of_the_file_and_one_of_the_preset_are_reported_apart(options_of, tmp_path):
    path = write(tmp_path / "mine.toml", "pre-norm = true\n[encoder]\nkind = 'transformer'\n")
    flags = ("--encoder", "recurrent", "--decoder", "luong")
    found, err = options_of("--preset", "tiny", "--config", path, *flags)
    assert (found["encoder"]["kind"], found["decoder"]["kind"]) == ("recurrent", "luong")
    assert [line for line in err.splitlines() if "pre-norm" in line and str(path) in line]
    assert [line for line in err.splitlines() if "encoder-ffn" in line and "tiny" in line]


@pytest.mark.parametrize("name", ["base", "small", "tiny"])
def test_layers_have_as_many_units_as_an_embedding(options_of, name):
    found, _ = options_of("--preset", name, "--embedding-size", "128")
    assert (found["encoder"]["encoder-size"], found["decoder"]["decoder-size"]) == (128, 128)


def test_a_size_that_does_not_go_with_the_preset(command_line):
    message = complaint(
        command_line, "train", "d", "--run", "r", "--preset", "tiny", "--encoder-size", "128"
    )
    assert "--embedding-size 128" in message
    _, sets, flags = message.partition("; --preset tiny sets ")
    assert sets
    assert {"--encoder", "--embedding-size"} == set(flags.split(", "))


def test_an_unknown_preset(command_line):
    message = complaint(command_line, "train", "d", "--run", "r", "--preset", "smal")
    assert [part for part in ("--preset", "'smal'", *NAMES) if part not in message] == []
    assert message.endswith("did you mean small?")


def test_finetune_has_no_preset(command_line):
    assert "--preset" in complaint(command_line, "finetune", "b", "--preset", "tiny")


def test_a_preset_overrides_a_run(options_of, golden_run):
    """So that a preset that is not the run's is refused when training resumes."""
    run, _ = options_of(golden_run, "--run", golden_run)
    found, note = options_of(golden_run, "--run", golden_run, "--preset", "small")
    assert (found["seed"], found["dropout"]) == (run["seed"], 0.3)
    assert (run["encoder"]["kind"], found["encoder"]["kind"]) == ("recurrent", "transformer")
    assert note == ""
