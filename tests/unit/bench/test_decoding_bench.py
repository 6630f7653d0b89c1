"""The measurements of bench: turns, medians, ratios, counts, memory. No speed is asserted."""

from __future__ import annotations

import itertools
import os
import platform
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from nmtflex.bench import decoding as bench
from nmtflex.bench import stopwatch
from nmtflex.bench.decoding import (
    Counts,
    Ratio,
    RunsTask,
    Subject,
    Times,
    bench_runs,
    clock_rounds,
    computing,
    count,
    in_fresh_process,
    machine,
    peak_memory,
    ratio,
)
from nmtflex.bench.stopwatch import Stopwatch
from nmtflex.config import (
    BatchConfig,
    Decoding,
    DeviceConfig,
    FlexibleConfig,
    GlobalConfig,
    SearchConfig,
    ThresholdConfig,
)
from nmtflex.decoding.search import Hypothesis
from nmtflex.errors import DataError, OptionError, RunError
from nmtflex.evaluation.runs import raw_split

CPU = torch.device("cpu")


def decoding(tau: str | None = None, beam: int = 2) -> Decoding:
    return Decoding(
        SearchConfig(beam=beam), ThresholdConfig(tau=tau), BatchConfig(), DeviceConfig(threads=1)
    )


@pytest.fixture
def at_home(monkeypatch):
    """Let what would run in a process of its own run here, and note what was asked for."""
    asked = []

    def call(function, *arguments):
        asked.append(arguments)
        return function(*arguments)

    monkeypatch.setattr(bench, "in_fresh_process", call)
    return asked


def test_median_and_spread():
    times = Times([5.0, 1.0, 3.0, 2.0])
    assert times.to_dict() == {
        "median": 2.5,
        "least": 1.0,
        "most": 5.0,
        "rounds": [5.0, 1.0, 3.0, 2.0],
    }


def test_a_ratio_is_of_the_medians_and_its_spread_of_rounds_side_by_side():
    first, other = Times([4.0, 8.0, 6.0]), Times([2.0, 8.0, 1.0])
    assert ratio(first, other) == Ratio(median=6 / 2, least=8 / 8, most=6 / 1)
    assert ratio(first, first) == Ratio(1, 1, 1)


class Part(nn.Module):
    def forward(self):
        return None

    best_words = log_probs = forward


class Model(nn.Module):
    """The parts that a stopwatch asks for."""

    device = CPU

    def __init__(self) -> None:
        super().__init__()
        self.attention, self.cells, self.output = Part(), Part(), Part()

    def encode(self):
        return None

    def parts(self):
        return {
            "encoder": [(self, "encode")],
            "attention": [(self.attention, "forward")],
            "recurrent cell": [(self.cells, "forward")],
            "output layer": [(self.output, "log_probs"), (self.output, "best_words")],
        }


class Translator:
    """Decodes by asking each part of its model once, and notes in ``turns`` that it did."""

    def __init__(self, name: str, turns: list[str]) -> None:
        self.name, self.turns, self.model = name, turns, Model()

    def translate_ids(self, ids, tally=None, count=None):
        clocked = any("forward" in vars(part) for part in self.model.modules())
        self.turns.append(f"{self.name}{' clocked' * clocked}")
        self.model.attention()
        self.model.cells()
        self.model.output.log_probs()


def subject(name: str, turns: list[str]) -> Subject:
    translator = Translator(name, turns)
    opened = SimpleNamespace(translator=translator, run=SimpleNamespace(model=translator.model))
    return Subject(Path(name), name, opened, [[5]], ["a"])


def test_runs_take_turns_and_the_watch_stays_out_of_the_seconds(monkeypatch):
    # The clock strikes 1, 2, 3, ... seconds after it was looked at last.
    strikes = itertools.accumulate(itertools.count())
    clock = SimpleNamespace(perf_counter=lambda: float(next(strikes)))
    monkeypatch.setattr(bench, "time", clock)
    monkeypatch.setattr(stopwatch, "time", clock)
    turns: list[str] = []
    said: list[str] = []
    a, b = clock_rounds([subject("a", turns), subject("b", turns)], 2, said.append)
    assert turns == ["a", "a clocked", "b", "b clocked"] * 2
    # Looks a turn: 2 around the bare decoding; then 2 around the block and 2 a part.
    assert a.seconds.rounds == [1, 21]
    assert b.seconds.rounds == [11, 31]
    assert a.parts["attention"].rounds == [4, 24]
    assert a.parts["recurrent cell"].rounds == [6, 26]
    assert a.parts["output layer"].rounds == [8, 28]
    assert a.parts["encoder"].rounds == [0, 0]
    assert a.parts["search"].rounds == [3 + 5 + 7 + 9, 23 + 25 + 27 + 29]
    assert said == ["round 1 of 2: a 1 s, b 11 s", "round 2 of 2: a 21 s, b 31 s"]


def test_counts_are_of_the_sentences_that_are_not_empty(monkeypatch):
    asked = []
    monkeypatch.setattr(bench, "run_bleu", lambda *given: SimpleNamespace(value=given))

    def translate_ids(sources, tally=None, count=None):
        asked.append(len(sources))
        if tally is not None:
            tally.add(torch.tensor([6, 10]), torch.tensor([2, 2]), torch.tensor([0, 4]))
        return [[Hypothesis(ids[:2], 0.0, 0.0), Hypothesis([9] * 9, -1.0, -1.0)] for ids in sources]

    target = SimpleNamespace(decode_words=lambda ids: [f"w{number}" for number in ids])
    pipeline = SimpleNamespace(target=target)
    translator = SimpleNamespace(translate_ids=translate_ids, pipeline=pipeline)
    sources, references = [[5, 6, 7], [], [8]] + [[]] * 70, ["a"] * 73
    opened = SimpleNamespace(translator=translator)
    found = count(Subject(Path("a"), "a", opened, sources, references))
    scored = target, [["w5", "w6"], [], ["w8"]] + [[]] * 70, references  # empty ones count too
    assert found == Counts(
        sentences=2, tokens=(2 + 1) + (1 + 1), cps=4.0, encoding=2.0, cps_total=4.0, bleu=scored
    )
    assert asked == [bench.WARM_UP, 73]


def test_all_of_two_runs(make_tiny_run, at_home):
    paths = [make_tiny_run("global", GlobalConfig()), make_tiny_run("flexible", FlexibleConfig())]
    first, second = bench_runs(paths, RunsTask(raw_split(paths, "test"), 2, decoding("0.5")))
    assert [first.subject.name, second.subject.name] == ["global", "flexible"]
    assert first.counts.sentences == second.counts.sentences == 2
    assert first.counts.cps == pytest.approx((3 + 4) / 2)
    assert second.counts.cps < first.counts.cps
    assert first.times_as_fast == Ratio(1, 1, 1)
    assert [len(one.clocked.seconds.rounds) for one in (first, second)] == [2, 2]
    with Stopwatch(first.subject.opened.run.model) as watch:
        pass
    assert list(first.clocked.parts) == list(watch.seconds)
    assert min(first.peak_memory, second.peak_memory) > 50e6
    # The threshold goes along with the run that has one.
    assert [options.threshold.tau for _, _, options in at_home] == [None, "0.5"]
    written = second.to_dict()
    assert (written["attention"], written["tau"]) == ("flexible", 0.5)
    assert written["target_tokens_per_second"] * written["seconds"]["median"] == pytest.approx(
        written["target_tokens"]
    )


def test_the_first_sentences(make_tiny_run, at_home):
    run = make_tiny_run("a", GlobalConfig())
    (found,) = bench_runs([run], RunsTask(raw_split([run], "test").first(2), 1, decoding()))
    assert [len(ids) for ids in found.subject.sources] == [3, 0]
    assert (found.counts.sentences, found.counts.cps) == (1, 3.0)
    assert found.to_dict()["tau"] is None


def test_infinity_is_a_word_in_json(make_tiny_run, at_home):
    run = make_tiny_run("a", FlexibleConfig())
    (found,) = bench_runs([run], RunsTask(raw_split([run], "test").first(1), 1, decoding("inf")))
    assert found.to_dict()["tau"] == "inf"


def test_runs_of_other_data(make_tiny_run):
    paths = [make_tiny_run("a", GlobalConfig()), make_tiny_run("b", GlobalConfig())]
    (paths[1] / "raw" / "test.source.txt").write_text("a\n\nb\n")
    with pytest.raises(OptionError, match=f"{paths[1]} has other test data than {paths[0]}"):
        raw_split(paths, "test")


def test_a_split_of_empty_lines_and_none(make_tiny_run):
    run = make_tiny_run("a", GlobalConfig())
    (run / "raw" / "test.source.txt").write_text("\n \n\n")
    with pytest.raises(DataError, match=f"{run}: no sentence of test has words"):
        bench_runs([run], RunsTask(raw_split([run], "test"), 1, decoding()))
    with pytest.raises(RunError, match="no split 'valid'"):
        raw_split([run], "valid")


@pytest.mark.slow
def test_a_process_of_its_own():
    assert in_fresh_process(os.getpid) != os.getpid()


def test_a_process_that_dies():
    with pytest.raises(DataError, match=r"died.*--batch-sentences"):
        in_fresh_process(os._exit, 9)


def test_memory_where_the_system_tells_less(monkeypatch):
    assert 10e6 < peak_memory(CPU) < 1e12

    def nowhere(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", nowhere)
    told = peak_memory(CPU)  # by getrusage
    assert 10e6 < told < 1e12
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    assert peak_memory(CPU) * 1000 < told  # where it tells bytes


def test_the_machine(monkeypatch):
    facts = machine(CPU)
    assert facts["torch"] == torch.__version__
    assert facts["python"] == platform.python_version()
    assert all(facts.values())
    monkeypatch.setenv("NMTFLEX_KERNELS", "reference")
    assert computing(CPU, "float64") == {
        "device": "cpu",
        "dtype": "float64",
        "threads": torch.get_num_threads(),
        "kernels": "reference",
    }


def test_a_processor_without_a_name(monkeypatch):
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "vendor\t: x\n")
    monkeypatch.setattr(platform, "processor", lambda: "")
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert machine(CPU)["processor"] == "riscv64"
