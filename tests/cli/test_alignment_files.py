"""translate --alignment and score --alignment."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import nmtflex
from nmtflex.config import (
    FlexibleConfig,
    GlobalConfig,
    LocalMConfig,
    LocalPConfig,
    MemoryConfig,
    NoneConfig,
)
from nmtflex.decoding.traces import trace_pairs

ONE_THREAD = ("--threads", 1, "--device", "cpu")
LINES = ["a b c", "", "h g f e d c b a", "日本 ?"]


@pytest.fixture
def source(tmp_path) -> Path:
    path = tmp_path / "source.aa"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return path


def links(attended) -> str:
    return " ".join(f"{best}-{step}" for step, best in enumerate(attended))


def greatest(weights, words: int) -> str:
    """Return the links of the steps of words, without that of the end."""
    return links(row.index(max(row)) for row in weights[:words])


def translated(command_line, *arguments: object) -> tuple[list[str], str]:
    outcome = command_line("translate", *arguments, *ONE_THREAD)
    assert outcome.code == 0, outcome.err
    return outcome.out.splitlines(), outcome.err


@pytest.mark.parametrize(
    "attention",
    [GlobalConfig(), FlexibleConfig(), LocalMConfig(), LocalPConfig(), MemoryConfig(K=3)],
    ids=lambda config: config.kind,
)
def test_each_word_is_linked_to_where_it_looked_most(
    command_line, make_tiny_run, source, tmp_path, attention
) -> None:
    run, file, traces = make_tiny_run("run", attention), tmp_path / "links", tmp_path / "traces"
    lines, _ = translated(
        command_line, run, "-i", source, "--alignment", file, "--attention-output", traces,
        "--dtype", "float64",
    )  # fmt: skip
    records = [json.loads(line) for line in traces.read_text().splitlines()]
    found = file.read_text().split("\n")
    assert len(found) == len(LINES) + 1
    assert found[1] == ""
    for line, text, record in zip(found, lines, records, strict=False):
        assert len(line.split()) == len(text.split())
        exact = [sorted(row)[-2:] for row in record["weights"] or []]
        if all(two[-1] - two[0] > 1e-5 for two in exact if len(two) > 1):  # six digits are written
            assert line == greatest(record["weights"] or [], len(text.split()))
    assert len(found[2].split()) > 1


def test_batches_and_buffers_change_nothing(command_line, tiny_run, tmp_path) -> None:
    source = tmp_path / "many.aa"
    source.write_text("".join(f"{LINES[n % 3]}\n" for n in range(30)))
    found = []
    for number, options in enumerate(([], ["--batch-sentences", 1], ["--buffer", 7])):
        file = tmp_path / f"{number}.links"
        translated(command_line, tiny_run, "-i", source, "--alignment", file, *options)
        found.append(file.read_text())
    assert found[0] == found[1] == found[2]
    assert found[0].count("\n") == 30


def test_every_translation_of_the_n_best_has_a_line(command_line, tiny_run, source, tmp_path):
    file = tmp_path / "links"
    options = ("--n-best", 3, "--format", "json", "--alignment", file)
    lines, _ = translated(command_line, tiny_run, "-i", source, *options)
    texts = [one["text"] for line in lines for one in json.loads(line)["translations"]]
    aligned = file.read_text().splitlines()
    assert [len(line.split()) for line in aligned] == [len(text.split()) for text in texts]
    assert len(texts) == 3 * 3 + 1
    plain = tmp_path / "best"
    translated(command_line, tiny_run, "-i", source, "--alignment", plain)
    best = plain.read_text().splitlines()
    assert [aligned[0], aligned[3], aligned[4]] == best[:3]
    found = nmtflex.load(tiny_run, threads=1).n_best(LINES, 3, align=True)
    assert [links(one.attended) for several in found for one in several] == aligned
    assert all(one.trace is None for several in found for one in several)


def test_given_translations_are_aligned_as_the_search_aligns_them(
    command_line, tiny_run, source, tmp_path
) -> None:
    by_search, by_score, target = tmp_path / "1", tmp_path / "2", tmp_path / "target.bb"
    lines, _ = translated(command_line, tiny_run, "-i", source, "--alignment", by_search)
    target.write_text("".join(f"{line}\n" for line in lines))
    outcome = command_line(
        "score", tiny_run, *ONE_THREAD, "--source", source, "--target", target,
        "--alignment", by_score,
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert len(outcome.out.splitlines()) == len(LINES)
    assert by_score.read_text() == by_search.read_text() != "\n" * len(LINES)


def test_an_ensemble_counts_the_mean_of_those_with_weights(
    command_line, make_tiny_run, source, tmp_path
) -> None:
    runs = [
        make_tiny_run("none", NoneConfig(), decoder="luong"),
        make_tiny_run("one", GlobalConfig(), seed=2),
        make_tiny_run("two", FlexibleConfig(), seed=3),
    ]
    file = tmp_path / "links"
    lines, _ = translated(
        command_line, *runs, "-i", source, "--alignment", file, "--dtype", "float64"
    )
    alone = []
    for run in runs[1:]:
        translator = nmtflex.load(run, threads=1, dtype="float64")
        ids = [
            (translator.pipeline.source.encode(line), translator.pipeline.target.encode(text))
            for line, text in zip(LINES, lines, strict=True)
        ]
        alone.append([trace and trace.weights for trace in trace_pairs(translator._models[0], ids)])
    for number, (one, two) in enumerate(zip(*alone, strict=True)):
        expected = "" if one is None else links(np.argmax((one + two)[:-1], axis=1))
        assert file.read_text().split("\n")[number] == expected


def test_layer_and_head_choose_the_weights(command_line, make_layered_run, source, tmp_path):
    run = make_layered_run("run", GlobalConfig())
    found = []
    for options in ([], ["--layer", 2, "--head", 1], ["--layer", 1]):
        file, traces = tmp_path / "links", tmp_path / "traces"
        lines, _ = translated(
            command_line, run, "-i", source, "--alignment", file, "--attention-output", traces,
            *options,
        )  # fmt: skip
        rows = [json.loads(line)["weights"] for line in traces.read_text().splitlines()]
        found.append(file.read_text())
        best = [greatest(row or [], len(text.split())) for row, text in zip(rows, lines)]  # noqa: B905
        assert found[-1].splitlines() == best
    assert len(set(found)) > 1


def test_characters_are_aligned_as_words(command_line, make_tiny_run, tmp_path) -> None:
    run = make_tiny_run("run", GlobalConfig())
    for side in ("source", "target"):
        path = run / "pipeline" / "pipeline.json"
        about = json.loads(path.read_text())
        about[side]["tokenizer"] = {"name": "char"}
        path.write_text(json.dumps(about))
    source, target, file = tmp_path / "s", tmp_path / "t", tmp_path / "links"
    source.write_text("abc de\n")
    target.write_text("A BCD EF\n")
    command_line(
        "score", run, *ONE_THREAD, "--source", source, "--target", target, "--alignment", file
    )
    pairs = [pair.split("-") for pair in file.read_text().split()]
    assert [int(target) for _, target in pairs] == [0, 1, 2]
    assert {int(source) for source, _ in pairs} <= {0, 1}


@pytest.mark.parametrize("command", ["translate", "score"])
def test_without_weights_there_is_no_alignment(
    command_line, make_tiny_run, source, tmp_path, command
) -> None:
    run = make_tiny_run("none", NoneConfig(), decoder="luong")
    files = ["-i", source] if command == "translate" else ["--source", source, "--target", source]
    outcome = command_line(command, run, *files, "--alignment", tmp_path / "links", *ONE_THREAD)
    assert (outcome.code, outcome.out) == (2, "")
    for value in ("--alignment", str(run), "attention none"):
        assert value in outcome.err
    assert not (tmp_path / "links").exists()


@pytest.mark.parametrize(
    ("command", "flag"),
    [("translate", "--input"), ("translate", "--output"), ("translate", "--attention-output"),
     ("score", "--source"), ("score", "--target")],
)  # fmt: skip
def test_the_alignment_overwrites_no_other_file(
    command_line, tiny_run, source, tmp_path, command, flag
) -> None:
    given = {"--source": source, "--target": tmp_path / "t"} if command == "score" else {}
    file = given.get(flag, source)
    arguments = [word for pair in {**given, flag: file}.items() for word in pair]
    outcome = command_line(command, tiny_run, *arguments, "--alignment", file)
    assert (outcome.code, outcome.out) == (2, "")
    assert f"--alignment {file} is the {flag} file" in outcome.err


def test_a_layer_without_anything_to_show(command_line, tiny_run, source) -> None:
    outcome = command_line("score", tiny_run, "--source", source, "--target", source, "--head", 1)
    assert (outcome.code, outcome.out) == (2, "")
    assert "--head 1" in outcome.err
    assert "--alignment" in outcome.err
