"""The benchmark beside other toolkits, with programs that only say what they would do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "recipes"
SCRIPT = FOLDER / "benchmark_toolkits.sh"
# nmtflex: writes its commands down, and what a training and bench write.
PROGRAM = """#!/bin/sh
printf '%s\\037' "$@" >> "$LOG"
printf '\\036' >> "$LOG"
case $1 in
  --version) echo nmtflex 1.2.3 ;;
  preprocess) if [ -n "$PREPARED" ]; then cp -r "$PREPARED" "$3"; else mkdir "$3"; fi ;;
  train) mkdir -p "$4"
    echo update,seconds,target_tokens,split > "$4/metrics.csv"
    echo 0,1,0,valid >> "$4/metrics.csv"
    echo 20,11,5000,train >> "$4/metrics.csv"
    echo 40,21,15000,train >> "$4/metrics.csv"
    echo 60,26,25000,train >> "$4/metrics.csv"
    echo 60,36,25000,valid >> "$4/metrics.csv" ;;
  bench) echo '{"runs": [{"target_tokens_per_second": 9000.4}]}' ;;
esac
"""
# A Python that has a toolkit: its version, the line of its log, its translation.
OTHER = """#!/bin/sh
case "$*" in
  -c*) echo 4.5 ;;
  *build_vocab*|*preprocess*) ;;
  *train*) printf '%s\\n' "$TRAINING" ;;
  *) case "$*" in *onmt*) printf 'a b\\nc\\n' > "$8" ;; esac
    printf '%s\\n' "$DECODING" ;;
esac
"""


@pytest.fixture
def benchmark(bash, tmp_path):
    """Run the script over an empty corpus."""
    data = tmp_path / "data"
    data.mkdir()
    for split in ("train", "dev", "test"):
        for language in ("en", "ja"):
            (data / f"{split}.{language}").touch()

    def written(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    program, other = written("nmtflex", PROGRAM), written("other", OTHER)
    nothing = written("nothing", "#!/bin/sh\necho no such module >&2\nexit 1\n")

    def run(**settings: object) -> Any:
        own = dict.fromkeys(("FAIRSEQ", "OPENNMT", "EOLE", "JOEYNMT"), nothing)
        own |= {"DATA": data, "NMTFLEX": program, "LOG": tmp_path / "log"}
        own |= {"UPDATES": 20, "ROUNDS": 1, "BEAMS": "1 5"}
        return bash(SCRIPT, **own | settings)

    run.other = other
    return run


@pytest.fixture
def module(script):
    return script("toolkits")


def test_a_row_for_each_installed_or_not(benchmark):
    training = "Step 60/60; acc: 9; bsz: 400/ 700/64; 900/1000 tok/s;  60 sec;"
    decoding = "Total translation time (s): 0.5"
    toolkits = "nmtflex fairseq opennmt eole joeynmt"
    given = {"OPENNMT": benchmark.other, "TRAINING": training, "DECODING": decoding}
    done = benchmark(TOOLKITS=toolkits, **given)
    assert done.returncode == 0, done.stderr
    heads = "parameters | tokens an update | each round | training, tokens/s | ratio | "
    heads += "decoding, beam 1 | ratio | decoding, beam 5 | ratio |"
    assert done.stdout.splitlines() == [
        "yardstick: 20 updates after 40, 1 rounds, 2 threads",
        "",
        f"| toolkit | version | {heads}",
        f"|{' --- |' * 11}",
        "| nmtflex | 1.2.3 |  | 500 | 2,000 | 2,000 | 1.00 | 9,000 | 1.00 | 9,000 | 1.00 |",
        f"| fairseq |  | not installed |{'  |' * 8}",
        "| opennmt | 4.5 |  |  | 1,000 | 1,000 | 2.00 | 10 | 900.04 | 10 | 900.04 |",
        f"| eole |  | not installed |{'  |' * 8}",
        f"| joeynmt |  | not installed |{'  |' * 8}",
    ]


def test_a_variant_alone_prepares_what_it_reads(benchmark, tmp_path):
    done = benchmark(TOOLKITS="nmtflex-bfloat16 nmtflex-ssru", BEAMS=5)
    assert done.returncode == 0, done.stderr
    commands = [line.split("\037") for line in (tmp_path / "log").read_text().split("\036")]
    assert [words[0] for words in commands].count("preprocess") == 1
    assert [words[0] for words in commands].count("bench") == 2
    assert "nmtflex-ssru.decode.5.1" in done.stderr


def test_one_that_fails_is_a_line_with_its_log(benchmark, tmp_path):
    done = benchmark(TOOLKITS="nmtflex joeynmt", JOEYNMT=benchmark.other, BEAMS="", TRAINING="no")
    assert done.returncode == 0
    log = tmp_path / "out/toolkits-yardstick/joeynmt.train.1.log"
    assert done.stdout.splitlines()[-2:] == [
        "| nmtflex | 1.2.3 |  | 500 | 2,000 | 2,000 | 1.00 |",
        f"| joeynmt | 4.5 | no speeds after the warm-up in {log} |  |  |  |  |",
    ]
    done = benchmark(TOOLKITS="nmtflex", NMTFLEX="true")
    log = tmp_path / "out/toolkits-yardstick/nmtflex.run.1/metrics.csv"
    assert done.returncode == 0
    assert str(log) in done.stdout


VARIANTS = [
    f"nmtflex-{one}" for one in ("bfloat16", "int8", "dot", "unfed", "ssru", "ssru-bfloat16")
]


def test_variants_train_and_decode_with_their_own_options(benchmark, tmp_path, command_line):
    done = benchmark(TOOLKITS=" ".join(["nmtflex", *VARIANTS]), BEAMS="5")
    assert done.returncode == 0, done.stderr
    rows = [line.split(" | ") for line in done.stdout.splitlines()[4:]]
    assert [row[0] for row in rows] == ["| nmtflex", *(f"| {one}" for one in VARIANTS)]
    assert {row[5] for row in rows} == {"2,000"}
    lines = (tmp_path / "log").read_text().split("\x1e")[:-1]
    trainings = [line for line in lines if line.startswith("train\x1f")]
    own = ("bfloat16", "general", "--no-input-feeding", "ssru")
    assert [{word for word in own if word in line} for line in trainings] == [
        set(), {"bfloat16"}, {"general"}, {"--no-input-feeding"}, {"ssru"}, {"bfloat16", "ssru"},
    ]  # fmt: skip
    decodings = [line for line in lines if line.startswith("bench\x1f")]
    assert ["--int8" in line for line in decodings] == [False, False, True, *4 * [False]]
    for line in (*trainings, *decodings):
        outcome = command_line(*line.split("\x1f")[:-1])
        assert outcome.code == 1, (line, outcome.err)  # there is nothing to read


@pytest.mark.parametrize("size", ["yardstick", "512"])
def test_the_program_takes_every_command(size, benchmark, tmp_path, command_line):
    assert benchmark(TOOLKITS="nmtflex", SIZE=size).returncode == 0
    lines = (tmp_path / "log").read_text().split("\x1e")[:-1]
    commands = [line.split("\x1f")[:-1] for line in lines]
    assert [one[0] for one in commands] == ["--version", "preprocess", "train", "bench", "bench"]
    units = {"yardstick": ["128", "128", "256"], "512": ["512"] * 3}[size]
    train = commands[2]
    sizes = ("--embedding-size", "--encoder-size", "--decoder-size")
    assert [train[train.index(name) + 1] for name in sizes] == units
    for line in commands[1:]:  # there is nothing to read, which is exit 1
        outcome = command_line(*line)
        assert outcome.code == 1, (line, outcome.err)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"SIZE": 1000}, "SIZE is yardstick, 512 or tiny, not 1000"),
        (
            {"TOOLKITS": "marian"},
            "TOOLKITS of SIZE=yardstick are nmtflex nmtflex-bfloat16 nmtflex-int8 nmtflex-dot "
            "nmtflex-flexible nmtflex-unfed nmtflex-ssru nmtflex-ssru-bfloat16 fairseq opennmt "
            "eole joeynmt, not marian",
        ),
    ],
)
def test_other_settings_are_refused(settings, message, benchmark):
    done = benchmark(**settings)
    assert (done.returncode, done.stderr) == (1, f"benchmark_toolkits.sh: {message}\n")


def test_each_log_is_read(module):
    fairseq = {"epoch": 1, "wps": "3903.4", "wpb": "1703", "num_updates": "40"}
    line = f"2026 | INFO | train_inner | {json.dumps(fairseq)}\n"
    assert module.fairseq_intervals(line + "| train | {}\n") == [(40, 3903.4, 1703)]
    line = "Epoch   1, Step:       20, Batch Loss: 5.1, Acc: 0.1, Tokens per Sec:     2201, Lr"
    assert module.joeynmt_intervals(line) == [(20, 2201.0, None)]
    line = "Step 10/   30; lr: 0.001; bsz:  442/ 762/64;  39/ 67 tok/s;    114 sec;"
    assert module.opennmt_intervals(line) == [(10, 67.0, None)]
    text = "Translated 500 sentences (5,000 tokens) in 2.0s (250.00 sentences/s, 2500.00 tokens/s)"
    assert module.fairseq_decoding("", text) == 2500
    assert module.timed_decoding("Generation took 2.0000[sec].", "a b c\n\nd\n") == 3.5


def test_marian_s_log_is_read(module):
    line = "[2026] Ep. 1 : Up. {} : Sen. 4,210 : Cost 8.285 : Time {}s : {} words/s : gNorm 3.8\n"
    log = line.format("980", "10.00", "180.50") + line.format("1,000", "20.00", "100.00")
    # 2,000 target words in the 20 updates up to 1,000
    assert module.marian_intervals(log)[1:] == [(1000, 100, 100)]
    log = "[2026] Total time: 2.00000s wall\n"
    assert module.timed_decoding(log, "a b c\n\nd\n") == 3.5


def test_a_log_without_speeds_is_named(module, tmp_path):
    benchmark = module.Benchmark(tmp_path, warmup=20, rounds=1, beams=[5])
    (tmp_path / "eole.train.1.log").write_text("Step 20/ 30; 1/ 2 tok/s;")
    with pytest.raises(module.ToolkitsError, match=r"no speeds after the warm-up in .*eole\.train"):
        benchmark.training("eole")
    for name in ("eole.decode.5.1.log", "eole.output.5.1"):
        (tmp_path / name).write_text("killed")
    with pytest.raises(module.ToolkitsError, match=r"no speed in .*eole\.decode\.5\.1\.log"):
        benchmark.decoding("eole", 5)


def test_median_and_spread(module, tmp_path):
    lines = [f"Step {n}/ 60; 1/ {speed} tok/s;" for n, speed in ((20, 9), (40, 1000), (60, 2000))]
    (tmp_path / "opennmt.train.1.log").write_text("\n".join(lines))
    benchmark = module.Benchmark(tmp_path, warmup=20, rounds=1, beams=[])
    row = module.table(["opennmt=3.5.1"], benchmark)[-1]
    assert row == "| opennmt | 3.5.1 |  |  | 1,500 | 1,500 (1,000-2,000) | 1.00 |"


def test_each_round_is_shown_and_its_tokens(module, tmp_path):
    for number, speed in ((1, 10), (2, 30), (3, 20)):
        line = {"wps": speed, "wpb": 10 * speed, "num_updates": 40}
        (tmp_path / f"fairseq.train.{number}.log").write_text(f"| train_inner | {json.dumps(line)}")
    (tmp_path / "fairseq.count.log").write_text("1234567\n")
    benchmark = module.Benchmark(tmp_path, warmup=20, rounds=3, beams=[])
    row = module.table(["fairseq=1"], benchmark)[-1]
    assert row == "| fairseq | 1 | 1,234,567 | 200 | 10 30 20 | 20 (10-30) | 1.00 |"
    # A round that is missing is said, not left out.
    (tmp_path / "fairseq.train.2.log").unlink()
    assert "fairseq.train.2.log" in module.table(["fairseq=1"], benchmark)[-1]
