"""A finetuned run's curve begins where the training of its base stood."""

from __future__ import annotations

import json
import shutil

import pytest

from nmtflex.config import GlobalConfig
from nmtflex.files import file_hash
from nmtflex.runs.folder import RunFolder
from nmtflex.runs.origin import read_curve, start_of

HEADER = "update,epoch,seconds,target_tokens,split,loss,perplexity,bleu,learning_rate,"
COLUMNS = f"{HEADER}gradient_norm,gate_mean,cps\n"


def write_metrics(run, *rows):
    lines = [f"{update},1,{seconds},9,valid,1.0,2.0,{bleu},,,,\n" for update, seconds, bleu in rows]
    (run / "metrics.csv").write_text(COLUMNS + "".join(lines))


def finetuned(run, base, **train):
    """Make a run one that was finetuned from another one."""
    path = run / "config.json"
    config = json.loads(path.read_text())
    config["base"] = file_hash(RunFolder(base).best)
    config["train"] = {"base_run": str(base), **train}
    path.write_text(json.dumps(config))


def set_best(run, update):
    from nmtflex.runs.weights import load_tensors, save_tensors

    best = RunFolder(run).best
    tensors, _ = load_tensors(best)
    save_tensors(best, tensors, {"update": str(update)})


@pytest.fixture
def chain(make_tiny_run):
    """A run, one finetuned from it, and one finetuned from that."""
    runs = [make_tiny_run(name, GlobalConfig()) for name in ("first", "second", "third")]
    for run, update in zip(runs, (300, 20, 5), strict=True):
        set_best(run, update)
    write_metrics(runs[0], (100, 10.0, 1), (300, 30.0, 3), (400, 41.0, 2))
    write_metrics(runs[1], (0, 1.0, 3), (20, 4.0, 4))
    write_metrics(runs[2], (0, 0.5, 4), (5, 2.0, 5))
    finetuned(runs[1], runs[0])
    finetuned(runs[2], runs[1])
    return runs


def test_updates_and_seconds_of_the_bases_come_before(chain):
    assert start_of(RunFolder(chain[0])) == (0, 0.0)
    assert start_of(RunFolder(chain[1])) == (300, 30.0)  # its best weights, not its last ones
    assert start_of(RunFolder(chain[2])) == (320, 34.0)
    places = [(row.update, row.seconds) for row in read_curve(RunFolder(chain[2]))]
    assert places == [(320, 34.5), (325, 36.0)]


def test_a_base_is_found_beside_the_run(chain, tmp_path):
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for run in chain[:2]:
        shutil.move(run, moved / run.name)
    assert start_of(RunFolder(moved / "second")) == (300, 30.0)


@pytest.mark.parametrize("what", ["gone", "changed"])
def test_without_its_base_a_curve_begins_at_its_own_start(chain, what):
    if what == "gone":
        shutil.rmtree(chain[0])
    else:
        set_best(chain[0], 301)
    assert start_of(RunFolder(chain[1])) == (0, 0.0)


def test_a_run_that_names_itself_ends(chain):
    finetuned(chain[0], chain[0])
    assert start_of(RunFolder(chain[0])).update % 300 == 0
