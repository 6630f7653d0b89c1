from __future__ import annotations

from pathlib import Path

import pytest

from nmtflex.config import PreprocessConfig
from nmtflex.corpus import inputs
from nmtflex.corpus.inputs import find_corpora, read_chunks
from nmtflex.errors import DataError


@pytest.fixture
def find(tmp_path):
    """Write files and find the corpora: ``find({"a.en": "...", ...}, train=["a"], ...)``."""

    def make(files, source_lang="en", target_lang="ja", **options):
        for name, text in files.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        paths = {
            key: [tmp_path / name for name in value] if key == "train" else tmp_path / value
            for key, value in options.items()
            if key in ("train", "valid", "test")
        }
        languages = {"source_lang": source_lang, "target_lang": target_lang}
        return find_corpora(PreprocessConfig(out=Path("o"), **(languages | options | paths)))

    return make


PLAIN = {"a.en": "1\n2\n3\n", "a.ja": "一\n二\n三\n", "b.en": "4\n5\n", "b.ja": "四\n五\n"}


def pairs_of(chunks):
    return [pair for source, target in chunks for pair in zip(source, target, strict=True)]


def test_files_are_read_in_the_order_given(find, monkeypatch):
    monkeypatch.setattr(inputs, "CHUNK", 2)
    train = find(PLAIN, train=["b", "a"])["train"]
    chunks = list(read_chunks(train))
    assert chunks[0] == (["4", "5"], ["四", "五"])
    assert "".join(source for source, _ in pairs_of(chunks)) == "45123"
    assert [corpus.read for corpus in train] == [2, 3]


@pytest.mark.parametrize("chunk", [1, 2, 1000])
@pytest.mark.parametrize(
    ("most", "read"), [(1, [1, 0]), (3, [3, 0]), (4, [3, 1]), (5, [3, 2]), (9, [3, 2])]
)
def test_the_first_pairs_of_all_files_together(find, monkeypatch, most, read, chunk):
    monkeypatch.setattr(inputs, "CHUNK", chunk)
    train = find(PLAIN, train=["a", "b"])["train"]
    assert "".join(source for source, _ in pairs_of(read_chunks(train, most))) == "12345"[:most]
    assert [corpus.read for corpus in train] == read


def test_what_stands_after_the_first_pairs_is_not_looked_at(find):
    line = "1 ||| A ||| 1 ||| 犬 ||| dog\n"
    files = {"a.txt": f"{line}{line}no pair\n", "b.txt": ""}
    train = find(files, train=["a.txt", "b.txt"], format="aspec")["train"]
    assert pairs_of(read_chunks(train, 2)) == [("dog", "犬")] * 2
    with pytest.raises(DataError, match=r"a\.txt:3: 1 field, 'no pair'"):
        list(read_chunks(train, 3))


def test_each_split_of_aspec_has_its_layout(find):
    files = {
        "train-1.txt": "1 ||| A ||| 1 ||| 犬 ||| dog\n",
        "dev.txt": "A ||| 1 ||| 猫 ||| cat\n",
    }
    options = {"valid": "dev.txt", "test": "dev.txt", "format": "aspec"}
    found = find(files, "ja", "en", train=["train-1.txt"], **options)
    assert pairs_of(read_chunks(found["train"])) == [("犬", "dog")]
    assert pairs_of(read_chunks(found["valid"])) == [("猫", "cat")]
    assert pairs_of(read_chunks(found["test"])) == [("猫", "cat")]
    assert [path.name for path in found["train"][0].files] == ["train-1.txt"]


def test_a_file_of_another_layout_is_found_before_work_begins(find):
    line = "1 ||| A ||| 1 ||| 犬 ||| dog\n"
    with pytest.raises(DataError, match=r"train-1\.txt:1: 5 fields, .* is for --train$"):
        find({"train-1.txt": line}, train=["train-1.txt"], test="train-1.txt", format="aspec")


def test_empty_files_are_named(find):
    message = r"b\.en and \S*b\.ja: empty"
    train = find(PLAIN | {"b.en": "", "b.ja": ""}, train=["a", "b"])["train"]
    with pytest.raises(DataError, match=message):
        list(read_chunks(train))
    valid = find({"dev.txt": ""}, train=["dev.txt"], valid="dev.txt", format="aspec")["valid"]
    with pytest.raises(DataError, match=r"dev\.txt: empty"):
        list(read_chunks(valid))


def test_a_missing_file_is_named_whatever_the_format(find):
    with pytest.raises(DataError, match=r"none: no file for language 'en'"):
        find(PLAIN, train=["none"])
    with pytest.raises(DataError, match=r"none: no such file; tried none, none\.gz"):
        find(PLAIN, train=["none"], format="aspec")


def test_an_aspec_file_given_as_a_plain_corpus(find):
    with pytest.raises(DataError, match=r"or --format aspec for a file in ASPEC's format$"):
        find({"train-1.txt": ""}, train=["train-1.txt"])
