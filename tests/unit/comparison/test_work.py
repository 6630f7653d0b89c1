"""Several commands at once: each after what it begins with; nothing begins after a failure."""

from __future__ import annotations

import threading

import pytest

from nmtflex.comparison.journal import Journal
from nmtflex.comparison.plan import Comparison, Entry
from nmtflex.comparison.work import make_all
from nmtflex.errors import RunError


def entry(name, begins_with=None, init_from=None, finetune=None):
    return Entry(name, begins_with, init_from, None, [], finetune, None, None, [], [], None)


ENTRIES = [
    entry("global"),
    entry("memory", init_from="global"),
    entry("none"),
    entry("tuned", begins_with="memory", finetune=[]),
]


class Program:
    """Stands in for nmtflex; the first commands begin only if so many run at once."""

    def __init__(self, together: int = 1, fails: str = "") -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.most = 0
        self.together = together
        self.fails = fails
        self._lock = threading.Lock()
        self._barrier = threading.Barrier(together, timeout=60)

    def __call__(self, words):
        run = words[words.index("--run") + 1] if "--run" in words else words[1]
        name = f"{words[0]} {run.rsplit('/', 1)[1]}"
        with self._lock:
            self.begun.append(name)
            first = len(self.begun) <= self.together
            self.most = max(self.most, len(self.begun) - len(self.ended))
        if first:
            self._barrier.wait()
        with self._lock:
            self.ended.append(name)
        return int(name == self.fails), '{"bleu": 1}'


@pytest.fixture
def comparison(tmp_path):
    (tmp_path / "data").mkdir()
    return Comparison(tmp_path / "data", tmp_path / "out", [1, 2], ENTRIES, None)


def make(comparison, program, jobs, report=lambda _: None):
    make_all(comparison, Journal(comparison.out, program), jobs, report)


STEPS = (
    "train global",
    "eval global",
    "train memory",
    "eval memory",
    "train none",
    "eval none",
    "finetune tuned",
    "eval tuned",
)


def test_one_after_the_other_keeps_the_order_of_the_file(comparison):
    program = Program()
    make(comparison, program, 1)
    assert program.begun == [f"{step}-{seed}" for seed in (1, 2) for step in STEPS]
    assert program.most == 1


@pytest.mark.parametrize("jobs", [2, 3, 9])
def test_several_at_once_make_the_same_each_after_its_base(comparison, jobs):
    program = Program(together=min(jobs, 4))  # global and none, of two seeds
    make(comparison, program, jobs)
    assert sorted(program.begun) == sorted(f"{step}-{seed}" for seed in (1, 2) for step in STEPS)
    assert program.most <= jobs
    for seed in (1, 2):
        chain = [f"{step}-{seed}" for step in STEPS if "none" not in step]
        assert [name for name in program.begun if name in chain] == chain
    again = Program()
    make(comparison, again, jobs)
    assert again.begun == []


@pytest.mark.parametrize("jobs", [1, 3])
def test_after_a_failure_what_runs_ends_and_nothing_else_begins(comparison, jobs):
    program = Program(fails="eval global-1")
    with pytest.raises(RunError, match=r"global-1\.eval"):
        make(comparison, program, jobs)
    assert program.begun.count("train memory-1") == 0
    assert sorted(program.begun) == sorted(program.ended)
    assert len(program.begun) < 16
    program.fails = ""
    make(comparison, program, jobs)  # goes on: only what failed is done twice
    assert len(program.begun) == 17


def test_messages_count_the_commands_those_done_before_too(comparison):
    lines: list[str] = []
    program = Program(fails="eval memory-2")
    with pytest.raises(RunError):
        make(comparison, program, 1, lines.append)
    program.fails = ""
    make(comparison, program, 1, lines.append)
    done = [line.split("; ") for line in lines if "done in" in line]
    assert [parts[-1] for parts in done] == [f"command {number} of 16" for number in range(1, 17)]
    assert {parts[1] for parts in done if ".eval" in parts[0]} == {"BLEU 1.00"}
    assert {len(parts) for parts in done if ".eval" not in parts[0]} == {2}
