"""Rows over seeds, and the table of them."""

from __future__ import annotations

import csv
import io

import pytest

from nmtflex.comparison.table import Row, Score, as_csv, columns_of, markdown

TIMES = {"median": 20.0, "least": 10.0, "most": 40.0, "rounds": [10.0, 20.0, 40.0]}


def scored(bleu, margin, cps=8.0, **more):
    values = {"BLEU": (bleu, margin), "chrF2": (2 * bleu, margin), "RIBES": (bleu / 100, 0.01)}
    return {
        "bleu": bleu,
        "cps": cps,
        "cps_total": cps,
        "encoding_computations": 0.0,
        "significance": [
            {"metric": name, "score": value, "interval": [value - wide, value + wide]}
            for name, (value, wide) in values.items()
        ],
        **more,
    }


def row(name="global", *seeds, attention=TIMES):
    speed = {
        "microseconds": TIMES,
        "attention_microseconds": attention,
        "memory_bytes": 12345,
        "source_positions": 7,
    }
    return Row(name, seeds or (scored(30.0, 1.0),), speed)


def cells(*rows):
    return {column.head: [column.cell(one) for one in rows] for column in columns_of(rows)}


def test_a_score_over_seeds():
    found = row("global", scored(30.0, 1.0), scored(31.0, 2.0), scored(29.5, 0.6)).score("BLEU")
    assert found == Score(pytest.approx(30.1667, abs=1e-4), 29.5, 31.0, pytest.approx(1.2))


def test_the_cells_of_one_seed():
    assert cells(row()) == {
        "entry": ["global"],
        "BLEU": ["30.00 ± 1.00"],
        "chrF2": ["60.00 ± 1.00"],
        "RIBES": ["0.3000 ± 0.0100"],
        "CPS": ["8.00"],
        "µs a token": ["20.0 (10.0 to 40.0)"],
        "of attention": ["20.0 (10.0 to 40.0)"],
        "bytes a sentence": ["12,345"],
    }


def test_columns_that_only_some_rows_fill():
    first = row("a", scored(30.0, 1.0, tau=0.5, aer=25.0), scored(32.0, 1.0, tau="inf", aer=35.0))
    memory = {"encoding_computations": 64.0, "cps_total": 16.0}
    other = row("b", scored(20.0, 1.0, **memory), scored(20.0, 1.0, **memory), attention=None)
    found = cells(first, other)
    assert found["BLEU of the seeds"] == ["30.00 to 32.00", "20.00 to 20.00"]
    assert found["tau"] == ["0.5, inf", ""]
    assert found["AER"] == ["30.00", ""]
    assert found["scores in encoding"] == ["", "64.00"]
    assert found["CPS, total"] == ["", "16.00"]
    assert found["of attention"] == ["20.0 (10.0 to 40.0)", ""]


def test_without_ribes():
    one = scored(30.0, 1.0)
    one["significance"].pop()
    assert "RIBES" not in cells(row("a", one))
    assert row("a", one).score("RIBES") is None
    assert "ribes" not in row("a", one).to_dict()


def test_a_row_needs_bleu():
    one = scored(30.0, 1.0)
    one["significance"] = one["significance"][1:]
    with pytest.raises(ValueError, match="odd has no BLEU"):
        _ = row("odd", one).bleu


def test_markdown_and_csv():
    rows = [row("a"), row("b", scored(1 / 3, 0.5, cps=None), attention=None)]
    head, rule, *lines = markdown(rows).splitlines()
    assert head.startswith("| entry | BLEU | ")
    assert rule == "| --- |" + " ---: |" * (head.count("|") - 2)
    assert [line.split(" | ")[0] for line in lines] == ["| a", "| b"]
    first, second = csv.DictReader(io.StringIO(as_csv(rows)))
    assert (first["entry"], first["seeds"], first["cps"]) == ("a", "1", "8.0")
    assert (first["microseconds_least"], first["memory_bytes"]) == ("10.0", "12345")
    assert (second["bleu"], second["cps"]) == (str(1 / 3), "")
    assert second["attention_microseconds"] == ""


def test_json_has_all_that_the_scoring_said():
    found = row("a", scored(30.0, 1.0), scored(31.0, 1.0)).to_dict()
    assert found["bleu"] == {"mean": 30.5, "least": 30.0, "most": 31.0, "margin": 1.0}
    assert [one["bleu"] for one in found["seeds"]] == [30.0, 31.0]
    assert found["aer"] is None
