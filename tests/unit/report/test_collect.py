"""What a report shows of hand-made runs, against the parts that make it."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from nmtflex.config import (
    BatchConfig,
    Decoding,
    DeviceConfig,
    FlexibleConfig,
    GlobalConfig,
    MemoryConfig,
    NoneConfig,
    ScoreConfig,
    SearchConfig,
    ShownConfig,
    ThresholdConfig,
)
from nmtflex.decoding.opening import load
from nmtflex.errors import OptionError, RunError
from nmtflex.evaluation.sweep import Point, as_csv
from nmtflex.report.collect import ReportTask, collect
from nmtflex.training.metrics import COLUMNS


def wanted(sentences=10, tau=None, split="test", shown=None, **scores):
    decoding = Decoding(
        SearchConfig(beam=2), ThresholdConfig(tau=tau), BatchConfig(), DeviceConfig(threads=1)
    )
    return ReportTask(
        split=split,
        sentences=sentences,
        scores=ScoreConfig(**scores),
        decoding=decoding,
        shown=ShownConfig(**(shown or {})),
    )


def test_several_mechanisms_side_by_side(make_tiny_run):
    kinds = [GlobalConfig(), FlexibleConfig(sigma=0.5), MemoryConfig(K=3), NoneConfig()]
    paths = [make_tiny_run(f"run-{kind.kind}", kind) for kind in kinds]
    report, traces = collect(paths, wanted(tau="0.25", ribes=False))
    assert [run["name"] for run in report["runs"]] == [path.name for path in paths]
    assert (report["split"], report["split_sentences"], report["sentence_count"]) == ("test", 3, 3)
    assert (report["source_lang"], report["target_lang"]) == ("aa", "bb")
    described = [run["description"] for run in report["runs"]]
    assert described[1] == "flexible attention, τ = 0.25 · bahdanau decoder · beam 2 · update 1"
    assert described[3].startswith("no attention · ")
    for place, path in enumerate(paths):
        translator = load(path, beam=2, threads=1, **({"tau": 0.25} if place == 1 else {}))
        sources = ["a b c", "", "c a b b"]
        texts = [one["hypotheses"][place]["text"] for one in report["sentences"]]
        assert texts == translator.translate(sources)
    assert json.loads(traces[1]) == [None] * 4
    _global, flexible, memory, none = json.loads(traces[2])
    assert _global["source"] == ["c", "a", "b", "b"]
    steps = len(_global["target"])
    assert _global["target"][-1] == "</s>"
    assert np.array(_global["weights"]).shape == (steps, 4)
    assert np.array(_global["weights"]).sum(1) == pytest.approx(1000, abs=2)
    assert _global["gate"] is None
    assert len(flexible["gate"]) == len(flexible["target"])
    for start, stop, row in zip(
        flexible["window_start"], flexible["window_stop"], flexible["weights"], strict=True
    ):
        assert not any(row[:start])
        assert not any(row[stop:])
    assert min(flexible["computed"]) < 4
    assert np.array(memory["alpha"]).shape == (4, 3)
    assert np.array(memory["beta"]).shape == (len(memory["target"]), 3)
    assert none["weights"] is None


def test_scores_costs_and_lengths(make_tiny_run):
    path = make_tiny_run("one", GlobalConfig())
    report, _ = collect([path], wanted(ter=True))
    (run,) = report["runs"]
    assert [row["metric"] for row in run["scores"]] == ["BLEU", "chrF2", "TER"]
    for row in run["scores"]:
        low, high = row["interval"]
        assert low <= high
        assert "bs:1000|seed:12345" in row["signature"]
    cost = run["cost"]
    assert cost["cps"] == pytest.approx(3.5)  # of sources of 3 and 4 words; the empty one is none
    assert cost["source_tokens"] == pytest.approx(7 / 3)
    assert (cost["encoding_computations"], cost["sentences"]) == (0, 3)
    assert sum(row["seconds"] for row in run["time"]) == pytest.approx(
        cost["decoding_seconds"], rel=0.5
    )
    assert [row["part"] for row in run["time"]] == [
        "encoder", "embedding", "attention", "recurrent cell", "output layer", "search",
    ]  # fmt: skip
    assert all(row["seconds"] > 0 for row in run["time"])
    assert [(row["label"], row["sentences"]) for row in run["lengths"]][:2] == [
        ("0", 1),
        ("1-10", 2),
    ]
    assert run["parameters"] > 0
    values = {(row["group"], row["name"]): row["values"] for row in report["settings"]}
    assert values["model", "attention.kind"] == ["global"]
    assert values["data", "source_size"] == ["12"]


def test_of_several_heads_the_mean_or_one(make_layered_run):
    path = make_layered_run("layered", FlexibleConfig())
    report, [trace, *_] = collect([path], wanted(tau="0.1"))
    (run,) = report["runs"]
    assert run["description"].endswith("attention shown: mean of 2 layers and 2 heads")
    assert run["cost"]["cps_total"] == pytest.approx(4 * run["cost"]["cps"])
    assert {"layers", "attention"} <= {row["part"] for row in run["time"]}
    (mean,) = json.loads(trace)
    assert mean["heads"] == 4
    assert mean["window_start"] is None
    each = []
    for layer in (1, 2):
        for head in (1, 2):
            shown = {"layer": layer, "head": head}
            found = collect([path], wanted(tau="0.1", shown=shown))
            described = found.report["runs"][0]["description"]
            assert described.endswith(f"attention shown: layer {layer}, head {head}")
            each += json.loads(found.traces[0])
    for one in each:
        assert one["heads"] == 1
        widths = np.array(one["window_stop"]) - np.array(one["window_start"])
        assert widths.tolist() == one["computed"]
    expected = np.mean([one["computed"] for one in each], axis=0)
    assert np.allclose(mean["computed"], expected, rtol=0, atol=6e-4)
    expected = np.mean([one["weights"] for one in each], axis=0)
    assert np.allclose(mean["weights"], expected, rtol=0, atol=1.01)  # thousandths


def test_learning_curves_and_sweeps_of_the_folder(make_tiny_run):
    path = make_tiny_run("one", FlexibleConfig())
    assert collect([path], wanted()).report["runs"][0]["learning"] == []
    assert collect([path], wanted()).report["runs"][0]["sweeps"] == []
    rows = [",".join(COLUMNS), "100,1,90.0,8000,valid,3.5,33.0,12.5,0.001,,0.25,8.75"]
    (path / "metrics.csv").write_text("".join(f"{row}\n" for row in rows))
    points = [Point(0.5, 20.0, None, 2.0, 3.0, 100), Point(math.inf, 30.0, 0.5, 9.0, 9.0, 100)]
    (path / "sweep-valid-beam4.csv").write_text(as_csv(points))
    (run,) = collect([path], wanted()).report["runs"]
    assert run["learning"] == [{
        "update": 100, "seconds": 90.0, "split": "valid", "loss": 3.5, "perplexity": 33.0,
        "bleu": 12.5, "gate_mean": 0.25, "cps": 8.75,
    }]  # fmt: skip
    (sweep,) = run["sweeps"]
    assert (sweep["split"], sweep["beam"]) == ("valid", "beam 4")
    assert [point["tau"] for point in sweep["points"]] == [0.5, None]
    assert sweep["points"][0]["ribes"] is None
    assert "Infinity" not in json.dumps(run)


def test_fewer_sentences_than_the_split_has(make_tiny_run):
    path = make_tiny_run("one", GlobalConfig())
    report, traces = collect([path], wanted(sentences=1))
    assert (len(report["sentences"]), len(traces), report["split_sentences"]) == (1, 1, 3)
    assert report["runs"][0]["cost"]["sentences"] == 3
    report, traces = collect([path], wanted(sentences=0))
    assert (report["sentences"], traces) == ([], [])


@pytest.mark.parametrize(
    ("side", "text", "words"),
    [
        ("source", "a b c\n\nc a b a\n", "source line 3 on (3 lines against 3)"),
        ("target", "A\n\nC\n", "target line 1 on"),
    ],
)
def test_runs_with_other_data_are_refused(make_tiny_run, side, text, words):
    first, second = make_tiny_run("one", GlobalConfig()), make_tiny_run("two", GlobalConfig())
    (second / "raw" / f"test.{side}.txt").write_text(text)
    with pytest.raises(OptionError, match=str(second)) as caught:
        collect([first, second], wanted())
    assert words in str(caught.value)


def test_one_more_line_is_other_data(make_tiny_run):
    first, second = make_tiny_run("one", GlobalConfig()), make_tiny_run("two", GlobalConfig())
    for name in ("source", "target"):
        with (second / "raw" / f"test.{name}.txt").open("a") as file:
            file.write("a\n")
    with pytest.raises(OptionError, match=r"line 4 on \(4 lines against 3\)"):
        collect([first, second], wanted())


def test_a_threshold_without_a_run_for_it(make_tiny_run):
    with pytest.raises(OptionError, match=r"--tau 0\.5 .*flexible attention"):
        collect([make_tiny_run("one", GlobalConfig())], wanted(tau="0.5"))


def test_a_split_that_is_not_there(make_tiny_run):
    with pytest.raises(RunError, match="no split 'valid'; there is test"):
        collect([make_tiny_run("one", GlobalConfig())], wanted(split="valid"))
