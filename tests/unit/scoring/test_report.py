"""What is printed, and what programs read."""

from __future__ import annotations

import json

import pytest

from nmtflex.scoring.bleu import Score
from nmtflex.scoring.buckets import Bucket
from nmtflex.scoring.evaluation import Evaluation
from nmtflex.scoring.report import ScoreReport, sentence_table
from nmtflex.scoring.ribes import RibesScore
from nmtflex.scoring.significance import Comparison


def evaluation(bleu, **more):
    return Evaluation(Score(bleu, "sb"), Score(50.0, "sc"), sentences=3, **more)


def comparison(metric, system, score, p_value):
    return Comparison(metric, system, score, score - 0.01, 0.1, p_value, f"bs:9|{metric}")


def test_one_system():
    ribes = RibesScore(0.12345, [0.12345] * 3, "sr")
    report = ScoreReport(systems={"a": evaluation(1 / 3, ribes=ribes, cps=2.5)}, buckets={})
    (table,) = report.tables()
    assert table.columns == ("metric", "score", "signature")
    assert table.rows == [
        ["BLEU", "0.33", "sb"],
        ["chrF2", "50.00", "sc"],
        ["RIBES", "0.1235", "sr"],
        ["CPS", "2.50", "score computations a step"],
    ]
    found = report.to_dict()
    assert (found["bleu"], found["ribes"], found["signature"]) == (1 / 3, 0.12345, "sb")
    assert not {"significance", "by_length", "systems"} & set(found)


def test_intervals_of_one_system():
    rows = [comparison("BLEU", "a", 20.0, None), comparison("chrF2", "a", 50.0, None)]
    systems = {"a": evaluation(20.0, cps=2.5, encoding_computations=9.0)}
    report = ScoreReport(systems=systems, comparisons=rows, buckets={})
    (table,) = report.tables()
    assert table.columns == ("metric", "score", "mean", "95 % interval", "signature")
    assert table.rows == [
        ["BLEU", "20.00", "19.99", "19.89-20.09", "bs:9|BLEU"],
        ["chrF2", "50.00", "49.99", "49.89-50.09", "bs:9|chrF2"],
        ["CPS", "2.50", "", "", "score computations a step"],
        ["encoding", "9.0", "", "", "score computations a sentence, once"],
    ]
    (first, _) = json.loads(json.dumps(report.to_dict()))["significance"]
    assert first["interval"] == pytest.approx([19.89, 20.09])
    assert (first["metric"], first["mean"], first["p_value"]) == ("BLEU", 19.99, None)


def test_several_systems():
    report = ScoreReport(systems={"a": evaluation(20.0), "b": evaluation(21.0)}, buckets={})
    scores, signatures = report.tables()
    assert scores.columns == ("system", "BLEU", "chrF2")
    assert scores.rows == [["a", "20.00", "50.00"], ["b", "21.00", "50.00"]]
    assert signatures.columns == ("metric", "signature")
    assert signatures.rows == [("BLEU", "sb"), ("chrF2", "sc")]
    found = report.to_dict()
    assert [(one["system"], one["bleu"]) for one in found["systems"]] == [("a", 20), ("b", 21)]
    assert (found["sentences"], found["signature"]) == (3, "sb")


def test_several_systems_compared():
    rows = [comparison("BLEU", name, 20.0, p) for name, p in (("a", None), ("b", 1.0), ("c", 2e-5))]
    systems = dict.fromkeys("abc", evaluation(20.0))
    scores, signatures = ScoreReport(systems=systems, comparisons=rows, buckets={}).tables()
    assert scores.columns == ("metric", "system", "score", "mean", "95 % interval", "p-value")
    assert scores.rows[0] == ["BLEU", "a", "20.00", "19.99", "19.89-20.09", ""]
    assert [row[-1] for row in scores.rows] == ["", "1.0000", "0.0000200"]
    assert signatures.rows == [("BLEU", "bs:9|BLEU")]


def test_by_length():
    buckets = [Bucket("1-10", 1, 10, 2, Score(1 / 3, "s")), Bucket(">10", 11, None, 0, None)]
    report = ScoreReport(systems={"a": evaluation(20.0)}, buckets={"a": buckets})
    table = report.tables()[-1]
    assert table.columns == ("source tokens", "sentences", "BLEU")
    assert table.rows == [["1-10", "2", "0.33"], [">10", "0", ""]]
    assert report.to_dict()["by_length"] == [
        {"label": "1-10", "low": 1, "high": 10, "sentences": 2, "bleu": 1 / 3},
        {"label": ">10", "low": 11, "high": None, "sentences": 0, "bleu": None},
    ]
    both = {"a": evaluation(20.0), "b": evaluation(21.0)}
    report = ScoreReport(systems=both, buckets={"a": buckets, "b": buckets})
    assert report.tables()[-1].columns == ("source tokens", "sentences", "BLEU a", "BLEU b")
    assert "by_length" in report.to_dict()["systems"][1]


def test_sentences():
    text = sentence_table({"bleu": [1 / 3, 0.0], "hypothesis_length": [4, 0]})
    assert text == "index\tbleu\thypothesis_length\n0\t0.3333333333333333\t4\n1\t0.0\t0\n"
