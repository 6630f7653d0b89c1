"""Damaged files: whatever is done to one, its reader raises a NmtflexError, soon, or reads it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from mutations import edits
from readers import TARGETS, make_files, try_target

LONG = 50  # times as many examples in the slow form

QUIET = settings(
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    threads = torch.get_num_threads()
    folder = tmp_path_factory.mktemp("fuzz")
    make_files(folder)
    torch.set_num_threads(1)
    yield folder
    torch.set_num_threads(threads)


def fuzz(name: str, files: Path, times: int) -> None:
    target = TARGETS[name]

    @settings(QUIET, max_examples=target.examples * times)
    @given(changes=edits())
    def run(changes) -> None:
        try_target(target, files, changes)

    run()


def skip_without_kytea(name: str) -> None:
    if name == "kytea":
        pytest.importorskip("vaporetto")


@pytest.mark.parametrize("name", TARGETS)
def test_whole_files_are_read(files, name) -> None:
    skip_without_kytea(name)
    TARGETS[name].read(files)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", TARGETS)
def test_damaged_files_are_refused_or_read(files, name) -> None:
    skip_without_kytea(name)
    fuzz(name, files, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_damaged_files_many_more(files, name) -> None:
    skip_without_kytea(name)
    fuzz(name, files, LONG)
