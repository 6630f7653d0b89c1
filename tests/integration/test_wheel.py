"""The wheel that users install, where its dependencies are seen and the checkout is not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

import nmtflex

pytestmark = pytest.mark.integration
pytest.importorskip("hatchling", reason="builds the wheel; pip install hatchling")

ROOT = Path(__file__).parents[2]
SOURCES = ("nmtflex", "data", "pyproject.toml", "README.md", "LICENSE", ".gitignore")


def call(*command: object, folder: Path) -> str:
    """Run a program without what would lead it to the checkout; return what it prints."""
    names = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    clean = {name: value for name, value in os.environ.items() if name not in names}
    clean["NUMBA_DISABLE_JIT"] = "1"  # to compile takes a minute, to compute one line does not
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env=clean, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def build(folder: Path, target: str) -> Path:
    """Build a wheel or a source distribution of a folder."""
    out = folder / "out"
    call(sys.executable, "-m", "hatchling", "build", "-t", target, "-d", out, folder=folder)
    [built] = out.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return built


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    """Copy the sources: a build writes nothing into the checkout."""
    folder = tmp_path_factory.mktemp("source")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        elif (ROOT / name).is_file():
            shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def wheel(source) -> Path:
    return build(source, "wheel")


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory) -> Path:
    """Install the wheel alone; what it needs is found where this Python has it."""
    folder = tmp_path_factory.mktemp("environment")
    call(sys.executable, "-m", "venv", "--without-pip", folder, folder=folder)
    paths = {"base": str(folder), "platbase": str(folder)}
    packages = Path(sysconfig.get_path("purelib", vars=paths))
    # A line of a .pth file adds a folder, but reads no .pth file in it: an editable install of
    # nmtflex stays out.
    installed = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (packages / "installed.pth").write_text("\n".join(installed), encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python"]
    options = ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    call(*pip, "install", *options, wheel, folder=folder)
    return folder


def names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return sorted(archive.namelist())


def test_the_source_distribution_gives_the_same_wheel(source, wheel, tmp_path):
    safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # from Python 3.11.4 on
    with tarfile.open(build(source, "sdist")) as archive:
        archive.extractall(tmp_path, **safely)
    [unpacked] = tmp_path.iterdir()
    assert names(build(unpacked, "wheel")) == names(wheel)


def test_the_wheel_holds_what_the_program_reads(wheel):
    found = set(names(wheel))
    package = [path for path in (ROOT / "nmtflex").rglob("*") if path.is_file()]
    wanted = {
        str(path.relative_to(ROOT)) for path in package if "__pycache__" not in path.parts
    } | {f"nmtflex/data/{path.name}" for path in (ROOT / "data").iterdir() if path.is_file()}
    assert sorted(wanted - found) == []
    assert not [name for name in found if name.startswith("tests")]


@pytest.mark.slow
def test_the_installed_program_works(environment, tiny_run, tmp_path):
    program = environment / "bin" / "nmtflex"
    python = environment / "bin" / "python"
    where = call(python, "-c", "import nmtflex; print(nmtflex.__file__)", folder=tmp_path)
    assert Path(where.strip()).is_relative_to(environment)
    assert call(program, "--version", folder=tmp_path) == f"nmtflex {nmtflex.__version__}\n"
    call(program, "generate", "toy", "--train", 50, "--valid", 5, "--test", 5, "--out", "toy",
         folder=tmp_path)  # fmt: skip
    call(
        program, "preprocess", "--source-lang", "en", "--target-lang", "ja", "--train",
        "toy/train", "--test", "toy/test", "--out", "prepared", folder=tmp_path,
    )  # fmt: skip
    assert (tmp_path / "prepared" / "manifest.json").is_file()
    assert "update 1" in call(program, "info", tiny_run, folder=tmp_path)
    (tmp_path / "lines").write_text("a b\n\nc\n")
    options = ["--beam", 1, "--threads", 1, "--input", "lines", "--out", "out"]
    call(program, "translate", tiny_run, *options, folder=tmp_path)
    expected = nmtflex.load(tiny_run, beam=1, threads=1).translate(["a b", "", "c"])
    assert (tmp_path / "out").read_text().splitlines() == expected
