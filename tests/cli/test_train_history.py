"""The curve that a resumed training goes on with."""

from __future__ import annotations

from nmtflex.cli.train import _history
from nmtflex.model.run import RunFolder
from nmtflex.training.metrics import COLUMNS

ROWS = [
    "50,1,30.5,4000,train,5.5,240.0,,0.001,1.5,,",
    "100,1,90.0,8000,valid,3.5,33.0,12.5,0.001,,,",
    "200,2,180.0,16000,valid,2.5,12.0,20.25,0.001,,,",
]


def test_the_scores_of_the_validations_so_far(tmp_path):
    folder = RunFolder(tmp_path)
    folder.metrics.write_text("\n".join([",".join(COLUMNS), *ROWS]))
    assert _history(folder) == [12.5, 20.25]


def test_nothing_that_is_spoilt_keeps_a_training_from_going_on(tmp_path):
    folder = RunFolder(tmp_path)
    assert _history(folder) == []
    for content in (b"", ",".join(COLUMNS).encode(), b"a,b\n1,2\n", b"\xff\n"):
        folder.metrics.write_bytes(content)
        assert _history(folder) == []
