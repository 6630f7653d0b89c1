"""nmtflex report: the page is written, and what is refused in one line."""

from __future__ import annotations

import json
import re

import pytest

pytest.importorskip("plotly")

from nmtflex.cli import report as report_command
from nmtflex.config import FlexibleConfig

ONE_THREAD = ("--threads", 1)


def data_of(page: str) -> list[str]:
    """Return the JSON texts inside a page."""
    return re.findall(r'<script type="application/[^>]*>(.*?)</script>', page, re.DOTALL)


def test_a_page_of_two_runs(command_line, make_tiny_run, tiny_run, tmp_path):
    other = make_tiny_run("flexible", FlexibleConfig())
    path = tmp_path / "page.html"
    result = command_line(
        "report", tiny_run, other, "--out", path, "--beam", 2, "--tau", "auto",
        "--title", "Tiny <runs>", *ONE_THREAD,
    )  # fmt: skip
    assert (result.code, result.out) == (0, ""), result.err
    lines = result.err.splitlines()
    assert lines[0] == f"nmtflex: {tiny_run}: translating 3 sentences of test"
    assert re.fullmatch(rf"nmtflex: wrote {path} \([\d.]+ MB, 3 sentences\)", lines[-1])
    page = path.read_text(encoding="utf-8")
    assert "<runs>" not in page
    report, *_ = data_of(page)
    found = json.loads(report)
    assert found["title"] == "Tiny <runs>"
    assert [run["name"] for run in found["runs"]] == ["tiny", "flexible"]
    assert found["command"].startswith("nmtflex ")


def test_the_title_says_runs_languages_and_split(command_line, tiny_run, tmp_path, run_of):
    path = tmp_path / "page.html"
    for runs, named in (
        ([tiny_run], "tiny"),
        ([tiny_run, run_of("flexible")], "tiny and flexible"),
    ):
        assert command_line("report", *runs, "--out", path, *ONE_THREAD).code == 0
        report, *_ = data_of(path.read_text(encoding="utf-8"))
        assert json.loads(report)["title"] == f"Report on {named}: aa to bb, test"


def test_a_large_page_is_warned_of(command_line, tiny_run, tmp_path, monkeypatch):
    monkeypatch.setattr(report_command, "LARGE", 1000)
    path = tmp_path / "page.html"
    result = command_line("report", tiny_run, "--out", path, *ONE_THREAD)
    assert result.err.endswith(
        f"nmtflex: warning: {path} is large and may be slow to open; show fewer than 3 sentences "
        f"with --sentences\n"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--out", "page.pdf"], "--out page.pdf ... .html"),
        (["--out", "nowhere/page.html"], "--out nowhere/page.html: there is no folder nowhere"),
        (["--tau", "0.5"], "--tau 0.5 ... flexible attention"),
        (["--tokenize", "13a"], "--tokenize 13a "),
        (["--split", "train"], "has no split 'train'; there is test"),
    ],
)
def test_refused(command_line, tiny_run, arguments, words):
    result = command_line("report", tiny_run, *arguments, *ONE_THREAD)
    assert (result.code != 0, result.out, result.err.count("\n")) == (True, "", 1)
    assert [value for value in words.split(" ... ") if value not in result.err] == []


def test_a_run_given_twice(command_line, tiny_run):
    result = command_line("report", tiny_run, tiny_run / ".." / "tiny", *ONE_THREAD)
    assert result.code == 2
    assert f"{tiny_run} is given twice" in result.err


def test_no_run(command_line, tmp_path):
    result = command_line("report", tmp_path / "nothing", *ONE_THREAD)
    assert result.code == 1
    assert f"{tmp_path / 'nothing'}: no such run folder" in result.err
