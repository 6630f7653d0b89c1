"""Compiled code follows the content of all loops; whatever its folder is like, results come."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import nmtflex
from nmtflex.ops import code_cache

# Sorting needs no PyTorch, whose import would take most of the time of these processes.
CHECK = """
import resource, sys
import numpy as np
if sys.argv[1:]:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
from nmtflex.corpus.sorting import _count
groups = np.zeros((1, 1), np.int64)
_count(np.zeros(3, np.int32), np.zeros(3, np.int32), groups)
print(groups[0, 0], sum(_count.stats.cache_hits.values()))
"""
SHUFFLE = """
import numpy as np
from nmtflex.corpus.sorting import shuffled_by_length
lengths = np.full(40, 3, np.int32)
print(*shuffled_by_length(lengths, lengths, np.random.default_rng(1))[0])
"""


def run(program: str, *arguments: str, **settings: str) -> tuple[list[str], str]:
    """Run a program in a new process; return the words that it prints, and standard error."""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, *arguments],  # -P: not the working folder's package
        env=environment | {"OMP_NUM_THREADS": "1"} | settings,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.split(), done.stderr


@pytest.fixture(scope="module")
def compiled(tmp_path_factory) -> Path:
    """The folder in which a process has kept its code."""
    folder = tmp_path_factory.mktemp("compiled")
    assert run(CHECK, NUMBA_CACHE_DIR=str(folder)) == (["3", "0"], "")
    return folder


@pytest.fixture
def kept(compiled, tmp_path) -> Path:
    """A copy of it."""
    return shutil.copytree(compiled, tmp_path / "kept")


def test_code_is_new_when_a_file_that_it_inlines_is(tmp_path):
    package = Path(nmtflex.__file__).parent
    shutil.copytree(
        package, tmp_path / "nmtflex", ignore=shutil.ignore_patterns("__pycache__", "data")
    )
    settings = {"PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    before, _ = run(SHUFFLE, **settings)
    draws = tmp_path / "nmtflex" / "ops" / "draws.py"  # sorting.py inlines it
    draws.write_text(draws.read_text().replace("0x9E3779B9", "0x9E3779B1"))
    after, _ = run(SHUFFLE, **settings)
    assert sorted(before) == sorted(after)
    assert before != after
    kept = (draws.parent / "__pycache__").glob("nmtflex.corpus.sorting.*.nb?")
    left = [path.name for path in kept]
    assert left
    assert len({name.split("-")[1].split(".")[0] for name in left}) == 1  # the old code is gone


def test_the_second_process_loads(kept):
    assert run(CHECK, NUMBA_CACHE_DIR=str(kept)) == (["3", "1"], "")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("size", [0, 40])
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_a_damaged_file_is_compiled_anew(kept, ending, size):
    (damaged,) = kept.rglob(f"*.{ending}")
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:size])
    assert run(CHECK, NUMBA_CACHE_DIR=str(kept)) == (["3", "0"], "")


def test_a_folder_that_cannot_be_made_is_named_once(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    printed, said = run(CHECK, NUMBA_CACHE_DIR=str(file))
    assert printed == ["3", "0"]
    assert said.count(str(file)) == 1
    assert "NUMBA_CACHE_DIR" in said


@pytest.mark.slow
def test_a_full_disk_is_reported_and_costs_nothing_else(tmp_path):
    printed, said = run(CHECK, "100", NUMBA_CACHE_DIR=str(tmp_path))
    assert printed == ["3", "0"]
    assert str(tmp_path) in said
    assert not list(tmp_path.rglob("*.tmp.*"))
    assert run(CHECK, NUMBA_CACHE_DIR=str(tmp_path)) == (["3", "0"], "")


def test_code_that_anybody_can_have_put_there_is_not_loaded(kept):
    (folder,) = kept.iterdir()
    folder.chmod(0o777)
    printed, said = run(CHECK, NUMBA_CACHE_DIR=str(kept))
    assert printed == ["3", "0"]
    assert str(folder) in said


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_code_of_another_user_is_not_loaded(kept):
    (folder,) = kept.iterdir()
    os.chown(folder, 12345, 12345)
    assert run(CHECK, NUMBA_CACHE_DIR=str(kept))[0] == ["3", "0"]


def test_where_code_is_looked_for(monkeypatch):
    monkeypatch.setattr(code_cache.config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    beside, own = code_cache.folders()
    assert beside == code_cache.LOOPS / "__pycache__"
    assert own.parent == Path("/caches/nmtflex")
    monkeypatch.setattr(code_cache.config, "CACHE_DIR", "/chosen")
    assert [folder.parent for folder in code_cache.folders()] == [Path("/chosen")]


def test_processes_that_start_together_compile_once(tmp_path):
    settings = {"NUMBA_CACHE_DIR": str(tmp_path)}
    with ThreadPoolExecutor() as pool:
        done = list(pool.map(lambda _: run(CHECK, **settings), range(3)))
    assert sorted(printed for printed, _ in done) == [["3", "0"], ["3", "1"], ["3", "1"]]
