"""Training pairs by name, as far as the store knows them."""

from __future__ import annotations

import pytest

from nmtflex.config import PreprocessConfig
from nmtflex.corpus.places import name_pairs
from nmtflex.corpus.prepare import prepare


@pytest.fixture
def make(tmp_path):
    def made(*texts: str):
        paths = [tmp_path / f"part{number}" for number in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.with_name(f"{path.name}.lo").write_text(text)
            path.with_name(f"{path.name}.up").write_text(text.replace("b", "b b"))
        out = tmp_path / "prepared"
        return prepare(PreprocessConfig(out=out, source_lang="lo", target_lang="up", train=paths))

    return made


def test_lines_of_a_file(make, tmp_path):
    corpus = make("a\na b\na a a\n")
    assert name_pairs(corpus, [1]) == (
        f"line 2 of {tmp_path / 'part0.lo'} (source 2, target 3 tokens)"
    )
    assert name_pairs(corpus, [2, 0]) == (
        f"lines 1, 3 of {tmp_path / 'part0.lo'} (source 1 to 3, target 1 to 3 tokens)"
    )


def test_lines_of_several_files(make, tmp_path):
    corpus = make("a\nb\n", "a a\n")
    assert name_pairs(corpus, [0, 2]) == (
        f"line 1 of {tmp_path / 'part0.lo'} and line 1 of {tmp_path / 'part1.lo'} "
        f"(source 1 to 2, target 1 to 2 tokens)"
    )


def test_where_pairs_were_dropped_their_numbers_are_of_those_kept(make, tmp_path):
    corpus = make("a\n\nb b\n")
    assert name_pairs(corpus, [1]) == (
        f"training pair 2 of those kept in {tmp_path / 'prepared'} (source 2, target 4 tokens)"
    )


def test_many_are_counted(make, tmp_path):
    corpus = make("a\n" * 20)
    assert name_pairs(corpus, range(20)).startswith(
        f"lines 1, 2, 3, 4, 5, 6, 7, 8 of {tmp_path / 'part0.lo'} and 12 more (source 1 to 1"
    )
