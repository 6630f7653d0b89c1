"""nmtflex export: what its runs can be used for, and what is said of them."""

from __future__ import annotations

import json

import pytest

ONE_THREAD = ["--threads", 1, "--device", "cpu"]


def test_its_run_is_used_like_any_other(command_line, tiny_run, tmp_path):
    small = tmp_path / "small"
    done = command_line("export", tiny_run, "--out", small, "--weights", "int8")
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith(f"nmtflex: {small}: 0.0 MB of weights in int8")
    (tmp_path / "in").write_text("a b c\n")
    assert command_line("translate", small, "-i", tmp_path / "in", *ONE_THREAD).code == 0
    both = command_line("eval", tiny_run, small, "--json", *ONE_THREAD)
    assert [facts["sentences"] for facts in json.loads(both.out)] == [3, 3]
    about, before = (
        json.loads(command_line("info", path, "--json").out) for path in (small, tiny_run)
    )
    assert about["options"].endswith(f"export {tiny_run} --run {small} --weights int8")
    assert about["parameters"] == before["parameters"]
    assert len(about["commands"]) == 1


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["train", "--run"], "made by nmtflex export and has no training to resume"),
        (["average"], "made by nmtflex export and has no checkpoints of a training"),
    ],
)
def test_what_its_run_cannot_do(command_line, tiny_run, command, reason):
    assert command_line("export", tiny_run).code == 0
    made = tiny_run.with_name("tiny-float16")
    refused = command_line(*command, made)
    assert refused.code == 1
    assert f"{made} was {reason}" in refused.err
