"""What is read of metrics.csv."""

from __future__ import annotations

import pytest

from nmtflex.errors import RunError
from nmtflex.runs.folder import RunFolder
from nmtflex.runs.metrics import MetricsRow, read_metrics
from nmtflex.training.metrics import COLUMNS

HEADER = ",".join(COLUMNS)
LINES = [
    "50,1,30.5,4000,train,5.5,240.0,,0.001,1.5,,",
    "100,1,60.0,8000,train,4.0,55.0,,0.001,1.25,0.5,",
    "100,1,90.0,8000,valid,3.5,33.0,12.5,0.001,,0.25,8.75",
    "200,2,180.0,16000,valid,2.5,12.0,20.25,0.001,,0.75,6.5",
]


@pytest.fixture
def folder(tmp_path):
    def make(*lines: str, header: str = HEADER) -> RunFolder:
        text = "".join(f"{line}\n" for line in (header, *lines))
        (tmp_path / "metrics.csv").write_text(text, encoding="utf-8")
        return RunFolder(tmp_path)

    return make


def test_rows_are_read_and_empty_cells_left_out(folder):
    rows = read_metrics(folder(*LINES))
    assert rows[0] == MetricsRow(50, 30.5, "train", {"loss": 5.5, "perplexity": 240.0})
    assert rows[3].values["bleu"] == 20.25
    assert "bleu" not in rows[1].values


def test_a_run_without_metrics(tmp_path, folder):
    with pytest.raises(RunError) as caught:
        read_metrics(RunFolder(tmp_path))
    assert str(caught.value) == f"{tmp_path} has no metrics.csv: nmtflex train writes it"
    with pytest.raises(RunError) as caught:
        read_metrics(folder())
    message = f"{tmp_path / 'metrics.csv'} has no rows yet; let nmtflex train reach a validation"
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("line", "header", "words"),
    [
        ("50,1,soon,4000,train,5.5,240.0,,0.001,1.5,,", HEADER, "'soon'"),
        ("50,1", HEADER, ""),
        ("1,2", "a,b", "'loss'"),
    ],
)
def test_a_damaged_row_is_named(folder, line, header, words):
    run = folder(LINES[0], line, header=header) if header == HEADER else folder(line, header=header)
    number = 3 if header == HEADER else 2
    with pytest.raises(RunError) as caught:
        read_metrics(run)
    assert f"{run.metrics}:{number}: damaged" in str(caught.value)
    assert words in str(caught.value)


def test_metrics_in_another_encoding_are_named(folder):
    run = folder()
    run.metrics.write_bytes(b"\xff\xfe")
    with pytest.raises(RunError, match=r"metrics\.csv: damaged: not UTF-8"):
        read_metrics(run)


def test_a_row_without_end_is_named(folder):
    run = folder()
    run.metrics.write_text(f"{HEADER}\n1,2,{'9' * 200_000}\n")
    with pytest.raises(RunError, match=r"metrics\.csv: damaged: field larger"):
        read_metrics(run)
