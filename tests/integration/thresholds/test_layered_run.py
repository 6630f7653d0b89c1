"""The commands over one small run: transformer encoder, SSRU decoder, flexible attention."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from capitals import PLACE, call, mean_length, source_lines

import nmtflex

pytestmark = pytest.mark.integration

SIZES = ["--embedding-size", 8, "--encoder-size", 8, "--decoder-size", 8, "--lr", 0.02]
LAYERS = ["--encoder-layers", 1, "--encoder-heads", 2, "--decoder-layers", 2, "--decoder-heads", 2]
HEADS = 4  # two layers of two
LINES = ["a b c d e", "", "f e", "quagga a"]


@pytest.fixture(scope="module")
def layered(corpus):
    run = corpus / "run-layered"
    kinds = ["--encoder", "transformer", "--decoder", "ssru", "--attention", "flexible"]
    updates = ["--updates", 12, "--batch-sentences", 16]
    call("train", corpus / "prepared", "--run", run, *kinds, *SIZES, *LAYERS, *updates, *PLACE)
    return run


def attention(translate, run, path, *options):
    translate(run, LINES, *options, "--attention-output", path)
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_cps_is_the_length_of_the_source_whatever_the_number_of_heads(layered, evaluate, corpus):
    found = evaluate(layered)
    assert found["cps"] == pytest.approx(mean_length(source_lines(corpus, "test")))
    assert found["cps_total"] == pytest.approx(HEADS * found["cps"])


def test_finetuning_closes_the_gates_and_computes_less(layered, evaluate, tmp_path):
    run = tmp_path / "finetuned"
    options = ["--beta", 5, "--train-tau", 0.5, "--updates", 20, "--lr", 0.02]
    call("finetune", layered, "--run", run, *options, *PLACE)
    before, after = (evaluate(one, "--tau", 0.5) for one in (layered, run))
    assert after["cps"] < before["cps"]
    assert after["cps_total"] == pytest.approx(HEADS * after["cps"])


def test_what_is_forced_scores_what_the_search_found(layered, translate, command_line, tmp_path):
    lines, _ = translate(layered, LINES[:1], "--beam", 1, "--tau", 0.5, "--format", "json")
    [best] = json.loads(lines[0])["translations"]
    for side, text in (("source", LINES[0]), ("target", best["text"])):
        (tmp_path / side).write_text(f"{text}\n")
    sides = ["--source", tmp_path / "source", "--target", tmp_path / "target"]
    outcome = command_line("score", layered, *sides, "--tau", 0.5, *PLACE)
    assert float(outcome.out) == pytest.approx(best["log_probability"], abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("more", [["--int8"], ["--dtype", "bfloat16"], ["--workers", 2]])
def test_ways_to_translate(layered, translate, more):
    plain, _ = translate(layered, LINES, "--tau", "auto", "--n-best", 2, "--format", "json")
    found, said = translate(
        layered, LINES, "--tau", "auto", "--n-best", 2, "--format", "json", "--stats", *more
    )
    assert [len(json.loads(line)["translations"]) for line in found] == [2, 1, 2, 2]
    assert "of all heads and layers" in said
    if "--workers" in more:
        assert found == plain


def test_a_head_of_the_file_is_that_of_python(layered, translate, tmp_path):
    options = ["--layer", 2, "--head", 1, "--tau", 0.2, "--replace-unk"]
    file = attention(translate, layered, tmp_path / "one", *options)
    chosen = {"layer": 2, "head": 1, "tau": 0.2, "replace_unk": True, "max_length": 12}
    translator = nmtflex.load(layered, **chosen, threads=1)
    for line, [best], found in zip(
        LINES, translator.n_best(LINES, 1, trace=True), file, strict=True
    ):
        if not line:
            continue
        assert best.trace.computed.tolist() == found["computed"]
        assert np.allclose(best.trace.weights, found["weights"], atol=1e-5)
        assert found["window_start"] is not None
    again = pickle.loads(pickle.dumps(translator)).n_best(LINES[:1], 1, trace=True)
    assert again[0][0].trace.computed.tolist() == file[0]["computed"]
    mean = attention(translate, layered, tmp_path / "mean", "--tau", 0.2)
    assert mean[0]["window_start"] is None
    assert mean[0]["weights"] is not None


def test_an_ensemble_with_a_recurrent_run(layered, run_of, command_line, evaluate):
    alone = [evaluate(run)["cps_total"] for run in (layered, run_of("global"))]
    outcome = command_line(
        "eval", layered, run_of("global"), "--ensemble", "--json", "--beam", 2, *PLACE
    )
    found = json.loads(outcome.out)
    assert found["cps_total"] == pytest.approx(sum(alone))
    assert found["cps"] == pytest.approx(alone[0] / HEADS + alone[1])


def test_sweep_average_report_and_bench(layered, command_line, tmp_path):
    pytest.importorskip("matplotlib")
    sweep = ["--tau", "0.1,inf", "--split", "valid", "--beam", 1, "--out", tmp_path / "sweep"]
    assert command_line("sweep", layered, *sweep, *PLACE).code == 0
    figure = ["--out", tmp_path / "figure.png"]
    assert command_line("plot", tmp_path / "sweep.csv", *figure).code == 0
    averaged = tmp_path / "averaged"
    assert command_line("average", layered, "--last", 1, "--run", averaged).code == 0
    bench = ["--sentences", 4, "--repeats", 1, "--beam", 1, *PLACE]
    outcome = command_line("bench", layered, averaged, *bench)
    assert outcome.code == 0, outcome.err
    rows = dict(line.split("\t", 1) for line in outcome.out.splitlines())
    assert {"encoder, seconds", "decoder, seconds"} <= set(rows)
    one, total = (
        float(rows[name].split("\t")[0])
        for name in ("computations per step (CPS)", "CPS, all heads and layers")
    )
    assert total == pytest.approx(HEADS * one, abs=0.03)
    pytest.importorskip("plotly")
    page = tmp_path / "page.html"
    shown = ["--layer", 1, "--sentences", 2, "--beam", 1, "--out", page]
    outcome = command_line("report", layered, averaged, *shown, *PLACE)
    assert outcome.code == 0, outcome.err
    assert "attention shown: layer 1, mean of 2 heads" in page.read_text(encoding="utf-8")
