"""``nmtflex eval``: a run and a split, or files; tables, one JSON object, a line a sentence."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BLEU = 100 * 0.2**0.25  # of "a b c d e" against "a b c d f": 4/5, 3/4, 2/3 and 1/2 match
TINY_KYTEA = Path(__file__).parents[1] / "fixtures/tiny.kytea"


@pytest.fixture
def file(tmp_path):
    def write(name, *lines):
        path = tmp_path / name
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    return write


@pytest.fixture
def pair(file):
    hypothesis, reference = file("out.ja", "a b c d e"), file("test.ja", "a b c d f")
    return "--hypothesis", hypothesis, "--reference", reference


@pytest.fixture
def full_run(tiny_run):
    """A run whose test split has no empty reference."""
    target = tiny_run / "raw" / "test.target.txt"
    target.write_text("A B C\nA\nC A B B\n", encoding="utf-8")
    return tiny_run


def rows_of(outcome):
    """Return the tables of an outcome, each a list of rows."""
    assert outcome.code == 0, outcome.err
    tables = outcome.out.rstrip("\n").split("\n\n")
    return [[line.split("\t") for line in table.split("\n")] for table in tables]


def test_two_files_as_json(command_line, pair):
    outcome = command_line("eval", *pair, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.count("\n") == 1
    found = json.loads(outcome.out)
    assert found["bleu"] == pytest.approx(BLEU)
    assert found["chrf"] == pytest.approx(100 * (4 / 5 + 3 / 4 + 2 / 3 + 1 / 2 + 0) / 5)
    assert "|tok:13a|" in found["signature"]
    assert found["sentences"] == 1
    assert {"chrf_signature", "seconds", "precisions", "brevity_penalty"} <= set(found)
    assert not {"ter", "ribes", "cps", "systems", "significance", "by_length"} & set(found)


def test_two_files_as_a_table(command_line, pair):
    outcome = command_line("eval", *pair)
    (rows,) = rows_of(outcome)
    assert [row[0] for row in rows] == ["metric", "BLEU", "chrF2"]
    assert rows[1][1] == "66.87"
    assert rows[1][2].startswith("nrefs:1|case:mixed|eff:no|tok:13a|")
    assert outcome.err == ""


def test_signatures_are_whole_on_a_terminal(command_line, pair, monkeypatch):
    outcome = command_line("eval", *pair, "--wat", "en")
    (rows,) = rows_of(outcome)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    drawn = command_line("eval", *pair, "--wat", "en").out
    cells = [line.split("│")[3].strip() for line in drawn.splitlines() if line.startswith("│")]
    assert "".join(cells) == "".join(row[2] for row in rows[1:])


def test_all_scores_of_two_files(command_line, pair):
    found = json.loads(command_line("eval", *pair, "--ribes", "--ter", "--json").out)
    assert found["ribes"] == pytest.approx(0.8**0.25)
    assert found["ter"] == pytest.approx(20)
    assert found["ribes_signature"].startswith("nrefs:1|case:lc|alpha:0.25|beta:0.1|ribes:1.03.1|")
    assert "tok:tercom" in found["ter_signature"]
    (rows,) = rows_of(command_line("eval", *pair, "--ribes", "--ter"))
    assert [row[:2] for row in rows[3:]] == [["TER", "20.00"], ["RIBES", "0.9457"]]


def test_case(command_line, file):
    files = "--hypothesis", file("h", "A b c d e"), "--reference", file("r", "a b c d e")
    found = json.loads(command_line("eval", *files, "--ribes", "--case-sensitive", "--json").out)
    assert (found["bleu"], found["ribes"]) == pytest.approx((BLEU, 0.8**0.25))
    found = json.loads(command_line("eval", *files, "--ribes", "--lowercase", "--json").out)
    assert (found["bleu"], found["ribes"]) == (100, 1)


def test_several_references(command_line, pair, file):
    other = file("other", "a b c d e")
    found = json.loads(command_line("eval", *pair, "--reference", other, "--ribes", "--json").out)
    assert (found["bleu"], found["ribes"]) == (100, 1)
    assert found["signature"].startswith("nrefs:2|")


@pytest.mark.parametrize("tokenize", ["none", "char", "intl", "zh", "ja-mecab"])
def test_tokenizers(command_line, pair, tokenize):
    found = json.loads(command_line("eval", *pair, "--tokenize", tokenize, "--ribes", "--json").out)
    assert f"|tok:{tokenize}" in found["signature"]
    assert f"|segmenter:{tokenize}" in found["ribes_signature"]


def test_text_without_spaces_gets_a_warning(command_line, file):
    path = file("test.ja", "空白のない文がここにあります")
    files = "--hypothesis", path, "--reference", path
    outcome = command_line("eval", *files, "--json")
    assert outcome.err.startswith(f"nmtflex: warning: {path}: text without spaces")
    assert outcome.err.endswith("--tokenize ja-mecab or char, or --wat ja\n")
    assert json.loads(outcome.out)["sentences"] == 1
    assert command_line("eval", *files, "--tokenize", "char").err == ""


def test_tokenized_text_gets_a_warning(command_line, file):
    path = file("out.en", "it ended .")
    files = "--hypothesis", path, "--reference", file("r", "it ended.")
    outcome = command_line("eval", *files)
    assert outcome.err.startswith(f"nmtflex: warning: {path}: looks tokenized")
    assert outcome.err.endswith("--tokenize none\n")
    assert command_line("eval", *files, "--tokenize", "none").err == ""


def test_wat_in_japanese(command_line, file):
    pytest.importorskip("vaporetto")
    files = (
        "--hypothesis",
        file("h", "彼 は東京へ行く。［１］"),
        "--reference",
        file("r", "彼は東京へ行く。"),
    )
    outcome = command_line("eval", *files, "--wat", "ja", "--kytea-model", TINY_KYTEA, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    found = json.loads(outcome.out)
    assert (found["bleu"], found["ribes"]) == (100, 1)
    for name in ("signature", "ribes_signature"):
        assert "ja|segmenter:kytea-vaporetto-" in found[name]
        assert "|model:" in found[name]
    outcome = command_line("eval", *files, "--wat", "ja", "--segmenter", "mecab", "--json")
    assert "variant:mecab|segmenter:mecab-ipadic-" in json.loads(outcome.out)["signature"]


def test_a_run_brings_its_model_for_wat(command_line, full_run):
    pytest.importorskip("vaporetto")
    options = full_run, "--wat", "ja", "--json"
    outcome = command_line("eval", *options)
    assert outcome.code == 2
    assert outcome.err.startswith("nmtflex: error: --wat ja needs --kytea-model FILE")
    assert str(full_run) in outcome.err
    given = json.loads(command_line("eval", *options, "--kytea-model", TINY_KYTEA).out)
    shutil.copy(TINY_KYTEA, full_run / "pipeline" / "target.kytea")
    found = json.loads(command_line("eval", *options).out)
    for key in ("bleu", "ribes", "signature", "ribes_signature"):
        assert found[key] == given[key]
    assert "segmenter:kytea-vaporetto-" in found["signature"]


def test_wat_in_english(command_line, file):
    files = "--hypothesis", file("h", "Ａ b, c d e"), "--reference", file("r", "A b , c d e")
    found = json.loads(command_line("eval", *files, "--wat", "en", "--json").out)
    assert (found["bleu"], found["ribes"]) == (100, 1)


def test_several_systems(command_line, pair, file):
    better = file("better", "a b c d f")
    rows, signatures = rows_of(command_line("eval", *pair, "--hypothesis", better, "--ribes"))
    assert rows[0] == ["system", "BLEU", "chrF2", "RIBES"]
    assert rows[1][:2] == [str(pair[1]), "66.87"]
    assert rows[2] == [str(better), "100.00", "100.00", "1.0000"]
    assert [row[0] for row in signatures] == ["metric", "BLEU", "chrF2", "RIBES"]
    outcome = command_line("eval", *pair, "--hypothesis", better, "--json")
    systems = json.loads(outcome.out)["systems"]
    assert [system["system"] for system in systems] == [str(pair[1]), str(better)]
    assert [system["bleu"] for system in systems] == pytest.approx([BLEU, 100])


@pytest.fixture
def systems(file):
    """A system that is right, one that is not, and the reference: 40 sentences."""
    right = [f"a b c d e {number}" for number in range(40)]
    wrong = [line.replace("c d", "d c") for line in right]
    return file("right", *right), file("wrong", *wrong), file("reference", *right)


@pytest.mark.parametrize(
    ("method", "number", "count"), [("bootstrap", "1000", 1000), ("randomisation", "500", 500)]
)
def test_significance(command_line, systems, method, number, count):
    right, wrong, reference = systems
    files = ["--reference", reference]
    for path in (right, wrong, right):
        files += ["--hypothesis", path]
    samples = ["--samples", number] if method == "randomisation" else []
    outcome = command_line("eval", *files, "--significance", method, *samples, "--ribes", "--json")
    found = json.loads(outcome.out)
    rows = {(row["metric"], row["system"]): row for row in found["significance"]}
    names = [str(right), str(wrong), f"{right} (2)"]
    assert list(rows) == [(metric, name) for metric in ("BLEU", "chrF2", "RIBES") for name in names]
    for metric in ("BLEU", "chrF2", "RIBES"):
        assert rows[metric, names[0]]["p_value"] is None
        assert rows[metric, names[1]]["p_value"] == pytest.approx(1 / (count + 1))
        assert rows[metric, names[2]]["p_value"] == 1
    row = rows["BLEU", names[1]]
    assert row["score"] == found["systems"][1]["bleu"]
    assert row["interval"][0] <= row["mean"] <= row["interval"][1]
    trials = "" if method == "bootstrap" else "ar:500|"
    assert f"|bs:1000|{trials}seed:12345|" in row["signature"]


def test_significance_as_a_table(command_line, systems):
    right, wrong, reference = systems
    files = "--hypothesis", right, "--hypothesis", wrong, "--reference", reference
    options = "--significance", "bootstrap", "--samples", "99", "--seed", "7"
    rows, signatures = rows_of(command_line("eval", *files, *options))
    assert rows[0] == ["metric", "system", "score", "mean", "95 % interval", "p-value"]
    assert rows[1] == ["BLEU", str(right), "100.00", "100.00", "100.00-100.00", ""]
    assert rows[2][-1] == "0.0100"
    assert "|bs:99|seed:7|" in signatures[1][1]


def test_interval_of_one_system(command_line, pair):
    outcome = command_line("eval", *pair, "--significance", "bootstrap", "--samples", "10")
    (rows,) = rows_of(outcome)
    assert rows[0] == ["metric", "score", "mean", "95 % interval", "signature"]
    assert rows[1][:4] == ["BLEU", "66.87", "66.87", "66.87-66.87"]


def test_by_length(command_line, file):
    files = (
        "--hypothesis", file("h", "a b c d e", "a b c d e", "a"),
        "--reference", file("r", "a b c d e", "a b c d f", "a"),
        "--source", file("s", "x y z", " ".join("x" * 11), ""),
    )  # fmt: skip
    _, rows = rows_of(command_line("eval", *files, "--by-length"))
    assert rows[0] == ["source tokens", "sentences", "BLEU"]
    assert rows[1:4] == [["0", "1", "0.00"], ["1-10", "1", "100.00"], ["11-20", "1", "66.87"]]
    found = json.loads(command_line("eval", *files, "--by-length", "--json").out)
    assert found["by_length"][2]["bleu"] == pytest.approx(BLEU)
    assert found["by_length"][-1] == {
        "label": ">50", "low": 51, "high": None, "sentences": 0, "bleu": None
    }  # fmt: skip


def test_source_without_spaces_gets_a_warning(command_line, pair, file):
    source = file("s", "空白のない文がここにあります")
    outcome = command_line("eval", *pair, "--by-length", "--source", source)
    assert f"warning: {source}: text without spaces" in outcome.err


def read_table(path):
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t"))


def test_sentence_scores(command_line, file, tmp_path):
    scores = tmp_path / "scores.tsv"
    files = "--hypothesis", file("h", "a b c d e", ""), "--reference", file("r", "a b c d f", "a")
    outcome = command_line(
        "eval", *files, "--ribes", "--ter", "--sentence-scores", scores, "--json"
    )
    first, second = read_table(scores)
    assert list(first) == [
        "index", "bleu", "chrf", "ribes", "ter", "hypothesis_length", "reference_length"
    ]  # fmt: skip
    assert first["bleu"] == repr(float(first["bleu"]))  # unrounded
    assert float(first["bleu"]) == pytest.approx(BLEU)
    assert (first["index"], first["hypothesis_length"]) == ("0", "5")
    assert (second["index"], second["ribes"], second["ter"]) == ("1", "0.0", "100.0")
    found = json.loads(outcome.out)
    assert found["sentence_scores"] == str(scores)
    assert "|eff:yes|tok:13a|smooth:exp|" in found["sentence_bleu_signature"]
    assert f"{scores}: scores of 2 sentences; BLEU nrefs:1|" in outcome.err
    assert [path.name for path in tmp_path.iterdir()].count("scores.tsv") == 1


def test_run(command_line, tiny_run, tmp_path):
    output = tmp_path / "out.txt"
    outcome = command_line("eval", tiny_run, "--json", "--beam", "2", "--output", output)
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    facts = {key: found[key] for key in ("run", "split", "beam", "update", "sentences")}
    assert facts == {
        "run": str(tiny_run),
        "split": "test",
        "beam": 2,
        "update": 1,
        "sentences": 3,
    }
    lines = output.read_text(encoding="utf-8").split("\n")
    assert len(lines) == 4
    assert lines[1] == lines[3] == ""
    assert "3 sentences of test translated with beam 2" in outcome.err
    # The run's words are parted at spaces: the same numbers come from its output as a file.
    pair = "--hypothesis", output, "--reference", tiny_run / "raw" / "test.target.txt"
    again = json.loads(command_line("eval", *pair, "--tokenize", "none", "--json").out)
    assert (found["bleu"], found["chrf"]) == (again["bleu"], again["chrf"])
    assert found["signature"] == again["signature"] + "|segmenter:none"


def test_run_as_a_table(command_line, tiny_run):
    (rows,) = rows_of(command_line("eval", tiny_run, "--split", "test"))
    assert [row[0] for row in rows] == ["metric", "BLEU", "chrF2", "CPS"]
    assert rows[3][1:] == ["3.50", "score computations a step"]  # of sources of 3 and 4 words


def test_every_option_of_a_run(command_line, full_run, tmp_path):
    output, scores = tmp_path / "out.txt", tmp_path / "scores.tsv"
    outcome = command_line(
        "eval", full_run, "--ribes", "--case-sensitive", "--ter", "--lowercase", "--by-length",
        "--significance", "bootstrap", "--samples", "10", "--sentence-scores", scores,
        "--output", output, "--json",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    pair = "--hypothesis", output, "--reference", full_run / "raw" / "test.target.txt"
    again = json.loads(
        command_line(
            "eval", *pair, "--tokenize", "none", "--ribes", "--case-sensitive", "--ter",
            "--lowercase", "--significance", "bootstrap", "--samples", "10", "--json",
            "--by-length", "--source", full_run / "raw" / "test.source.txt",
        ).out
    )  # fmt: skip
    for key in ("bleu", "chrf", "ter", "ribes", "by_length", "ribes_signature", "ter_signature"):
        assert found[key] == again[key], key
    assert [row["interval"] for row in found["significance"]] == [
        row["interval"] for row in again["significance"]
    ]
    assert [row["source_length"] for row in read_table(scores)] == ["3", "0", "4"]
    assert found["cps"] == 3.5


def test_run_by_wat(command_line, full_run, tmp_path):
    output = tmp_path / "out.txt"
    options = "--wat", "ja", "--segmenter", "mecab", "--json"
    found = json.loads(command_line("eval", full_run, "--output", output, *options).out)
    pair = "--hypothesis", output, "--reference", full_run / "raw" / "test.target.txt"
    again = json.loads(command_line("eval", *pair, *options).out)
    for key in ("bleu", "chrf", "ribes", "signature", "ribes_signature"):
        assert found[key] == again[key]


def test_scoring_files_loads_no_torch(pair):
    program = (
        "import sys\n"
        "from nmtflex.cli.app import main\n"
        "code = main(sys.argv[1:])\n"
        "sys.exit('torch' if 'torch' in sys.modules else code)\n"
    )
    options = ["--ribes", "--ter", "--significance", "bootstrap", "--samples", "2"]
    command = [sys.executable, "-c", program, "eval", *map(str, pair), *options]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
