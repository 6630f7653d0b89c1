"""nmtflex bench: its tables and JSON, and what is refused in one line."""

from __future__ import annotations

import csv
import functools
import json
import math

import pytest

from nmtflex.bench import attend as kernels
from nmtflex.bench import decoding as bench
from nmtflex.bench import synthetic
from nmtflex.bench.attend import Case
from nmtflex.config import FlexibleConfig

QUICK = ("--repeats", 2, "--threads", 1)
ABOUT = {"command", "machine", "repeats", "device", "dtype", "threads", "kernels"}


@pytest.fixture
def at_home(monkeypatch):
    """Let what would run in a process of its own run here."""
    for module in (bench, synthetic):
        monkeypatch.setattr(module, "in_fresh_process", lambda call, *given: call(*given))


@pytest.fixture
def small(monkeypatch):
    """Let the operation be timed at one small size each."""
    sizes = {"bench_decoding": Case(5, 8, 2, 3), "bench_training": Case(5, 8, 2, 1, 2)}
    for name, case in sizes.items():
        monkeypatch.setattr(kernels, name, functools.partial(getattr(kernels, name), (case,)))


def table_of(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


def test_two_runs(command_line, make_tiny_run, tiny_run, at_home):
    other = make_tiny_run("flexible", FlexibleConfig())
    result = command_line("bench", tiny_run, other, "--tau", 0.5, "--beam", 2, *QUICK)
    assert result.code == 0, result.err
    head, *rows = table_of(result.out)
    assert head == ["", "tiny", "flexible"]
    found = {label: values for label, *values in rows}
    assert all(len(values) == 2 for values in found.values())
    assert found["attention"] == ["global attention", "flexible attention, τ = 0.5"]
    assert found["decoder"] == ["bahdanau decoder, beam 2"] * 2
    assert found["computed on"] == ["cpu, 1 thread, float32, kernels: cpu"] * 2
    assert found["sentences"] == ["2", "2"]
    assert found["computations per step (CPS)"][0] == "3.50"
    assert found["speed relative to the first"][0] == "1.000"
    assert found["the same, min to max"][0] == "1.000 to 1.000"
    parts = ("encoder", "embedding", "attention", "recurrent cell", "output layer", "search")
    shares = [found[f"{part}, seconds"][0] for part in parts]
    assert abs(sum(int(share.split("(")[1].rstrip("%)")) for share in shares) - 100) <= 3
    assert result.err.splitlines()[0] == f"nmtflex: {tiny_run}: counting over 3 sentences of test"
    assert "nmtflex: round 2 of 2: tiny " in result.err


def test_json_of_a_run(command_line, tiny_run):
    result = command_line("bench", tiny_run, "--json", "--sentences", 1, *QUICK)
    assert result.code == 0, result.err
    assert result.out.count("\n") == 1
    found = json.loads(result.out)
    options = {
        "split",
        "beam",
        "length_penalty",
        "no_repeat_ngram",
        "retry_loops",
        "max_length",
        "batch_sentences",
    }
    assert set(found) == ABOUT | options | {"runs"}
    assert (found["repeats"], found["threads"], found["split"]) == (2, 1, "test")
    assert {"processor", "cores", "torch", "numba", "python"} <= set(found["machine"])
    (run,) = found["runs"]
    assert (run["run"], run["name"], run["attention"]) == (str(tiny_run), "tiny", "global")
    assert (run["sentences"], run["cps"], run["tau"]) == (1, 3.0, None)
    assert run["times_as_fast"] == {"median": 1.0, "least": 1.0, "most": 1.0}
    assert len(run["seconds"]["rounds"]) == len(run["parts"]["search"]["rounds"]) == 2
    assert run["peak_memory_bytes"] > 50e6  # of a process that is there for it


@pytest.mark.slow
def test_a_file_in_place_of_a_split(command_line, tiny_run, tmp_path):
    source, reference = tmp_path / "long.src", tmp_path / "long.tgt"
    source.write_text("a b c a b\nb\na a\n")
    reference.write_text("A\nB\nC\n")
    files = "--source", source, "--reference", reference
    result = command_line("bench", tiny_run, *files, "--sentences", 2, "--json", *QUICK)
    assert result.code == 0, result.err
    assert f"counting over 2 sentences of {source}" in result.err
    found = json.loads(result.out)
    assert (found["source"], found["reference"]) == (str(source), str(reference))
    assert "split" not in found
    (run,) = found["runs"]
    assert (run["sentences"], run["cps"]) == (2, (5 + 1) / 2)
    reference.write_text("A\n")
    result = command_line("bench", tiny_run, *files, *QUICK)
    assert (result.code, result.err.count("\n")) == (1, 1)
    assert f"{source} has 3 lines, but {reference} has 1" in result.err


def test_kernels(command_line, small):
    result = command_line("bench", "--kernels", *QUICK)
    assert result.code == 0, result.err
    decoding, training = (table_of(table) for table in result.out.split("\n\n"))
    ways = ["expand, ms", "reference, ms", "fused, ms", "penalty, ms", "window, ms"]
    assert decoding[0] == [
        *("decoding, S", "D", "sentences", "beam", "steps"),
        *ways,
        "window / fused",
    ]
    assert decoding[1][:5] == ["5", "8", "2", "3", "1"]
    assert training[0][0] == "training, S"
    assert training[1][:5] == ["5", "8", "2", "1", "2"]
    assert len(training[0]) == len(training[1]) == 9


def test_json_of_kernels(command_line, small):
    found = json.loads(command_line("bench", "--kernels", "--json", *QUICK).out)
    assert set(found) == ABOUT | {"decoding", "training"}
    (row,) = found["decoding"]
    assert (row["length"], row["size"], row["sentences"], row["beam"]) == (5, 8, 2, 3)
    assert set(row["milliseconds"]) == {"expand", "reference", "fused", "penalty", "window"}
    assert len(row["milliseconds"]["window"]["rounds"]) == 2


SYNTHETIC = ("--synthetic", "--lengths", "5,30", "--steps", 3, "--beam", 2, "--batch-sentences", 3)


def test_synthetic(command_line, at_home):
    result = command_line("bench", *SYNTHETIC, *QUICK)
    assert result.code == 0, result.err
    head, *rows = table_of(result.out)
    assert head[:4] == ["backbone", "attention", "source positions", "ms per target token"]
    assert [row[:3] for row in rows[1:4]] == [
        ["recurrent+bahdanau", "flexible, τ = 1.2", "30"],
        ["recurrent+bahdanau", "global", "5"],
        ["recurrent+bahdanau", "global", "30"],
    ]
    assert [row[6] for row in rows[2:]] == ["5.00", "30.00", "64.00", "64.00"]
    assert [row[5] for row in rows[::2]] == ["1.00"] * 3


def test_json_of_synthetic(command_line, at_home):
    result = command_line("bench", *SYNTHETIC, "--tau", "inf", "--json", *QUICK)
    found = json.loads(result.out)
    assert set(found) == ABOUT | {"seed", "tau", "beam", "sentences", "steps", "words", "rows"}
    settings = ("seed", "tau", "beam", "sentences", "steps")
    assert [found[name] for name in settings] == [1, "inf", 2, 3, 3]
    assert len(found["rows"]) == 6
    row = found["rows"][1]
    assert (row["attention"], row["source_positions"], row["cps"]) == ("flexible", 30, 30.0)
    assert len(row["milliseconds_per_target_token"]["rounds"]) == 2


GROWTH = (
    *("--synthetic", "--growth", "--lengths", "5,20", "--beam", 2, "--batch-sentences", 3),
    *("--backbones", "recurrent+luong,recurrent+transformer", "--mechanisms", "global"),
)


def test_bleu_and_speed_of_runs_as_table_and_figure(
    command_line, make_tiny_run, tiny_run, at_home, tmp_path
):
    pytest.importorskip("matplotlib")
    runs = tiny_run, make_tiny_run("flexible", FlexibleConfig())
    result = command_line("bench", *runs, "--beam", 2, "--output", tmp_path / "speed", *QUICK)
    assert result.code == 0, result.err
    assert str(tmp_path / "speed.csv") in result.err.splitlines()[-1]
    assert (tmp_path / "speed.png").read_bytes().startswith(b"\x89PNG")
    head, *rows = csv.reader((tmp_path / "speed.csv").read_text().splitlines())
    scored = json.loads(command_line("eval", *runs, "--beam", 2, "--json").out)
    bleu, slowest, fastest = (
        head.index(column)
        for column in ("bleu", "tokens_per_second_slowest", "tokens_per_second_fastest")
    )
    assert [row[0] for row in rows] == ["tiny", "flexible"]
    assert [float(row[bleu]) for row in rows] == [one["bleu"] for one in scored]
    for row in rows:
        assert 0 < float(row[slowest]) <= float(row[slowest + 1]) <= float(row[fastest])


def test_growth(command_line, at_home, tmp_path):
    pytest.importorskip("matplotlib")
    base = tmp_path / "length"
    result = command_line("bench", *GROWTH, "--output", base, *QUICK)
    assert result.code == 0, result.err
    _, grown = (table_of(table) for table in result.out.split("\n\n"))
    assert grown[0] == ["backbone", "attention", "measured", "t = 5", "t = 20", "theory", "growth"]
    assert [row[0] for row in grown[1:]] == ["recurrent+luong"] * 5 + ["recurrent+transformer"] * 5
    # h, c and the attentional vector. The number of the step, the places of t steps, and in each of
    # two layers their keys and values; at first the two hypotheses of a sentence were still one.
    constant = ["decoder state, bytes per hypothesis", "3,072", "3,072", "k d", "t^0.00"]
    few, many = (8 + t * 8 + 2 * (t - 0.5) * 2 * 256 * 4 for t in (5, 20))
    power = f"t^{math.log(many / few) / math.log(4):.2f}"
    linear = ["decoder state, bytes per hypothesis", f"{few:,.0f}", f"{many:,.0f}", "t k d", power]
    assert (grown[4][2:], grown[9][2:]) == (constant, linear)
    table = (tmp_path / "length.csv").read_text().splitlines()
    assert [line.split(",")[:3] for line in table[1:]] == [
        [backbone, "global", length]
        for backbone in ("recurrent+luong", "recurrent+transformer")
        for length in ("5", "20")
    ]
    assert (tmp_path / "length.png").read_bytes().startswith(b"\x89PNG")
    assert str(tmp_path / "length.csv") in result.err.splitlines()[-1]


def test_files_of_lengths(command_line, at_home, tmp_path):
    pytest.importorskip("matplotlib")
    result = command_line("bench", *SYNTHETIC, "--output", tmp_path / "length", *QUICK)
    assert result.code == 0, result.err
    first, *rows = (tmp_path / "length.csv").read_text().splitlines()
    columns = first.split(",")
    assert columns[:3] == ["backbone", "attention", "length"]
    assert not [column for column in columns if column.startswith("training")]
    rows = [row.split(",") for row in rows]
    table = table_of(result.out)
    assert [row[:3] for row in rows] == [
        [backbone, attention.partition(",")[0], length]
        for backbone, attention, length, *_ in table[1:]
    ]
    place = columns.index("decoding_milliseconds_per_target_token")
    assert [f"{float(row[place]):.3f}" for row in rows] == [row[3] for row in table[1:]]
    assert (tmp_path / "length.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_json_of_growth(command_line, at_home):
    found = json.loads(command_line("bench", *GROWTH, "--json", *QUICK).out)
    assert found["steps"] == 0
    assert len(found["growth"]) == 10
    assert {"backbone", "attention", "quantity", "order", "power"} == set(found["growth"][0])
    assert "training_bytes_per_sentence" in found["rows"][0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give run folders, or --kernels or --synthetic"),
        (["--kernels", "--synthetic"], "--kernels ... --synthetic"),
        (["RUN", "--kernels"], "--kernels ... RUN"),
        (["RUN", "--synthetic"], "--synthetic ... RUN"),
        (["--kernels", "--split", "valid"], "--split valid ... --kernels"),
        (["--synthetic", "--sentences", "7"], "--sentences 7 ... --synthetic"),
        (["--synthetic", "--reuse-below", "0.5"], "--reuse-below 0.5 ... --synthetic"),
        (["RUN", "--lengths", "5"], "--lengths 5 has no effect without --synthetic"),
        (["--kernels", "--steps", "9"], "--steps 9 has no effect without --synthetic"),
        (["RUN", "--repeats", "0"], "--repeats must be at least 1, not 0"),
        (["RUN", "--max-length", "1000001"], "--max-length must be at most 1000000, not 1000001"),
        (["RUN", "--sentences", "0"], "--sentences must be at least 1, not 0"),
        (["--synthetic", "--steps", "1"], "--steps must be at least 2"),
        (["--synthetic", "--lengths", "1,5", "--steps", "0"], "--steps must be at least 2"),
        (["--synthetic", "--growth", "--lengths", "1,5"], "--lengths must be at least 2"),
        (["--synthetic", "--growth", "--steps", "5"], "--growth ... --steps 5"),
        (["--synthetic", "--backbones", "rnn+luong"], "backbones ... transformer ... 'rnn'"),
        (["--synthetic", "--backbones", "recurrent+gru"], "backbones ... ssru ... 'gru'"),
        (["--synthetic", "--backbones", "recurrent"], "--backbones ... 'recurrent'"),
        (["--synthetic", "--mechanisms", "global,"], "mechanisms ... memory ... ''"),
        (["--kernels", "--output", "x"], "--output x has no effect with --kernels"),
        (["--synthetic", "--output", "no/x"], "--output no/x"),
        (["RUN", "--output", "no/x"], "--output no/x"),
        (["--synthetic", "--growth", "--output", "no/x"], "--output no/x"),
        (["--kernels", "--growth"], "--growth has no effect without --synthetic"),
        (["RUN", "--backbones", "a+b"], "--backbones a+b has no effect without --synthetic"),
        (["RUN", "--mechanisms", "x"], "--mechanisms x has no effect without --synthetic"),
        (["--kernels", "--words", "99"], "--words 99 has no effect without --synthetic"),
        (["--synthetic", "--words", "9"], "--words must be at least 20, not 9"),
        (["--synthetic", "--lengths", "9,5"], "--lengths ... at least 1 ... '9,5'"),
        (["--synthetic", "--lengths", "0,5"], "--lengths ... at least 1 ... '0,5'"),
        (["--synthetic", "--lengths", "few"], "--lengths ... at least 1 ... 'few'"),
        (["--kernels", "--beam", "9"], "--beam 9 has no effect on --kernels"),
        (["--kernels", "--tau", "1.5"], "--tau 1.5 has no effect on --kernels"),
        (["--kernels", "--batch-sentences", "9"], "--batch-sentences 9 has no effect on --ker"),
        (["--kernels", "--dtype", "float64"], "--dtype float64 has no effect on --kernels"),
        (["--synthetic", "--max-length", "9"], "--max-length 9 has no effect on --synthetic"),
        (["--synthetic", "--length-penalty", "0.5"], "--length-penalty 0.5 has no effect on --syn"),
        (["--synthetic", "--no-repeat-ngram", "4"], "--no-repeat-ngram 4 has no effect on --syn"),
        (["--synthetic", "--retry-loops"], "--retry-loops has no effect on --syn"),
        (["--synthetic", "--replace-unk"], "--replace-unk has no effect on --synthetic"),
        (["--synthetic", "--tau", "auto"], "--tau auto ... --synthetic"),
        (["--synthetic", "--unk", "UNK"], "--unk UNK has no effect on --synthetic"),
        (["RUN", "--replace-unk"], "--replace-unk has no effect"),
        (["RUN", "--unk", "UNK"], "--unk UNK has no effect"),
        (["RUN", "--tau", "0.5"], "--tau 0.5 ... flexible attention"),
        (["RUN", "--source", "x"], "--source x needs --reference"),
        (["RUN", "--reference", "x"], "--reference x needs --source"),
        (["RUN", "--source", "x", "--reference", "y"], "x: No such file"),
        (
            ["RUN", "--split", "valid", "--source", "x", "--reference", "y"],
            "--split valid ... --source",
        ),
        (["--kernels", "--source", "x"], "--source x applies to runs, not to --kernels"),
        (["RUN", "--split", "train"], "has no split 'train'; there is test"),
        (["nowhere"], "nowhere: no such run folder"),
    ],
)
def test_refused(command_line, tiny_run, arguments, words):
    given = [tiny_run if one == "RUN" else one for one in arguments]
    result = command_line("bench", *given)
    assert (result.code != 0, result.out, result.err.count("\n")) == (True, "", 1)
    values = words.replace("RUN", str(tiny_run)).split(" ... ")
    assert [value for value in values if value not in result.err] == []


def test_an_unknown_choice_of_kernels(command_line, tiny_run, monkeypatch):
    monkeypatch.setenv("NMTFLEX_KERNELS", "fast")
    for arguments in ([tiny_run], ["--kernels"]):
        result = command_line("bench", *arguments, *QUICK)
        assert (result.code, result.out) == (2, "")
        assert "NMTFLEX_KERNELS: 'fast' is not one of auto, reference, triton" in result.err
