"""The table of a recipe, from the JSON of eval; and single values of it."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def show(script, tmp_path):
    module = script("table")

    def run(text: str, **files: dict[str, object]) -> list[str]:
        for name, found in files.items():
            (tmp_path / f"{name}.json").write_text(json.dumps(found))
        return module.show(text.splitlines(), tmp_path, "Title").splitlines()

    run.error = module.TableError
    return run


def test_measured_beside_the_papers_figures(show):
    text = "global | a | cps=24.4 bleu=34.87\n\nnone | b |\nA remark.\n"
    a = {"bleu": 30.125, "cps": 8.0, "encoding_computations": 0, "decoding_seconds": 1.25}
    assert show(text, a=a, b={"bleu": 0.0, "cps": 0.0}) == [
        "",
        "Title",
        "",
        "|  | BLEU | BLEU, paper | CPS | CPS, paper | decoding, s |",
        "| --- | --- | --- | --- | --- | --- |",
        "| global | 30.12 | 34.87 | 8.00 | 24.4 | 1.2 |",
        "| none | 0.00 |  | 0.00 |  |  |",
        "",
        "A remark.",
    ]


def test_seeds_and_a_file_over_another(show):
    seeds = {f"s{seed}": {"bleu": 30.0 + seed, "cps": 2.0} for seed in (1, 2, 3)}
    text = "flexible | s1 s2 s3 |\nmemory | m+tok |"
    memory = {"bleu": 9.0, "cps": 32.0, "encoding_computations": 825.4}
    lines = show(text, **seeds, m=memory, tok={"bleu": 8.0})
    assert lines[-2:] == [
        "| flexible | 32.00 (31.00 to 33.00) | 2.00 (2.00 to 2.00) |  |",
        "| memory | 8.00 | 32.00 | 825 |",
    ]


def test_faults_name_what_is_wrong(show, tmp_path):
    with pytest.raises(show.error, match=r"'a \| b': a row has three fields, this one 2"):
        show("a | b")
    with pytest.raises(show.error, match="a: 'speed=3' is no figure of eval"):
        show("a | b | speed=3", b={})
    with pytest.raises(show.error, match=r"x\.json: No such file or directory; run the recipe"):
        show("a | x |")
    (tmp_path / "y.json").write_text("{")
    with pytest.raises(show.error, match=r"y\.json: damaged; delete it and run the recipe again"):
        show("a | y |")


def test_values(script):
    value = script("value").value
    found = {"bleu": 30.984, "chosen": {"tau": "inf"}, "other": None}
    assert value(found, "bleu") == "30.984"
    assert value(found, "chosen.tau") == "inf"
    assert value(found, "other.tau") == ""
    with pytest.raises(KeyError, match="ribes"):
        value(found, "ribes")
