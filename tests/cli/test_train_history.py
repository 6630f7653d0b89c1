"""What is read of the validations so far: for the curve in a terminal, and for the last line."""

from __future__ import annotations

from nmtflex.cli.train import _best, _validations
from nmtflex.runs.folder import RunFolder
from nmtflex.training.metrics import COLUMNS
from nmtflex.training.progress import Progress

ROWS = [
    "50,1,30.5,4000,train,5.5,240.0,,0.001,1.5,,",
    "100,1,90.0,8000,valid,3.5,33.0,12.5,0.001,,,",
    "200,2,180.0,16000,valid,2.5,12.0,20.25,0.001,,,",
]


def test_the_scores_of_the_validations_so_far(tmp_path):
    folder = RunFolder(tmp_path)
    folder.metrics.write_text("\n".join([",".join(COLUMNS), *ROWS]))
    assert [row.values["bleu"] for row in _validations(folder)] == [12.5, 20.25]
    best = Progress(rate=0.001, best_score=20.25, best_update=200)
    assert _best(folder, best) == "; best at update 200 (BLEU 20.25, perplexity 12.00)"


def test_nothing_that_is_spoilt_keeps_a_training_from_going_on(tmp_path):
    folder = RunFolder(tmp_path)
    assert _validations(folder) == []
    for content in (b"", ",".join(COLUMNS).encode(), b"a,b\n1,2\n", b"\xff\n"):
        folder.metrics.write_bytes(content)
        assert _validations(folder) == []
        best = Progress(rate=0.001, best_score=-12.0, best_update=1200)
        assert _best(folder, best) == "; best at update 1,200"


def test_without_validations_no_weights_are_the_best(tmp_path):
    assert _best(RunFolder(tmp_path), Progress(rate=0.001, best_update=200)) == ""
