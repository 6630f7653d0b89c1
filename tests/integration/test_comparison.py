"""A comparison from its file to its table: interrupted, resumed, changed."""

from __future__ import annotations

import csv
import io
import json
from contextlib import redirect_stdout

import pytest

pytest.importorskip("matplotlib")

from nmtflex.cli.app import main
from nmtflex.comparison.processes import Processes

pytestmark = pytest.mark.integration

FILE = """\
data = "{folder}/prepared"
out = "{folder}/out"
seeds = [1, 2]

[train]
decoder = "luong"
embedding-size = 4
encoder-size = 4
decoder-size = 8
updates = 3
valid-beam = 1
threads = 1

[eval]
beam = 2
samples = 20
threads = 1

[bench]
repeats = 2

[entries.global]
attention = "global"

[entries.flexible]
attention = "flexible"
finetune = {{ updates = 1 }}
sweep = {{ tau = "0.5,inf" }}

[entries.memory]
attention = "memory"
init-from = "global"
K = 2
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("comparison")
    for split, count in (("train", 40), ("valid", 3), ("test", 5)):
        lines = [" ".join("abcdef"[: 2 + line % 4]) for line in range(count)]
        (path / f"{split}.aa").write_text("\n".join(lines) + "\n")
        (path / f"{split}.bb").write_text("\n".join(lines).upper() + "\n")
    splits = [f"--{split}={path}/{split}" for split in ("train", "valid", "test")]
    code = main([
        "preprocess",
        "--source-lang=aa",
        "--target-lang=bb",
        *splits,
        f"--out={path}/prepared",
    ])
    assert code == 0
    return path


class Here:
    """Runs the commands in this process, and one of them not to its end."""

    def __init__(self) -> None:
        self.commands: list[str] = []
        self.stops_at = 0

    def __call__(self, words):
        self.commands.append(f"{words[0]} {words[1]}")
        if len(self.commands) == self.stops_at:
            return 130, ""
        printed = io.StringIO()
        with redirect_stdout(printed):
            code = main(list(words))
        return code, printed.getvalue()


@pytest.fixture
def here(monkeypatch):
    program = Here()
    monkeypatch.setattr(Processes, "__call__", lambda _, words: program(words))
    return program


def test_two_mechanisms_three_times(folder, here, command_line):
    path, out = folder / "three.toml", folder / "out"
    path.write_text(FILE.format(folder=folder))
    here.stops_at = 8
    outcome = command_line("compare", path, "--json")
    assert (outcome.code, outcome.out) == (130, "")
    assert "memory-1.eval: nmtflex eval was interrupted" in outcome.err
    assert not (out / "comparison.csv").exists()

    before, here.stops_at = len(here.commands), 0
    outcome = command_line("compare", path, "--json")
    assert outcome.code == 0, outcome.err
    assert here.commands[before] == f"eval {out}/memory-1"  # and nothing before it again
    memory = json.loads((out / "memory-2" / "config.json").read_text())
    assert memory["train"]["init_from"] == f"{out}/global-2"
    found = json.loads(outcome.out)
    assert [entry["entry"] for entry in found["entries"]] == ["global", "flexible", "memory"]
    for entry in found["entries"]:
        assert len(entry["seeds"]) == 2
        assert entry["bleu"]["least"] <= entry["bleu"]["mean"] <= entry["bleu"]["most"]
        assert entry["speed"]["microseconds"]["median"] > 0
        assert ("tau" in entry["seeds"][0]) == (entry["entry"] == "flexible")
    memory = found["entries"][2]
    assert (memory["cps"], memory["speed"]["source_positions"]) == (2, 3)
    assert memory["speed"]["memory_bytes"] == 4 * 2 * 8  # 2 slots of 2 x 4 units
    rows = list(csv.DictReader((out / "comparison.csv").open()))
    assert [row["entry"] for row in rows] == ["global", "flexible", "memory"]
    assert float(rows[0]["bleu"]) == found["entries"][0]["bleu"]["mean"]
    assert (out / "comparison.md").read_text().count("\n") == 5
    assert (out / "comparison.png").stat().st_size > 1000

    before = len(here.commands)
    again = command_line("compare", path, "--json")
    assert json.loads(again.out) == found  # the speed, too: nothing has changed
    assert len(here.commands) == before
    dry = command_line("compare", path, "--dry-run").out.splitlines()
    assert all(line.startswith("# ") for line in dry)

    # What is made from a training that has to go on is open, too.
    dry = command_line("compare", path, "--dry-run", "--updates", "4").out.splitlines()
    assert not any(line.startswith("# done") for line in dry)


@pytest.mark.slow
def test_a_changed_entry(folder, here, command_line):
    path, out = folder / "changed.toml", folder / "out"
    text = FILE.format(folder=folder).replace("[1, 2]", "[1]")
    path.write_text(text)
    assert command_line("compare", path).code == 0
    path.write_text(text.replace("K = 2", "K = 3"))
    outcome = command_line("compare", path)
    assert outcome.code == 2
    first, second = outcome.err.splitlines()[-2:]
    assert f"{out}/memory-1 is a run with other options: --K was 2, not 3" in first
    assert "memory-1.train: nmtflex train failed; mend that and" in second
    assert f"(to train anew, delete {out}/memory-1)" in second

    # A new entry is trained; what is there is only scored anew if that has changed.
    path.write_text(text.replace("beam = 2", "beam = 1") + "[entries.none]\nattention = 'none'\n")
    here.commands.clear()
    outcome = command_line("compare", path)
    assert outcome.code == 0, outcome.err
    assert [line.split()[0] for line in here.commands] == [
        "eval", "sweep", "eval", "eval", "train", "eval",
    ]  # fmt: skip
    head, *rows = outcome.out.splitlines()
    assert head.split("\t")[:3] == ["entry", "BLEU", "chrF2"]
    assert [row.split("\t")[0] for row in rows] == ["global", "flexible", "memory", "none"]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("eval = { tau = 0.5 }", "entry memory: a threshold needs flexible attention, and it has"),
        (
            "[entries.one]\nattention = 'none'\neval = { replace-unk = true }",
            "entry one: --replace-unk needs weights over source positions, and it has --attention "
            "none; put replace-unk = false into [entries.one.eval]",
        ),
        (
            "[entries.one]\nattention = 'memory'\neval = { reuse-below = 0.5 }",
            'entry one: reuse-below needs attend-every = "gate"',
        ),
        (
            "[entries.one]\nattention = 'global'\nfinetune = { beta = 0.5 }",
            "--beta 0.5 weighs the gate of flexible attention or of --attend-every gate, and entry "
            "one has global at every step; leave it out",
        ),
        (
            "[entries.one]\nfrom = 'memory'\nfinetune = { train-tau = 2 }",
            "--train-tau 2 needs flexible attention, and entry one has memory; leave it out",
        ),
    ],
)
def test_what_attention_lacks_is_found_before_training(folder, here, command_line, entry, words):
    path = folder / "lacking.toml"
    path.write_text(f"{FILE.format(folder=folder)}{entry}\n")
    for flags in ([], ["--dry-run"]):
        outcome = command_line("compare", path, *flags)
        assert (outcome.code, here.commands) == (2, [])
        assert words in outcome.err
