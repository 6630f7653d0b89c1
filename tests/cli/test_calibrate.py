"""nmtflex calibrate, and translate --word-scores."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import nmtflex
from nmtflex.config import AttentionConfig, GlobalConfig, NoneConfig

PLACE = ("--threads", 1, "--device", "cpu", "--dtype", "float64")
LOAD = {"threads": 1, "device": "cpu", "dtype": "float64"}
DRAW = random.Random(3)
SOURCES = [" ".join(DRAW.choices("abcdefgh", k=DRAW.randrange(1, 8))) for _ in range(40)]


def add_valid(run: Path, search: Path | None = None) -> None:
    """Give a run validation data: its own translations, with every third word another one."""
    translator = nmtflex.load(run if search is None else [run, search], **LOAD, max_length=12)
    places = iter(range(10**6))
    references = [
        " ".join("Z" if next(places) % 3 == 0 else word for word in best.words)
        for (best,) in translator.n_best(SOURCES, 1)
    ]
    for side, lines in (("source", SOURCES), ("target", references)):
        (run / "raw" / f"valid.{side}.txt").write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture
def run(make_tiny_run) -> Path:
    path = make_tiny_run("run", GlobalConfig())
    add_valid(path)
    return path


def calibrated(command_line, *arguments: object) -> dict:
    outcome = command_line("calibrate", *arguments, *PLACE, "--max-length", 12, "--json")
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out)


def test_it_fits_writes_and_reports(command_line, run) -> None:
    found = calibrated(command_line, run)
    assert (found["split"], found["held_out"]) == ("valid", True)
    words = found["words"]
    assert words["share"] == pytest.approx(2 / 3, abs=0.02)
    assert sum(one["size"] for one in words["bins"]) == words["size"]
    file = json.loads((run / "confidence.json").read_text())
    assert (file["format"], file["split"], file["beam"]) == (1, "valid", 5)
    assert (file["auc"], file["words"]) == (words["auc"], words["size"])
    weights = {name: feature["weight"] for name, feature in file["features"].items()}
    assert found["weights"] == weights
    assert calibrated(command_line, run) == found  # to the last bit
    best = [best for (best,) in nmtflex.load(run, **LOAD, max_length=12).n_best(SOURCES, 1)]
    assert words["size"] == sum(len(one.words) for one in best)
    # A bias without penalty makes the mean over the words of the data what is right of them.
    scored = nmtflex.load(run, **LOAD, max_length=12).n_best(SOURCES, 1, word_scores=True)
    scores = [score for (one,) in scored for score in one.word_scores]
    assert sum(scores) / len(scores) == pytest.approx(words["share"], abs=1e-6)


def test_check_measures_what_was_fitted(command_line, run) -> None:
    calibrated(command_line, run)
    before = (run / "confidence.json").read_bytes()
    checked = calibrated(command_line, run, "--check", "valid")
    assert (checked["split"], checked["held_out"]) == ("valid", False)
    assert checked["words"]["auc"] >= 0.5  # of the words it was fitted on
    assert (run / "confidence.json").read_bytes() == before


def test_the_table_has_the_same_numbers(command_line, run) -> None:
    found = calibrated(command_line, run)
    outcome = command_line("calibrate", run, *PLACE, "--max-length", 12)
    cells = outcome.out.replace("\n", "\t").split("\t")
    assert f"{found['words']['auc']:.4f}" in cells
    assert f"{found['sentences']['error']:.4f}" in cells
    assert f"{found['words']['bins'][-1]['share']:.3f}" in cells
    assert f"replaced {run / 'confidence.json'}" in outcome.err


def test_a_figure_is_drawn(command_line, run, tmp_path) -> None:
    pytest.importorskip("matplotlib")
    calibrated(command_line, run, "--out", tmp_path / "reliability.svg")
    assert "Reliability" in (tmp_path / "reliability.svg").read_text()


@pytest.mark.parametrize("kind", ["none", "memory", "monotonic"])
def test_other_mechanisms(command_line, make_tiny_run, kind) -> None:
    run = make_tiny_run("run", AttentionConfig.variants()[kind](), decoder="luong")
    add_valid(run)
    found = calibrated(command_line, run)
    assert (found["bound"] is None) == (kind == NoneConfig.kind)
    assert ("shared" in found["weights"]) == (kind != NoneConfig.kind)
    [[best]] = nmtflex.load(run, **LOAD).n_best(["a b c"], 1, word_scores=True)
    assert len(best.word_scores) == len(best.words)


def test_several_runs_are_calibrated_together(command_line, make_tiny_run) -> None:
    runs = [make_tiny_run("one", GlobalConfig()), make_tiny_run("two", GlobalConfig(), seed=2)]
    add_valid(*runs)
    calibrated(command_line, *runs)
    assert not (runs[1] / "confidence.json").exists()
    assert nmtflex.load(runs, **LOAD).n_best(["a"], 1, word_scores=True)


@pytest.mark.parametrize(
    ("options", "values"),
    [
        (("--check", "test", "--split", "valid"), ("--split valid", "--check")),
        (("--replace-unk",), ("--replace-unk",)),
        (("--out", "figure.doc"), ("figure.doc", ".svg")),
    ],
)
def test_options_without_effect(command_line, run, options, values) -> None:
    outcome = command_line("calibrate", run, *options, *PLACE)
    assert (outcome.code, outcome.out) == (2, "")
    assert all(value in outcome.err for value in values)


@pytest.mark.parametrize(
    ("options", "values"),
    [
        (("--split", "test"), ("20", "2")),  # two sentences with words
        (("--check", "valid"), ("confidence.json", "nmtflex calibrate")),
    ],
)
def test_what_cannot_be_fitted_or_checked(command_line, run, options, values) -> None:
    outcome = command_line("calibrate", run, *options, *PLACE)
    assert (outcome.code, outcome.out) == (1, "")
    assert all(value in outcome.err for value in values)
    assert not (run / "confidence.json").exists()


def test_words_that_are_all_wrong(command_line, run) -> None:
    (run / "raw" / "valid.target.txt").write_text("Z\n" * len(SOURCES))
    outcome = command_line("calibrate", run, *PLACE)
    assert (outcome.code, outcome.out) == (1, "")
    assert "words are wrong" in outcome.err


@pytest.fixture
def source(tmp_path) -> Path:
    path = tmp_path / "source.aa"
    path.write_text("a b c\n\nh g f ? d\nb . a\n")
    return path


def scored(command_line, file: Path, *arguments: object) -> tuple[list[str], list[dict]]:
    outcome = command_line("translate", *arguments, *PLACE, "--word-scores", file)
    assert outcome.code == 0, outcome.err
    return outcome.out.splitlines(), [json.loads(line) for line in file.read_text().splitlines()]


def test_translate_writes_scores(command_line, run, source, tmp_path) -> None:
    calibrated(command_line, run)
    texts, records = scored(command_line, tmp_path / "scores", run, "-i", source)
    found = nmtflex.load(run, **LOAD).n_best(source.read_text().splitlines(), 1, word_scores=True)
    for text, record, (best,) in zip(texts, records, found, strict=True):
        assert (record["text"], record["words"]) == (text, best.words)
        assert [text[start:end] for start, end in record["spans"]] == best.words
        assert record["scores"] == [round(score, 6) for score in best.word_scores]
        for name in ("confidence", "unaligned"):
            assert record[name] == pytest.approx(getattr(best, name), abs=1e-6)
    assert records[1] == {
        "text": "", "words": [], "spans": [], "scores": [], "confidence": None, "unaligned": None,
    }  # fmt: skip


@pytest.mark.slow
def test_workers_and_buffers_change_nothing(command_line, run, source, tmp_path) -> None:
    calibrated(command_line, run)
    files = []
    for number, options in enumerate(([], ["--workers", 2], ["--buffer", 1])):
        files.append(scored(command_line, tmp_path / f"{number}", run, "-i", source, *options))
    assert files[0] == files[1] == files[2]


def test_every_translation_of_the_n_best_has_scores(command_line, run, source, tmp_path) -> None:
    calibrated(command_line, run)
    options = ("--n-best", 3, "--format", "json", "-i", source)
    lines, records = scored(command_line, tmp_path / "scores", run, *options)
    texts = [one["text"] for line in lines for one in json.loads(line)["translations"]]
    assert [record["text"] for record in records] == texts
    assert len(texts) == 3 * 3 + 1


def test_sentences_of_a_line_are_joined(command_line, run, tmp_path) -> None:
    calibrated(command_line, run)
    source = tmp_path / "lines"
    source.write_text("a b bee . c bee .\n")
    options = ("--split", "sentences", "-i", source)
    [text], [record] = scored(command_line, tmp_path / "scores", run, *options)
    alone = nmtflex.load(run, **LOAD).n_best(["a b bee .", "c bee ."], 1, word_scores=True)
    parts = [part for (part,) in alone]
    assert record["text"] == text
    assert record["words"] == [word for part in parts for word in part.words]
    scores = [score for part in parts for score in part.word_scores]
    assert record["scores"] == pytest.approx(scores, abs=1e-6)
    assert record["confidence"] == pytest.approx(sum(scores) / len(scores), abs=1e-6)
    ratio = sum(part.unaligned * len(part.words) for part in parts) / len(scores)
    assert record["unaligned"] == pytest.approx(ratio, abs=1e-6)


def test_scores_need_a_calibration_and_a_file_of_their_own(
    command_line, run, source, tmp_path
) -> None:
    out = tmp_path / "out"
    asked = ("translate", run, "-i", source, "-o", out, "--word-scores")
    outcome = command_line(*asked, tmp_path / "scores", *PLACE)
    assert outcome.code == 1
    assert f"nmtflex calibrate {run}" in outcome.err
    assert not out.exists()
    assert not (tmp_path / "scores").exists()
    outcome = command_line(*asked, source, *PLACE)
    assert outcome.code == 2
    assert f"--word-scores {source} is the --input file" in outcome.err


@pytest.mark.parametrize(("form", "kept"), [("float32", True), ("float16", False)])
def test_an_export_is_calibrated_if_its_weights_are_the_same(command_line, run, form, kept):
    calibrated(command_line, run)
    done = command_line("export", run, "--weights", form)
    made = run.with_name(f"run-{form}")
    assert (made / "confidence.json").exists() == kept
    assert (f"nmtflex calibrate {made}" in done.err) != kept
    if kept:
        found = [
            nmtflex.load(path, **LOAD).n_best(["a b"], 1, word_scores=True) for path in (made, run)
        ]
        assert found[0] == found[1]
