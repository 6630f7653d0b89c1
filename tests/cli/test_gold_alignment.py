"""eval --gold-alignment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nmtflex.config import GlobalConfig, NoneConfig

ONE_THREAD = ("--threads", 1, "--device", "cpu")  # its test split: a b c, an empty pair, c a b b


@pytest.fixture
def gold(tmp_path) -> Path:
    path = tmp_path / "gold"
    path.write_text("0-0 1-1 2p2\n\n0-0 1-1 2-2 3?3\n")
    return path


def rates(found: list[tuple[int, int, int]], sure: set, possible: set) -> tuple[float, ...]:
    """Compute by Och and Ney's equations, with sentences in the links."""
    hits, allowed = len(sure.intersection(found)), len(possible.intersection(found))
    aer = 1 - (hits + allowed) / (len(found) + len(sure))
    return 100 * aer, 100 * allowed / len(found), 100 * hits / len(sure)


def test_the_rate_is_that_of_the_forced_alignment(command_line, tiny_run, gold, tmp_path) -> None:
    file = tmp_path / "links"
    raw = tiny_run / "raw"
    outcome = command_line(
        "score", tiny_run, *ONE_THREAD, "--alignment", file,
        "--source", raw / "test.source.txt", "--target", raw / "test.target.txt",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    found = [
        (number, *map(int, link.split("-")))
        for number, line in enumerate(file.read_text().splitlines())
        for link in line.split()
    ]
    assert len(found) == 3 + 4
    sure = {(0, 0, 0), (0, 1, 1), (2, 0, 0), (2, 1, 1), (2, 2, 2)}
    expected = rates(found, sure, {*sure, (0, 2, 2), (2, 3, 3)})
    outcome = command_line("eval", tiny_run, *ONE_THREAD, "--gold-alignment", gold, "--json")
    assert outcome.code == 0, outcome.err
    record = json.loads(outcome.out)
    names = ("aer", "alignment_precision", "alignment_recall")
    assert tuple(record[name] for name in names) == pytest.approx(expected)
    assert [record[f"alignment_{name}"] for name in ("links", "sure", "possible")] == [7, 5, 7]
    table = command_line("eval", tiny_run, *ONE_THREAD, "--gold-alignment", gold)
    rows = dict(line.split("\t")[:2] for line in table.out.splitlines())
    assert [rows[name] for name in ("AER", "precision", "recall")] == [
        f"{value:.2f}" for value in expected
    ]
    assert float(rows["BLEU"]) == pytest.approx(record["bleu"], abs=0.005)


def test_its_own_alignment_is_no_error(command_line, tiny_run, tmp_path) -> None:
    raw, file, other = tiny_run / "raw", tmp_path / "links", tmp_path / "from_1"
    files = raw / "test.source.txt", raw / "test.target.txt"
    command_line(
        "score", tiny_run, *ONE_THREAD, "--alignment", file, "--source", files[0],
        "--target", files[1],
    )  # fmt: skip
    links = [[map(int, link.split("-")) for link in line.split()] for line in file.open()]
    other.write_text(
        "".join(" ".join(f"{s + 1}-{t + 1}" for s, t in line) + "\n" for line in links)
    )
    for options in (
        ["--gold-alignment", file],
        ["--gold-alignment", other, "--gold-base", 1],
        ["--gold-alignment", file, "--source", files[0], "--reference", files[1]],
    ):
        outcome = command_line("eval", tiny_run, *ONE_THREAD, *options, "--json")
        assert outcome.code == 0, outcome.err
        assert json.loads(outcome.out)["aer"] == 0


def test_several_runs_stand_side_by_side(command_line, make_tiny_run, gold) -> None:
    runs = [make_tiny_run("one", GlobalConfig()), make_tiny_run("two", GlobalConfig(), seed=2)]
    options = (*runs, *ONE_THREAD, "--gold-alignment", gold)
    records = json.loads(command_line("eval", *options, "--json").out)
    shown = [line.split("\t") for line in command_line("eval", *options).out.splitlines()]
    place = shown[0].index("AER")
    assert shown[0][place + 1 : place + 3] == ["precision", "recall"]
    assert [row[place] for row in shown[1:3]] == [f"{record['aer']:.2f}" for record in records]
    assert records[0]["aer"] != records[1]["aer"]
    tested = command_line("eval", *options, "--significance", "bootstrap", "--samples", 10)
    assert tested.code == 0, tested.err
    assert ["system", "AER"] in [line.split("\t")[:2] for line in tested.out.splitlines()]


def test_bad_gold_is_one_line(command_line, tiny_run, tmp_path) -> None:
    path = tmp_path / "gold"
    for text, values in (
        ("0-0\n\n", (f"{path} has 2 lines", "3 pairs")),
        ("0-0\n\n0x0\n", (f"{path}:3:", "'0x0'", "0-2")),
        ("0-0\n\n0-4\n", (f"{path}:3:", "0-4", "target", "4 words")),
        ("0-0\n0-0\n0-0\n", (f"{path}:2:", "0-0", "source", "0 words")),
        ("0p0\n\n\n", (f"{path}:", "0-2")),
    ):
        path.write_text(text)
        outcome = command_line("eval", tiny_run, *ONE_THREAD, "--gold-alignment", path)
        assert (outcome.code, outcome.out, outcome.err.count("\n")) == (1, "", 1)
        assert [value for value in values if value not in outcome.err] == []


def test_what_gold_links_do_not_go_with(command_line, make_tiny_run, tiny_run, gold) -> None:
    none = make_tiny_run("none", NoneConfig(), decoder="luong")
    link = ("--gold-alignment", gold)
    for arguments, values in (
        ((none, *link), ("--gold-alignment", str(none), "attention none")),
        ((tiny_run, "--gold-base", 1), ("--gold-base 1", "--gold-alignment")),
        ((tiny_run, *link, "--gold-base", 2), ("--gold-base", "2")),
        ((tiny_run, "--head", 1), ("--head 1", "--gold-alignment")),
        (("--hypothesis", gold, "--reference", gold, *link), (f"--gold-alignment {gold}", "run")),
        (
            (tiny_run, *link, "--source", gold, "--reference", gold, "--reference", gold),
            (f"--gold-alignment {gold}", "2"),
        ),
        ((tiny_run, *link, "--output", gold), (f"--output {gold}",)),
    ):
        outcome = command_line("eval", *arguments)
        assert (outcome.code, outcome.out) == (2, ""), outcome.err
        assert [value for value in values if value not in outcome.err] == []
