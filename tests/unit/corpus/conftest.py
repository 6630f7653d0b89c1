"""Fixtures for making prepared folders of tiny corpora."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nmtflex.config import PreprocessConfig
from nmtflex.corpus.prepare import prepare
from nmtflex.corpus.store import PreparedCorpus


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write one corpus: ``write("train", en, ja)``; returns its prefix."""

    def make(name: str, source: str, target: str) -> Path:
        (tmp_path / f"{name}.en").write_bytes(source.encode())
        (tmp_path / f"{name}.ja").write_bytes(target.encode())
        return tmp_path / name

    return make


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., PreparedCorpus]:
    """Prepare with defaults for what every call needs."""

    def make(out: str = "out", **options) -> PreparedCorpus:
        languages = {"source_lang": "en", "target_lang": "ja"}
        return prepare(PreprocessConfig(out=tmp_path / out, **(languages | options)))

    return make


@pytest.fixture
def contents() -> Callable[[Path], dict[str, bytes]]:
    """Read every file of a folder, by its path in it."""

    def read(folder: Path) -> dict[str, bytes]:
        files = (path for path in folder.rglob("*") if path.is_file())
        return {str(path.relative_to(folder)): path.read_bytes() for path in files}

    return read
