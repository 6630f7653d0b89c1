"""Steps are done once; what does not fit its note is done again, or refused."""

from __future__ import annotations

import json
import signal

import pytest

from nmtflex.comparison.journal import Journal, Step
from nmtflex.errors import OptionError, RunError, StoppedError


class Program:
    """Stands in for nmtflex: notes the commands, makes runs, prints JSON."""

    def __init__(self) -> None:
        self.commands: list[list[str]] = []
        self.code = 0
        self.weights = "first"

    def __call__(self, words):
        self.commands.append(list(words))
        if "--run" in words and not self.code:
            make_run(words[words.index("--run") + 1], self.weights)
        return self.code, '{"bleu": 1.5}' if words[0] == "eval" else ""


def make_run(path, weights):
    from pathlib import Path

    best = Path(path) / "checkpoints" / "best.safetensors"
    best.parent.mkdir(parents=True, exist_ok=True)
    best.write_text(weights)


@pytest.fixture
def program():
    return Program()


@pytest.fixture
def journal(tmp_path, program):
    return Journal(tmp_path / "out", program)


@pytest.fixture
def data(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "manifest.json").write_text("{}")
    return tmp_path / "data"


def training(data, run, *options):
    return Step("one.train", ["train", str(data), "--run", str(run), *options], [data], run)


def scoring(run, *options):
    return Step("one.eval", ["eval", str(run), *options], [run])


def test_what_is_done_is_not_done_again(tmp_path, journal, program, data):
    run = tmp_path / "run"
    for step in (training(data, run), scoring(run)):
        assert journal.result(step) is None
        result = journal.do(step)
        assert journal.result(step) == result
    assert journal.result(scoring(run)) == {"bleu": 1.5}
    assert [words[0] for words in program.commands] == ["train", "eval"]
    # Another comparison over the same folder knows it too.
    assert Journal(tmp_path / "out", program).result(scoring(run)) == {"bleu": 1.5}


def test_other_options_or_other_weights_are_another_step(tmp_path, journal, data):
    run = tmp_path / "run"
    journal.do(training(data, run))
    journal.do(scoring(run))
    assert journal.result(scoring(run, "--beam", "2")) is None
    assert journal.result(training(data, run, "--epochs", "9")) is None  # train goes on, or refuses
    make_run(run, "second")
    assert journal.result(scoring(run)) is None
    assert journal.result(training(data, run)) is None


@pytest.mark.parametrize("state", ["there", "gone"])
def test_a_run_of_other_data_is_refused_while_it_is_there(tmp_path, journal, data, state):
    run = tmp_path / "run"
    journal.do(training(data, run))
    (data / "manifest.json").write_text('{"other": 1}')
    if state == "gone":
        (run / "checkpoints" / "best.safetensors").unlink()
        (run / "checkpoints").rmdir()
        run.rmdir()
        assert journal.result(training(data, run)) is None
        return
    with pytest.raises(RunError, match=f"{run} was made from another data; delete {run}"):
        journal.result(training(data, run))


def test_a_half_made_run_has_no_note(tmp_path, journal, program, data):
    run, program.code = tmp_path / "run", 130
    make_run(run, "half")
    with pytest.raises(StoppedError, match=r"one\.train: nmtflex train was interrupted"):
        journal.do(training(data, run))
    assert journal.result(training(data, run)) is None


@pytest.mark.parametrize(
    ("code", "kind", "exit_code", "words"),
    [
        (2, OptionError, 2, "nmtflex train failed"),
        (1, RunError, 1, "nmtflex train failed"),
        (130, StoppedError, 130, "interrupted"),
        (143, StoppedError, 143, "interrupted"),
        (-signal.SIGTERM, StoppedError, 143, "interrupted"),
        (-signal.SIGKILL, RunError, 1, "killed by SIGKILL"),
    ],
)
def test_a_failed_command_ends_the_comparison(
    tmp_path, journal, program, data, code, kind, exit_code, words
):
    program.code = code
    run = tmp_path / "run"
    with pytest.raises(kind, match=f"one.train.*{words}") as caught:
        journal.do(training(data, run))
    assert caught.value.exit_code == exit_code
    assert str(run) not in str(caught.value)
    if words.endswith("failed"):
        make_run(run, "half")
        with pytest.raises(kind, match=f"to train anew, delete {run}"):
            journal.do(training(data, run))


def test_files_of_one_name_are_all_watched(journal, program, tmp_path):
    files = [tmp_path / folder / "test.ja" for folder in ("one", "other")]
    for file in files:
        file.parent.mkdir()
        file.write_text("before")
    step = Step("one.eval", ["eval"], files)
    journal.do(step)
    for number, file in enumerate(files, start=2):
        file.write_text("after")
        assert journal.result(step) is None
        journal.do(step)
        assert len(program.commands) == number


@pytest.mark.parametrize("text", ["[]", "{", json.dumps({"words": [], "reads": {}})])
def test_a_damaged_note_is_named(tmp_path, journal, text):
    journal.folder.mkdir(parents=True)
    note = journal.folder / "one.eval.json"
    note.write_text(text)
    with pytest.raises(RunError, match=str(note)):
        journal.result(scoring(tmp_path / "run"))
