"""Thresholds, CPS, attention files and unknown words, through the commands."""

from __future__ import annotations

import csv
import io
import json
import math
import random
import shutil
from pathlib import Path

import pytest
import torch

import nmtflex
from nmtflex.cli.app import main
from nmtflex.config import AttentionConfig
from nmtflex.errors import OptionError
from nmtflex.model.weights import load_tensors, save_tensors

pytestmark = pytest.mark.integration

MODEL = ["--embedding-size", 6, "--encoder-size", 4, "--decoder-size", 8, "--lr", 0.02]
PLACE = ["--threads", 1, "--device", "cpu"]
KINDS = list(AttentionConfig.variants())
ODD_LINES = ["a b c", "", "   ", "zebra <unk> </s>", "a " * 300, "c\u3000b", "f e d", "quagga"]
SMALL_TAU = 0.05


def call(*arguments: object) -> None:
    assert main([str(argument) for argument in arguments]) == 0


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """Letters to capitals; most target words of the training are seen once, and so unknown."""
    folder = tmp_path_factory.mktemp("thresholds")
    draw = random.Random(3)
    for split, count in {"train": 60, "valid": 8, "test": 10}.items():
        lines = [draw.choices("abcdef", k=draw.randint(1, 9)) for _ in range(count)]
        texts = {"lo": lines, "up": [[word.upper() for word in line] for line in lines]}
        if split == "train":
            texts["up"] = [
                [f"rare{draw.random()}" if draw.random() < 0.7 else word for word in line]
                for line in texts["up"]
            ]
        for language, words in texts.items():
            text = "".join(" ".join(line) + "\n" for line in words)
            (folder / f"{split}.{language}").write_text(text)
    splits = [
        item for split in ("train", "valid", "test") for item in (f"--{split}", folder / split)
    ]
    languages = ["--source-lang", "lo", "--target-lang", "up"]
    call("preprocess", *splits, *languages, "--min-frequency", 2, "--out", folder / "prepared")
    return folder


@pytest.fixture(scope="module")
def run_of(corpus):
    """Return a tiny run of a mechanism, trained once."""

    def make(kind: str) -> Path:
        run = corpus / f"run-{kind}"
        if not run.exists():
            options = ["--attention", kind, "--updates", 12, "--batch-sentences", 16]
            if kind == "memory":
                options += ["--K", 3]
            call("train", corpus / "prepared", "--run", run, *MODEL, *options, *PLACE)
        return run

    return make


@pytest.fixture
def flexible(run_of) -> Path:
    return run_of("flexible")


@pytest.fixture
def feed(monkeypatch):
    def put(lines: list[str]) -> None:
        data = "".join(f"{line}\n" for line in lines).encode()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))

    return put


@pytest.fixture
def translate(command_line, feed):
    """Return the lines that a run makes of lines, and what was said beside."""

    def run(folder, lines, *options):
        feed(lines)
        outcome = command_line("translate", folder, "--max-length", 12, *PLACE, *options)
        assert outcome.code == 0, outcome.err
        found = outcome.out.split("\n")
        assert found.pop() == ""
        assert len(found) == len(lines)
        return found, outcome.err

    return run


@pytest.fixture
def evaluate(command_line):
    def run(folder, *options):
        outcome = command_line("eval", folder, "--json", "--beam", 2, *PLACE, *options)
        assert outcome.code == 0, outcome.err
        return json.loads(outcome.out)

    return run


def source_lines(corpus: Path, split: str) -> list[str]:
    return (corpus / f"{split}.lo").read_text().splitlines()


def mean_length(lines: list[str]) -> float:
    lengths = [len(line.split()) for line in lines if line.split()]
    return sum(lengths) / len(lengths)


def test_an_infinite_threshold_is_none(flexible, evaluate, translate, corpus):
    plain, infinite = evaluate(flexible), evaluate(flexible, "--tau", "inf")
    assert plain["cps"] == pytest.approx(mean_length(source_lines(corpus, "test")))
    assert plain["encoding_computations"] == 0
    assert "tau" not in plain
    assert infinite.pop("tau") == "inf"
    for found in (plain, infinite):
        assert found.pop("seconds") > found.pop("decoding_seconds") > 0
    assert infinite == plain
    lines = translate(flexible, ODD_LINES)[0]
    assert translate(flexible, ODD_LINES, "--tau", "inf")[0] == lines


def test_a_small_threshold_computes_less(flexible, evaluate, corpus):
    found = [evaluate(flexible, "--tau", tau) for tau in ("0", SMALL_TAU, "auto", 100000)]
    cps = [scores["cps"] for scores in found]
    assert cps[0] == 1.0
    assert cps == sorted(cps)
    assert cps[1] < cps[2] <= cps[3] == pytest.approx(mean_length(source_lines(corpus, "test")))
    mean = mean_length(source_lines(corpus, "valid"))
    assert found[2]["tau"] == pytest.approx(math.log10(mean), rel=1e-12)
    assert found[1]["tau"] == SMALL_TAU


def test_the_table_names_the_computations(flexible, run_of, command_line):
    for run, encoding in ((flexible, False), (run_of("memory"), True)):
        outcome = command_line("eval", run, "--beam", 2, *PLACE)
        rows = [line.split("\t") for line in outcome.out.splitlines()]
        names = ["metric", "BLEU", "chrF2", "CPS"] + ["encoding"] * encoding
        assert [row[0] for row in rows] == names
        assert float(rows[3][1]) > 1


def test_memory_reports_its_encoding_apart(run_of, evaluate, corpus):
    found = evaluate(run_of("memory"))
    assert found["cps"] == 3
    mean = mean_length(source_lines(corpus, "test"))
    assert found["encoding_computations"] == pytest.approx(3 * mean)


def test_score_under_a_threshold_is_what_the_search_reports(
    flexible, command_line, translate, corpus, tmp_path
):
    sources = source_lines(corpus, "test")
    options = ["--tau", SMALL_TAU, "--dtype", "float64"]
    found, _ = translate(flexible, sources, "--format", "json", *options)
    best = [json.loads(line)["translations"][0] for line in found]
    # The text "<unk>" of an output would be read as the one word, unknown too.
    (tmp_path / "s").write_text("".join(f"{line}\n" for line in sources))
    (tmp_path / "t").write_text("".join(f"{item['text']}\n" for item in best))
    files = ["--source", tmp_path / "s", "--target", tmp_path / "t", "--dtype", "float64", *PLACE]

    def scores(*more) -> list[float]:
        outcome = command_line("score", flexible, *files, *more)
        assert outcome.code == 0, outcome.err
        return [float(line) for line in outcome.out.splitlines()]

    expected = [item["log_probability"] for item in best]
    assert scores("--tau", SMALL_TAU) == pytest.approx(expected, rel=1e-9)
    assert scores("--tau", "inf") == scores()
    assert scores() != pytest.approx(expected, rel=1e-4)


@pytest.fixture
def self_taught(flexible, translate, corpus, tmp_path) -> Path:
    """A run with random weights and what it says itself without a threshold as references.

    So its BLEU is not 0, and falls with tau.
    """
    run = tmp_path / "self-taught"
    shutil.copytree(flexible, run)
    best = run / "checkpoints" / "best.safetensors"
    tensors, about = load_tensors(best)
    draw = torch.Generator().manual_seed(3)
    drawn = {name: torch.randn(x.shape, generator=draw) for name, x in sorted(tensors.items())}
    save_tensors(best, drawn, about)
    for split in ("valid", "test"):
        lines, _ = translate(run, source_lines(corpus, split), "--beam", 2)
        (run / "raw" / f"{split}.target.txt").write_text("".join(f"{x or 'A'}\n" for x in lines))
    return run


def sweep_options(tmp_path: Path) -> list[object]:
    files = ["--output", tmp_path / "v1.5"]
    return ["--tau", "1, 0.1,inf", "--beam", 2, "--max-length", 12, *files, *PLACE]


def test_sweep_as_json(self_taught, command_line, evaluate, tmp_path):
    outcome = command_line(
        "sweep",
        self_taught,
        *sweep_options(tmp_path),
        "--within",
        0.5,
        "--split",
        "valid",
        "--json",
    )
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    assert (found["run"], found["split"]) == (str(self_taught), "valid")
    assert [point["tau"] for point in found["points"]] == [0.1, 1.0, "inf"]
    for point in found["points"]:
        options = ["--split", "valid", "--max-length", 12]
        scores = evaluate(self_taught, *options, "--tau", point["tau"])
        for name in ("bleu", "cps", "sentences"):
            assert point[name] == scores[name], name
        assert 0 <= point["ribes"] <= 1
        assert point["seconds"] > 0
    allowed = found["points"][-1]["bleu"] - 0.5
    assert 0 < found["points"][0]["bleu"] < allowed  # so the smallest is not the chosen one
    good = [point for point in found["points"] if point["bleu"] >= allowed]
    assert found["chosen"] == good[0]
    assert good[0]["tau"] == 1.0
    assert "tau 1 is the smallest that loses at most 0.5 BLEU on valid" in outcome.err
    assert_files(tmp_path / "v1.5", found["points"])
    assert f"wrote {tmp_path / 'v1.5.csv'} and {tmp_path / 'v1.5.png'}" in outcome.err


def assert_files(base: Path, points: list[dict]) -> None:
    with base.with_name(base.name + ".csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["tau"]) for row in rows] == [float(point["tau"]) for point in points]
    for name in ("bleu", "ribes", "cps", "seconds", "sentences"):
        assert [float(row[name]) for row in rows] == [point[name] for point in points]
    assert base.with_name(base.name + ".png").read_bytes().startswith(b"\x89PNG")


def test_sweep_as_a_table(self_taught, command_line, tmp_path):
    outcome = command_line("sweep", self_taught, *sweep_options(tmp_path))
    assert outcome.code == 0, outcome.err
    rows = [line.split("\t") for line in outcome.out.splitlines()]
    assert rows[0] == ["tau", "BLEU", "RIBES", "CPS", "seconds"]
    assert [row[0] for row in rows[1:]] == ["0.1", "1", "inf"]
    assert {len(row) for row in rows} == {5}
    assert all(float(cell) >= 0 for row in rows[1:] for cell in row)

    outcome = command_line("sweep", self_taught, *sweep_options(tmp_path), "--within", 100)
    rows = [line.split("\t") for line in outcome.out.splitlines()]
    assert rows[0][-1] == "choice"
    assert [row[-1] for row in rows[1:]] == ["smallest within 100.0", "", ""]


def test_sweep_without_inf_measures_it_where_it_chooses(self_taught, command_line, tmp_path):
    options = ["--tau", "auto", "--beam", 1, "--json", *PLACE]
    found = [
        json.loads(command_line("sweep", self_taught, *options, *more).out)
        for more in ([], ["--within", 2])
    ]
    assert [len(one["points"]) for one in found] == [1, 2]
    assert found[0]["chosen"] is None
    assert found[1]["points"][1]["tau"] == "inf"
    assert (self_taught / "sweep-test-beam1.csv").is_file()
    assert (self_taught / "sweep-test-beam1.png").is_file()


def test_sweep_against_a_baseline(self_taught, command_line):
    options = ["--tau", "0.1,1", "--beam", 1, "--json", "--within", 0.5, *PLACE]
    outcome = command_line("sweep", self_taught, *options, "--baseline", 0)
    found = json.loads(outcome.out)
    assert [point["tau"] for point in found["points"]] == [0.1, 1.0]  # inf is not needed
    assert found["chosen"] == found["points"][0]
    outcome = command_line("sweep", self_taught, *options, "--baseline", 100)
    best = max(found["points"], key=lambda point: point["bleu"])
    assert json.loads(outcome.out)["chosen"] is None
    assert (
        f"every threshold loses more than 0.5 BLEU against 100 on test; the best is tau "
        f"{best['tau']:.4g} with {best['bleu']:.2f}\n"
    ) in outcome.err


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--baseline", "30.5"], 2, "--baseline 30.5 has no effect without --within"),
        (["--tau", "0.5,some"], 2, "--tau must be a number of at least 0, inf or auto, not 'some'"),
        (["--tau", ""], 2, "--tau must be a number of at least 0, inf or auto, not ''"),
        (["--tau", "-1"], 2, "--tau must be a number of at least 0, inf or auto, not '-1'"),
        (["--within", "-0.5"], 2, "--within must be at least 0, not -0.5"),
        (["--split", "dev"], 1, "{run} has no split 'dev'; there is test and valid"),
        (["--output", "{run}/no/such"], 2, "--output {run}/no/such: there is no folder {run}/no"),
    ],
)
def test_wrong_options_of_sweep(flexible, command_line, options, code, message):
    options = [option.format(run=flexible) for option in options]
    outcome = command_line("sweep", flexible, *options, *PLACE)
    assert (outcome.code, outcome.out) == (code, "")
    assert f"nmtflex: error: {message.format(run=flexible)}" in outcome.err


@pytest.mark.parametrize("command", ["translate", "eval", "score", "sweep"])
def test_a_threshold_needs_flexible_attention(run_of, command_line, feed, command):
    run = run_of("global")
    feed(["a\tA"])
    outcome = command_line(command, run, *PLACE, "--tau", "inf" if command == "sweep" else 1.5)
    assert (outcome.code, outcome.out) == (2, "")
    tau = "inf" if command == "sweep" else "1.5"
    message = f"--tau {tau} needs flexible attention, and {run} has global; leave it out"
    assert f"nmtflex: error: {message}" in outcome.err


@pytest.mark.parametrize("command", ["translate", "eval", "score"])
@pytest.mark.parametrize("tau", ["small", "-0.5", "nan", "1,2"])
def test_a_threshold_that_is_none_is_refused(flexible, command_line, feed, command, tau):
    feed(["a\tA"])
    outcome = command_line(command, flexible, *PLACE, "--tau", tau)
    assert (outcome.code, outcome.out) == (2, "")
    message = f"--tau must be a number of at least 0, inf or auto, not {tau!r}"
    assert f"nmtflex: error: {message}" in outcome.err


def test_two_files_have_no_threshold(command_line, corpus):
    file = corpus / "test.up"
    outcome = command_line("eval", "--hypothesis", file, "--reference", file, "--tau", 1.5)
    assert outcome.code == 2
    assert "--tau 1.5 is for translating with a run" in outcome.err


@pytest.mark.parametrize("spelling", ["1.2", '"1.2"', "2", '"inf"'])
def test_a_threshold_in_a_file(flexible, evaluate, tmp_path, spelling):
    (tmp_path / "options.toml").write_text(f"tau = {spelling}\n")
    found = evaluate(flexible, "--config", tmp_path / "options.toml")
    tau = spelling.strip('"')
    assert found["tau"] == (tau if tau == "inf" else float(tau))
    assert found["cps"] == evaluate(flexible, "--tau", tau)["cps"]
    flag = evaluate(flexible, "--config", tmp_path / "options.toml", "--tau", 0.3)
    assert flag["tau"] == 0.3


def test_a_wrong_threshold_in_a_file_is_named(flexible, command_line, tmp_path):
    (tmp_path / "options.toml").write_text("tau = -3\n")
    outcome = command_line("eval", flexible, "--config", tmp_path / "options.toml")
    assert outcome.code == 2
    assert "--tau must be a number of at least 0, inf or auto, not '-3'" in outcome.err


@pytest.mark.parametrize("kind", KINDS)
def test_stats_are_those_of_an_evaluation(run_of, translate, evaluate, corpus, tmp_path, kind):
    run = run_of(kind)
    tau = ["--tau", "0.3"] if kind == "flexible" else []
    scores = evaluate(run, *tau, "--max-length", 12)
    _, err = translate(run, source_lines(corpus, "test"), "--stats", "--beam", 2, *tau)
    traces = ["--attention-output", tmp_path / "attention"]  # these are not counted
    _, beside = translate(run, source_lines(corpus, "test"), "--stats", "--beam", 2, *tau, *traces)
    cps, encoding = scores["cps"], scores["encoding_computations"]
    line = f"CPS {cps:.2f} (score computations a step), and {encoding:.1f} a sentence in reading"
    assert line in err
    assert line in beside


def test_stats_of_nothing_are_left_out(flexible, translate):
    assert "CPS" not in translate(flexible, ["", " "], "--stats")[1]
    assert "CPS" not in translate(flexible, ["a b"])[1]


@pytest.mark.parametrize("kind", KINDS)
def test_the_attention_file_has_a_line_for_each(run_of, translate, tmp_path, kind):
    run, path = run_of(kind), tmp_path / "attention.jsonl"
    tau = ["--tau", SMALL_TAU] if kind == "flexible" else []
    options = ["--beam", 3, "--batch-sentences", 3, "--buffer", 5, *tau]
    plain, _ = translate(run, ODD_LINES, "--format", "json", *options)
    written, _ = translate(run, ODD_LINES, "--format", "json", "--attention-output", path, *options)
    assert written == plain
    lines = path.read_text(encoding="utf-8").split("\n")
    assert lines.pop() == ""
    assert len(lines) == len(ODD_LINES)
    for source, line, translation in zip(ODD_LINES, lines, written, strict=True):
        found, best = json.loads(line), json.loads(translation)["translations"][0]
        assert found["source"] == [word for word in source.replace("\t", " ").split(" ") if word]
        assert found["score"] == best["score"]
        if not source.strip():
            assert (found["target"], found["computed"], found["weights"]) == ([], None, None)
            continue
        assert found["target"] == [*best["tokens"], "</s>"]
        length, steps = len(found["source"]), len(found["target"])
        assert len(found["computed"]) == steps
        if kind == "none":
            assert found["weights"] is None
            continue
        assert len(found["weights"]) == steps
        assert {len(row) for row in found["weights"]} == {length}
        if kind == "flexible":
            widths = zip(found["window_start"], found["window_stop"], strict=True)
            assert [stop - start for start, stop in widths] == found["computed"]
            assert all(0 < gate < 1 for gate in found["gate"])


def test_flexible_lines_show_the_threshold(flexible, translate, tmp_path):
    computed = []
    for tau in ("0", "inf"):
        path = tmp_path / tau
        translate(flexible, ["a b c d e f"], "--tau", tau, "--attention-output", path)
        computed.append(set(json.loads(path.read_text())["computed"]))
    assert computed == [{1}, {6}]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "none"])
def test_unknown_words_come_from_the_source(run_of, translate, kind):
    """Most words of the training targets are unknown, so that is what the model writes."""
    run, lines = run_of(kind), ["zebra", "quagga zebra okapi", "a b zebra", "", "a"]
    plain, _ = translate(run, lines, "--beam", 1)
    filled, _ = translate(run, lines, "--beam", 1, "--replace-unk")
    assert "<unk>" in plain[0].split()
    assert "<unk>" not in " ".join(filled).split()
    for line, before, after in zip(lines, plain, filled, strict=True):
        pairs = list(zip(before.split(), after.split(), strict=True))
        assert all(old == new for old, new in pairs if old != "<unk>")
        assert all(new in line.split() for old, new in pairs if old == "<unk>")
    assert "zebra" in filled[0].split()


def test_the_word_is_the_one_that_weighs_most(flexible, translate, tmp_path):
    path, lines = tmp_path / "attention", ["quagga zebra okapi tapir", "a quagga"]
    options = ["--replace-unk", "--tau", "0.4", "--attention-output", path]
    filled, _ = translate(flexible, lines, *options)
    count = 0
    for line, text, record in zip(lines, filled, path.read_text().splitlines(), strict=True):
        found = json.loads(record)
        for word, token, weights in zip(
            text.split(), found["target"], found["weights"], strict=False
        ):
            if token == "<unk>":
                count += 1
                assert word == line.split()[weights.index(max(weights))]
    assert count


def test_unknown_words_need_weights(run_of, command_line):
    run = run_of("none")
    outcome = command_line("translate", run, "--replace-unk", *PLACE)
    assert (outcome.code, outcome.out) == (2, "")
    message = f"--replace-unk needs weights over source positions, and {run} has none attention"
    assert f"nmtflex: error: {message}" in outcome.err
    with pytest.raises(OptionError, match="--replace-unk needs weights over source positions"):
        nmtflex.load(run, replace_unk=True, device="cpu", threads=1)


def test_evaluation_takes_replaced_words(flexible, evaluate, tmp_path):
    out = tmp_path / "out"
    evaluate(flexible, "--replace-unk", "--output", out, "--max-length", 12)
    assert "<unk>" not in out.read_text().split()


def test_the_python_interface(flexible, translate):
    for tau in (1.2, "1.2"):
        translator = nmtflex.load(
            flexible, tau=tau, replace_unk=True, max_length=12, device="cpu", threads=1
        )
        found = translator.translate(ODD_LINES)
        assert found == translate(flexible, ODD_LINES, "--tau", "1.2", "--replace-unk")[0]
    assert found[1] == found[2] == ""
    assert nmtflex.load(flexible, tau=math.inf, device="cpu", threads=1).translate(["a b"])
    with pytest.raises(OptionError, match=r"--tau must be .* not '-1'"):
        nmtflex.load(flexible, tau=-1)


@pytest.mark.parametrize("tau", [1e-05, None])
def test_any_number_and_none_are_thresholds_of_python(flexible, tau):
    """A small float is spelt with an exponent; None is what the options themselves have."""
    translator = nmtflex.load(flexible, tau=tau, max_length=5, device="cpu", threads=1)
    assert translator.translate(["", "a b"])[0] == ""


def test_a_small_number_may_have_an_exponent(flexible, evaluate, tmp_path):
    (tmp_path / "options.toml").write_text("tau = 1e-5\n")
    found = evaluate(flexible, "--config", tmp_path / "options.toml")
    assert found["tau"] == evaluate(flexible, "--tau", "1e-5")["tau"] == 1e-05


def test_the_attention_file_overwrites_neither_input_nor_output(flexible, command_line, tmp_path):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("a b\nc\n")
    output.write_text("old\n")
    files = ["-i", source, "-o", output, *PLACE]
    for taken in (source, output):
        outcome = command_line("translate", flexible, *files, "--attention-output", taken)
        assert outcome.code == 2
        assert f"--attention-output {taken}" in outcome.err
        assert source.read_text() == "a b\nc\n"
        assert output.read_text() == "old\n"


def test_an_attention_file_that_cannot_be_made_keeps_the_output(flexible, command_line, tmp_path):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("a b\n")
    output.write_text("old\n")
    wanted = tmp_path / "no" / "file"
    outcome = command_line(
        "translate", flexible, "-i", source, "-o", output, "--attention-output", wanted, *PLACE
    )
    assert outcome.code in (1, 2)
    assert str(wanted) in outcome.err or str(wanted.parent) in outcome.err
    assert output.read_text() == "old\n"


def test_alone_and_in_a_batch_a_line_is_the_same(flexible, translate, corpus):
    lines = [*ODD_LINES, *source_lines(corpus, "test")]
    options = ["--tau", SMALL_TAU, "--dtype", "float64", "--format", "json", "--n-best", 3]
    together, _ = translate(flexible, lines, *options)
    alone, _ = translate(flexible, lines, *options, "--batch-sentences", 1)
    for one, other in zip(together, alone, strict=True):
        first, second = (json.loads(item)["translations"] for item in (one, other))
        assert [best["tokens"] for best in first] == [best["tokens"] for best in second]
        assert [best["score"] for best in first] == pytest.approx(
            [best["score"] for best in second], rel=1e-9
        )
