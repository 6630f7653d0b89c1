"""--layer and --head: what figures, attention files, reports and scores show of several heads."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from nmtflex.config import FlexibleConfig, GlobalConfig, MemoryConfig

ONE_THREAD = ("--threads", 1)
SENTENCE = ("--sentence", "c a b h", *ONE_THREAD)
MEAN = "mean of 2 layers and 2 heads"
ONE = ("--layer", 2, "--head", 1)


@pytest.fixture
def flexible(make_layered_run):
    return make_layered_run("flexible", FlexibleConfig())


@pytest.fixture
def memory(make_layered_run):
    return make_layered_run("memory", MemoryConfig(K=3), "transformer")


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "lines"
    path.write_text("a b c\n\nc a b b\n")
    return path


def in_one_line(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("kind", ["attention", pytest.param("gate", marks=pytest.mark.slow)])
def test_a_figure_says_of_what_it_is_the_mean(draw, flexible, kind):
    tau = ("--tau", "0.3", "--kind", kind)
    assert MEAN in in_one_line(draw(flexible, *SENTENCE, *tau))
    assert "layer 2, head 1" in in_one_line(draw(flexible, *SENTENCE, *tau, *ONE))
    assert "layer 2, mean of 2 heads" in in_one_line(draw(flexible, *SENTENCE, *tau, "--layer", 2))


@pytest.mark.slow
def test_windows_are_drawn_of_a_single_head(draw, flexible):
    tau = ("--tau", "0.1")
    assert "grey: not computed" not in in_one_line(draw(flexible, *SENTENCE, *tau))
    assert "grey: not computed" in in_one_line(draw(flexible, *SENTENCE, *tau, *ONE))


def test_slots_are_drawn_of_a_single_head(draw, memory):
    whole = in_one_line(draw(memory, *SENTENCE))
    assert "Attention weights of each target token" in whole
    assert "Σ α β over the slots" in whole
    one = in_one_line(draw(memory, *SENTENCE, *ONE))
    assert "Memory slots, filled and read" in one
    assert "layer 2, head 1 · CPS 3, 4 source tokens" in one


@pytest.mark.parametrize(
    ("run", "kind", "chosen"),
    [("flexible", "focus", ()), ("memory", "memory", ("--layer", 1)), ("memory", "memory", ())],
)
def test_a_figure_of_one_head_asks_for_it(command_line, request, run, kind, chosen):
    path = request.getfixturevalue(run)
    outcome = command_line("plot", path, "--kind", kind, *SENTENCE, *chosen)
    assert outcome.code == 2
    for part in (f"--kind {kind}", "mean of", "--layer N and --head N", str(path)):
        assert part in outcome.err


def test_the_focus_of_one_head_is_drawn(draw, flexible):
    text = in_one_line(draw(flexible, "--kind", "focus", *SENTENCE, "--tau", "0.1", *ONE))
    assert "layer 2, head 1" in text


@pytest.mark.slow
def test_the_attention_file_has_a_head_or_the_mean(command_line, flexible, lines, tmp_path):
    def file(*options):
        path = tmp_path / "attention.jsonl"
        options = ("--input", lines, "--tau", "0.1", *ONE_THREAD, *options)
        assert command_line("translate", flexible, *options, "--attention-output", path).code == 0
        return json.loads(path.read_text().splitlines()[2])

    mean = file()
    assert mean["window_start"] is mean["window_stop"] is None
    each = [file("--layer", layer, "--head", head) for layer in (1, 2) for head in (1, 2)]
    for name in ("weights", "gate", "focus", "computed"):
        expected = np.mean([np.array(one[name]) for one in each], axis=0)
        assert np.allclose(mean[name], expected, rtol=0, atol=2e-6), name
    for one in each:
        widths = np.array(one["window_stop"]) - np.array(one["window_start"])
        assert widths.tolist() == one["computed"]


def test_a_head_changes_what_replaces_unknown_words_and_nothing_else(command_line, flexible, lines):
    found = {
        chosen: command_line(
            "translate", flexible, "--input", lines, "--replace-unk", "--format", "json", *chosen,
            *ONE_THREAD,
        )
        for chosen in ((), ONE)
    }  # fmt: skip
    assert [one.code for one in found.values()] == [0, 0]
    tokens = [
        [
            best["tokens"]
            for line in one.out.splitlines()
            for best in json.loads(line)["translations"]
        ]
        for one in found.values()
    ]
    assert tokens[0] == tokens[1]


def test_options_without_effect_are_refused(command_line, flexible, lines):
    refused = {
        ("translate", flexible, "--input", lines): "--attention-output",
        ("eval", flexible): "--replace-unk",
        ("plot", flexible): "no attention",
        ("plot", flexible, "--kind", "length"): "--replace-unk",
        ("plot", flexible, "--kind", "seconds"): "no attention",
    }
    for words, message in refused.items():
        outcome = command_line(*words, "--head", 1)
        assert (outcome.code, outcome.out) == (2, ""), words
        assert "--head 1" in outcome.err
        assert message in outcome.err


def test_numbers_beyond_the_largest_are_refused(command_line, flexible, tiny_run):
    for run, option, count in (
        (flexible, "layer", 2),
        (flexible, "head", 2),
        (tiny_run, "head", 1),
    ):
        outcome = command_line("plot", run, *SENTENCE, f"--{option}", count + 1)
        assert outcome.code == 2
        assert f"--{option} {count + 1}: {run} has {count} " in outcome.err
        assert outcome.err.endswith(f"{count}\n")


def test_scores_have_the_mean_and_the_sum_of_all_heads(command_line, flexible, tiny_run):
    found = json.loads(command_line("eval", flexible, "--json", *ONE_THREAD).out)
    assert found["cps"] == pytest.approx(3.5)  # of 3 and 4 words
    assert found["cps_total"] == pytest.approx(4 * 3.5)
    table = command_line("eval", flexible, *ONE_THREAD).out
    assert "CPS\t3.50\t" in table
    assert "CPS, total\t14.00\t" in table
    assert "total" not in command_line("eval", tiny_run, *ONE_THREAD).out
    both = command_line("eval", flexible, tiny_run, *ONE_THREAD).out.splitlines()
    assert both[0].split("\t")[3:5] == ["CPS", "CPS, total"]
    assert [line.split("\t")[3:5] for line in both[1:3]] == [["3.50", "14.00"], ["3.50", "3.50"]]


def test_stats_have_both_counts(command_line, flexible, tiny_run, lines):
    stats = ("--stats", "--input", lines, *ONE_THREAD)
    several = command_line("translate", flexible, *stats).err
    assert "CPS 3.50 (" in several
    assert "; 14.00 of all heads and layers" in several
    assert "heads" not in command_line("translate", tiny_run, *stats).err


def test_a_sweep_has_both_counts(command_line, flexible, tiny_run):
    import csv

    options = ("--tau", "0.1,inf", "--split", "test", "--beam", 1, *ONE_THREAD)
    outcome = command_line("sweep", flexible, *options)
    assert outcome.code == 0, outcome.err
    assert outcome.out.splitlines()[0].split("\t")[3:5] == ["CPS", "CPS, total"]
    with (flexible / "sweep-test-beam1.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert float(rows[1]["cps"]) == pytest.approx(3.5)
    for row in rows:
        assert float(row["cps_total"]) == pytest.approx(4 * float(row["cps"]))
    assert float(rows[0]["cps"]) < 3.5


def test_the_parts_of_a_layered_model(command_line, make_layered_run):
    def parts(decoder):
        run = make_layered_run(decoder, GlobalConfig(score="dot"), decoder, decoder_ffn=5)
        return json.loads(command_line("info", run, "--json").out)["parameters"]

    ssru, transformer = parts("ssru"), parts("transformer")
    # Per layer: W_Q, W_K, W_V, W_O of attention with biases; two products of the feed-forward.
    attention, feed_forward = 2 * 4 * (8 * 8 + 8), 2 * (8 * 5 + 5 + 5 * 8 + 8)
    for found in (ssru, transformer):
        assert found["attention"] == attention
        assert found["decoder feed-forward"] == feed_forward
        assert found["all"] == sum(value for name, value in found.items() if name != "all")
    assert ssru["decoder SSRU"] == 2 * (8 * 16 + 8)
    assert transformer["decoder self-attention"] == attention
