"""``nmtflex eval`` of runs on files, and of several runs side by side."""

from __future__ import annotations

import json

import pytest

from nmtflex.config import FlexibleConfig, GlobalConfig
from nmtflex.text.pipeline import SidePipeline, TextPipeline
from nmtflex.text.tokenizers import build_tokenizer
from nmtflex.text.vocabulary import Vocabulary


@pytest.fixture
def files(tmp_path):
    """Another test set than the run's own: sources of 2, 4 and 1 words."""
    source, reference = tmp_path / "x.aa", tmp_path / "x.bb"
    source.write_text("d e\na b c d\nf\n", encoding="utf-8")
    reference.write_text("D E\nA B C D\nF\n", encoding="utf-8")
    return "--source", source, "--reference", reference


@pytest.fixture
def two_runs(make_tiny_run):
    return make_tiny_run("one", GlobalConfig()), make_tiny_run("two", GlobalConfig(), seed=2)


def found(outcome):
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out)


def test_other_files_score_as_what_translate_makes_of_them(command_line, tiny_run, files, tmp_path):
    scores = found(command_line("eval", tiny_run, *files, "--ribes", "--json"))
    output = tmp_path / "out.bb"
    command_line("translate", tiny_run, "--input", files[1], "--output", output)
    by_hand = found(
        command_line(
            "eval", "--hypothesis", output, *files[2:], "--tokenize", "none", "--ribes", "--json"
        )
    )
    for name in ("bleu", "chrf", "ribes", "sentences"):
        assert scores[name] == by_hand[name], name
    assert (scores["source"], scores["reference"]) == (str(files[1]), [str(files[3])])
    assert "split" not in scores
    assert scores["cps"] == pytest.approx((2 + 4 + 1) / 3)  # the mean length of these sources


def test_the_own_split_as_files_gives_its_scores(command_line, tiny_run):
    raw = tiny_run / "raw"
    pair = "--source", raw / "test.source.txt", "--reference", raw / "test.target.txt"
    own, given = (found(command_line("eval", tiny_run, *more, "--json")) for more in ((), pair))
    for name in ("bleu", "chrf", "signature", "cps"):
        assert own[name] == given[name]


def test_several_references_of_a_run(command_line, tiny_run, files):
    one = found(command_line("eval", tiny_run, *files, "--json"))
    two = found(command_line("eval", tiny_run, *files, "--reference", files[3], "--json"))
    assert (one["signature"][:7], two["signature"][:7]) == ("nrefs:1", "nrefs:2")


def test_by_length_counts_the_words_of_the_file(command_line, tiny_run, files):
    scores = found(command_line("eval", tiny_run, *files, "--by-length", "--json"))
    assert [bucket["sentences"] for bucket in scores["by_length"]] == [3, 0, 0, 0, 0, 0]


def test_files_that_are_not_parallel(command_line, tiny_run, files):
    files[3].write_text("D E\n", encoding="utf-8")
    outcome = command_line("eval", tiny_run, *files)
    assert (outcome.code, outcome.out) == (1, "")
    assert f"{files[1]} has 3 lines, but {files[3]} has 1" in outcome.err


def test_several_runs_are_a_list_of_what_each_scores_alone(command_line, two_runs):
    together = found(command_line("eval", *two_runs, "--json"))
    assert [one["run"] for one in together] == [str(run) for run in two_runs]
    for run, one in zip(two_runs, together, strict=True):
        alone = found(command_line("eval", run, "--json"))
        for name in alone.keys() - {"seconds", "decoding_seconds"}:
            assert one[name] == alone[name], name


def test_several_runs_as_a_table(command_line, two_runs, files):
    outcome = command_line("eval", *two_runs, *files)
    assert outcome.code == 0, outcome.err
    table, signatures = outcome.out.rstrip("\n").split("\n\n")
    header, *rows = [line.split("\t") for line in table.split("\n")]
    assert header == ["system", "BLEU", "chrF2", "CPS", "decoding seconds"]
    assert [(row[0], row[3]) for row in rows] == [("one", "2.33"), ("two", "2.33")]
    alone = found(command_line("eval", two_runs[1], *files, "--json"))
    assert rows[1][1:3] == [f"{alone['bleu']:.2f}", f"{alone['chrf']:.2f}"]
    assert signatures.startswith("metric\tsignature\nBLEU\tnrefs:1|")


@pytest.mark.parametrize("method", ["bootstrap", "randomisation"])
def test_significance_of_runs_is_that_of_their_files(
    command_line, two_runs, files, method, tmp_path
):
    options = "--significance", method, "--samples", "50", "--json"
    one, two = found(command_line("eval", *two_runs, *files, *options))
    outputs = []
    for run in two_runs:
        outputs += ["--hypothesis", tmp_path / f"{run.name}.out"]
        command_line("eval", run, *files, "--output", outputs[-1])
    both = found(command_line("eval", *outputs, *files[2:], "--tokenize", "none", *options))
    assert [row["p_value"] for row in one["significance"]] == [None, None]
    wanted = {(row["metric"], row["system"]): row["p_value"] for row in both["significance"]}
    assert {(row["metric"], str(outputs[3])): row["p_value"] for row in two["significance"]} == {
        key: value for key, value in wanted.items() if key[1] == str(outputs[3])
    }
    table = command_line("eval", *two_runs, *files, *options[:-1]).out.split("\n\n")
    assert table[0].startswith("metric\tsystem\tscore\tmean\t95 % interval\tp-value\nBLEU\tone\t")
    assert table[1].startswith("system\tCPS\tdecoding seconds\none\t2.33\t")


def test_a_threshold_is_for_the_runs_that_have_one(command_line, make_tiny_run):
    runs = make_tiny_run("flexible", FlexibleConfig()), make_tiny_run("global", GlobalConfig())
    flexible, other = found(command_line("eval", *runs, "--tau", "0.5", "--json"))
    assert (flexible["tau"], "tau" in other) == (0.5, False)
    assert flexible["cps"] < other["cps"]


def test_runs_of_other_words_are_not_compared(command_line, two_runs, files):
    pipeline = TextPipeline.load(two_runs[1] / "pipeline")
    letters = Vocabulary(list("ABCDEFGH"), [1] * 8)
    target = SidePipeline("bb", build_tokenizer({"name": "char"}), None, letters)
    for path in (two_runs[1] / "pipeline").iterdir():
        path.unlink()
    TextPipeline(pipeline.source, target).save(two_runs[1] / "pipeline")
    outcome = command_line("eval", *two_runs)
    assert (outcome.code, outcome.out) == (2, "")
    assert (
        "two is scored in different words than one (segmenter:char, not segmenter:none)"
        in outcome.err
    )
    scored = found(command_line("eval", *two_runs, *files, "--wat", "en", "--json"))
    assert len(scored) == 2  # under one procedure they are
