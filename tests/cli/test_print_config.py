"""What --print-config prints is an option file that means the same."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from toy_command import complaint

from nmtflex.config import AttentionConfig, DecoderConfig, ModelConfig, TrainConfig
from nmtflex.config.toml import toml_of
from nmtflex.errors import OptionError


@pytest.fixture
def printed(command_line):
    def run(command: str, *arguments: object) -> str:
        outcome = command_line(command, *arguments, "--print-config")
        assert (outcome.code, outcome.err) == (0, "")
        return outcome.out

    return run


FLAGS = [
    ("--epochs", "3", "--batch-tokens", "auto", "--validate-every", "30m", "--lr", "3e-10"),
    ("--updates", "7", "--batch-sentences", "9", "--optimizer", "adamw", "--device", "cpu"),
    ("--optimizer", "sgd", "--momentum", "0.5", "--lr", "inf"),
    ("--attention", "memory", "--K", "7", "--no-position-encoding", "--cell", "gru"),
    *(("--attention", kind, "--decoder", "ssru") for kind in AttentionConfig.variants()),
    *(("--encoder", "transformer", "--decoder", kind) for kind in DecoderConfig.variants()),
    *(("--encoder", kind, "--decoder", "transformer", "--pre-norm", "--score", "additive")
      for kind in ("recurrent", "transformer")),
    ("data here", "--run", 'r "1" \\ \x7f ä 𝄞'),
]  # fmt: skip


@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
def test_round_trip(printed, tmp_path, flags):
    path = tmp_path / "options.toml"
    text = printed("train", *flags)
    path.write_text(text, encoding="utf-8")
    assert printed("train", "--config", path) == text


def test_round_trip_of_finetune(printed, tmp_path):
    path = tmp_path / "options.toml"
    text = printed("finetune", "base", "--freeze", "encoder.*", "--freeze", "x", "--tau", "auto")
    path.write_text(text, encoding="utf-8")
    assert printed("finetune", "--config", path) == text
    found = tomllib.loads(text)
    assert (found["base-run"], found["freeze"]) == ("base", ["encoder.*", "x"])
    assert "run" not in found


def test_folders_are_printed_only_if_given(printed):
    assert not {"data", "run"} & set(tomllib.loads(printed("train")))
    found = tomllib.loads(printed("train", "there", "--run", "here"))
    assert (found["data"], found["run"]) == ("there", "here")


def test_the_options_of_a_run(printed, golden_run):
    found = tomllib.loads(printed("train", golden_run, "--run", golden_run, "--epochs", "77"))
    assert (found["epochs"], Path(found["run"])) == (77, golden_run)
    assert found["decoder"]["kind"] == "bahdanau"


def test_wrong_options_are_refused(command_line):
    message = complaint(command_line, "train", "--print-config", "--dropout", "2")
    assert message == "--dropout must be less than 1, not 2.0"


def test_what_toml_lacks():
    """None, and the bytes of a file name that is no text."""
    config = TrainConfig(data=Path("d"), run=Path("r"))
    assert "epochs" not in tomllib.loads(toml_of([config]))
    with pytest.raises(OptionError, match=r"'run' .*'r\\udcff'"):
        toml_of([TrainConfig(data=Path("d"), run=Path("r\udcff"))])


def test_every_option_has_a_comment():
    lines = toml_of([TrainConfig(data=Path("d"), run=Path("r")), ModelConfig()]).splitlines()
    bare = [line for line in lines if line and line[0] != "[" and "  # " not in line]
    assert [line.split(" = ")[0] for line in bare] == 4 * ["kind"]
    assert "dropout = 0.2  # Dropout probability in training" in lines
