"""A prepared folder that changed is found; one that did not is not read through."""

from __future__ import annotations

import os

import pytest

from nmtflex.config import PreprocessConfig
from nmtflex.corpus import integrity
from nmtflex.corpus.integrity import Integrity
from nmtflex.corpus.prepare import prepare
from nmtflex.errors import DataError


@pytest.fixture
def corpus(tmp_path):
    for lang in ("lo", "up"):
        (tmp_path / f"train.{lang}").write_text("a b\nb a\n")
    out = tmp_path / "prepared"
    train = [tmp_path / "train"]
    return prepare(PreprocessConfig(out=out, source_lang="lo", target_lang="up", train=train))


@pytest.fixture
def read(monkeypatch):
    """The names of the files that were read."""
    names, true_hash = [], integrity.file_hash

    def file_hash(path):
        names.append(path.name)
        return true_hash(path)

    monkeypatch.setattr(integrity, "file_hash", file_hash)
    return names


def change(path, later: bool = True) -> None:
    time = path.stat().st_mtime_ns
    path.write_bytes(path.read_bytes()[::-1])
    os.utime(path, ns=(time, time + later * 10**9))


def test_a_changed_file_is_named(corpus):
    path = corpus.folder / "train.target.bin"
    change(path, later=False)
    with pytest.raises(DataError, match=rf"{path} was changed after it was prepared: its SHA-256"):
        Integrity(corpus).check()


def test_a_small_file_is_read_even_where_it_looks_older_than_the_manifest(corpus):
    """As a copy does that keeps the time of the original."""
    path = corpus.folder / "train.source.bin"
    path.write_bytes(path.read_bytes()[::-1])
    os.utime(path, ns=(0, 0))
    with pytest.raises(DataError, match=rf"{path} was changed after it was prepared"):
        Integrity(corpus).check()


def test_what_has_not_changed_is_read_once(corpus, read):
    watch = Integrity(corpus)
    watch.check()
    assert set(read) == {name.split("/")[-1] for name in corpus.manifest["files"]}
    read.clear()
    watch.check()
    assert read == []
    change(corpus.folder / "train.source.bin")
    with pytest.raises(DataError, match="was changed after it was prepared"):
        watch.check()
    assert read == ["train.source.bin"]


def test_a_large_file_is_read_where_it_is_younger_than_the_manifest(corpus, read, monkeypatch):
    monkeypatch.setattr(integrity, "SMALL", -1)
    Integrity(corpus).check()
    assert read == []
    change(corpus.folder / "train.source.bin", later=True)
    with pytest.raises(DataError, match=r"train\.source\.bin was changed"):
        Integrity(corpus).check()
    assert read == ["train.source.bin"]


def test_a_file_that_went_away(corpus):
    watch = Integrity(corpus)
    watch.check()
    (corpus.folder / "train.source.bin").unlink()
    with pytest.raises(DataError, match=r"train\.source\.bin: No such file"):
        watch.check()
