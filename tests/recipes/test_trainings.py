"""The table of a recipe's trainings, from their metrics."""

from __future__ import annotations

import pytest

HEAD = "update,epoch,seconds,target_tokens,split,loss,perplexity,bleu\n"


@pytest.fixture
def trainings(script):
    return script("trainings")


def write(folder, run, text):
    (folder / run).mkdir()
    (folder / run / "metrics.csv").write_text(text)


def test_what_a_training_took_and_its_best_validation(trainings, tmp_path):
    rows = [
        "0,0,30.5,0,valid,3,9.9,31.5",  # the base of a finetuning
        "500,1,60.5,52000,train,3,20.1,",
        "782,1,90.5,80100,valid,3,20.1,12.345",
        "1564,2,180.5,160200,valid,3,18.0,12.5",
        "2346,3,1280.6,240300,valid,3,17.5,12.5",
    ]
    write(tmp_path, "a", HEAD + "\n".join(rows) + "\n")
    write(tmp_path, "b", HEAD + "20,1,2.4,900,train,3,20.1,\n")
    assert trainings.table(tmp_path, ["a", "b"]).splitlines() == [
        "| training | updates | epochs | target tokens | seconds | best validation BLEU |",
        "| --- | --- | --- | --- | --- | --- |",
        "| a | 2,346 | 3 | 240,300 | 1,281 | 12.50 (update 2,346) |",
        "| b | 20 | 1 | 900 | 2 |  |",
    ]


@pytest.mark.parametrize("text", ["", HEAD, "a,b\n1,2\n", f"{HEAD}1,x,2,3,train,3,20,\n"])
def test_damaged_metrics_are_named(trainings, tmp_path, text):
    write(tmp_path, "a", text)
    with pytest.raises(trainings.MetricsError) as caught:
        trainings.table(tmp_path, ["a"])
    path = tmp_path / "a" / "metrics.csv"
    assert str(caught.value) == f"{path}: damaged; delete the run and run the recipe again"


def test_missing_metrics_are_named(trainings, tmp_path):
    with pytest.raises(trainings.MetricsError, match=r"a/metrics\.csv: No such file or directory"):
        trainings.table(tmp_path, ["a"])
