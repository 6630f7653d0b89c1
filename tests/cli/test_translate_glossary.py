"""``translate --glossary`` and ``--ignore-case``."""

from __future__ import annotations

import json

import pytest

import nmtflex
from nmtflex.config import GlobalConfig, NoneConfig

ONE_THREAD = ("--threads", 1)
LINES = ["a b c", "", "C a", "b b", "a. d c", "g h"]


@pytest.fixture
def files(tmp_path):
    """A source and a glossary."""
    source, glossary = tmp_path / "in.txt", tmp_path / "terms.tsv"
    source.write_text("".join(f"{line}\n" for line in LINES))
    glossary.write_text("c\tNew  X-1\nb b\tQ\n")
    return source, glossary


@pytest.mark.sampled(2)
@pytest.mark.parametrize("attention", [GlobalConfig(), NoneConfig()], ids=["aligned", "not"])
def test_terms_come_out_and_other_lines_stay(command_line, make_tiny_run, files, attention) -> None:
    source, glossary = files
    options = [make_tiny_run("run", attention), *ONE_THREAD, "-i", source]
    plain = command_line("translate", *options).out.splitlines()
    with_terms = command_line("translate", *options, "--glossary", glossary)
    assert with_terms.code == 0, with_terms.err
    lines = with_terms.out.splitlines()
    assert ["New  X-1" in line for line in lines] == [True, False, True, False, True, False]
    assert ["Q" in line for line in lines] == [False, False, False, True, False, False]
    assert [lines[1], lines[5]] == [plain[1], plain[5]]
    for more in (("--workers", 2), ("--buffer", 1), ("--batch-sentences", 1)):
        again = command_line("translate", *options, "--glossary", glossary, *more)
        assert again.out == with_terms.out


def test_every_hypothesis_has_the_terms(command_line, tiny_run, files) -> None:
    source, glossary = files
    options = ["--n-best", 3, "--format", "json", "--glossary", glossary, "--replace-unk"]
    result = command_line("translate", tiny_run, *ONE_THREAD, "-i", source, *options)
    assert result.code == 0, result.err
    records = [json.loads(line) for line in result.out.splitlines()]
    for index in (0, 2, 4):
        texts = [one["text"] for one in records[index]["translations"]]
        assert len(texts) == 3
        assert all("New  X-1" in text for text in texts)


def test_sentences_have_their_terms(command_line, tiny_run, files) -> None:
    source, glossary = files
    options = ["--split", "sentences", "--glossary", glossary]
    result = command_line("translate", tiny_run, *ONE_THREAD, "-i", source, *options)
    assert result.out.splitlines()[4].count("New  X-1") == 1


def test_case_counts_unless_ignored(command_line, tiny_run, files, tmp_path) -> None:
    source, glossary = files
    glossary.write_text("C\tX\n")
    options = [tiny_run, *ONE_THREAD, "-i", source, "--glossary", glossary]
    found = command_line("translate", *options).out.splitlines()
    assert ["X" in line for line in found] == [False, False, True, False, False, False]
    found = command_line("translate", *options, "--ignore-case").out.splitlines()
    assert ["X" in line for line in found] == [True, False, True, False, True, False]


def test_the_alignment_has_as_many_words_as_the_text(
    command_line, tiny_run, files, tmp_path
) -> None:
    source, glossary = files
    links = tmp_path / "links"
    options = ["--glossary", glossary, "--alignment", links]
    result = command_line("translate", tiny_run, *ONE_THREAD, "-i", source, *options)
    assert result.code == 0, result.err
    for text, line in zip(result.out.splitlines(), links.read_text().splitlines(), strict=True):
        targets = [int(link.split("-")[1]) for link in line.split()]
        assert targets == list(range(len(text.split())))


@pytest.mark.parametrize(
    ("content", "options", "value"),
    [
        ("c\tX\nd X\n", [], "terms.tsv:2: "),
        ("c\tX\n", ["--output", "terms.tsv"], "terms.tsv is the --output file"),
        (None, [], "terms.tsv: No such file"),
    ],
)
def test_mistakes_are_named(
    command_line, tiny_run, tmp_path, monkeypatch, content, options, value
) -> None:
    monkeypatch.chdir(tmp_path)
    if content:
        (tmp_path / "terms.tsv").write_text(content)
    result = command_line("translate", tiny_run, *ONE_THREAD, "--glossary", "terms.tsv", *options)
    assert result.code in (1, 2)
    assert value in result.err
    assert result.err.count("\n") == 1
    assert not content or (tmp_path / "terms.tsv").read_text() == content


def test_ignore_case_needs_a_glossary(command_line, tiny_run) -> None:
    result = command_line("translate", tiny_run, "--ignore-case")
    assert result.code == 2
    assert "--ignore-case has no effect without --glossary" in result.err


def test_the_api_does_the_same(command_line, tiny_run, files) -> None:
    source, glossary = files
    result = command_line("translate", tiny_run, *ONE_THREAD, "-i", source, "--glossary", glossary)
    translator = nmtflex.load(tiny_run, threads=1)
    found = translator.n_best(LINES, 1, glossary=nmtflex.Glossary.read(glossary))
    assert [best.text for (best,) in found] == result.out.splitlines()
