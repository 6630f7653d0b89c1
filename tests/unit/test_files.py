"""A file or folder is whole or not there."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from nmtflex.errors import DataError, RunError
from nmtflex.files import (
    atomic_file,
    atomic_folder,
    check_contained,
    check_plain,
    read_json,
    write_json,
)


def names(folder):
    return sorted(item.name for item in folder.iterdir())


def test_file_appears_whole(tmp_path):
    with atomic_file(tmp_path / "a") as file:
        file.write(b"new")
        assert not (tmp_path / "a").exists()
    assert (tmp_path / "a").read_bytes() == b"new"
    assert names(tmp_path) == ["a"]


def test_failure_keeps_the_old_file(tmp_path):
    (tmp_path / "a").write_bytes(b"old")

    def write():
        with atomic_file(tmp_path / "a") as file:
            file.write(b"half of the n")
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write()
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_interrupt_leaves_no_file(tmp_path):
    def write():
        with atomic_file(tmp_path / "a") as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert names(tmp_path) == []


def test_file_mode_is_that_of_an_ordinary_file(tmp_path):
    with atomic_file(tmp_path / "a"):
        pass
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o644


def test_folder_appears_whole(tmp_path):
    with atomic_folder(tmp_path / "deep" / "b") as folder:
        (folder / "inner").mkdir()
        (folder / "inner" / "x").write_text("x", encoding="utf-8")
        assert not (tmp_path / "deep" / "b").exists()
    assert (tmp_path / "deep" / "b" / "inner" / "x").read_text(encoding="utf-8") == "x"
    assert names(tmp_path / "deep") == ["b"]


def test_failure_leaves_no_folder(tmp_path):
    def write():
        with atomic_folder(tmp_path / "b") as folder:
            (folder / "x").write_text("x", encoding="utf-8")
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write()
    assert names(tmp_path) == []


def test_json_survives(tmp_path):
    value = {"ö": [1, 2.5, None, "日本"], "b": {}}
    write_json(tmp_path / "v.json", value)
    assert read_json(tmp_path / "v.json", RunError) == value
    text = (tmp_path / "v.json").read_text(encoding="utf-8")
    assert "日本" in text
    assert text.endswith("}\n")


def test_value_that_json_cannot_hold_keeps_the_old_file(tmp_path):
    write_json(tmp_path / "v.json", {"a": 1})
    with pytest.raises(TypeError):
        write_json(tmp_path / "v.json", {"a": object()})
    assert json.loads((tmp_path / "v.json").read_bytes()) == {"a": 1}
    assert names(tmp_path) == ["v.json"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": ', "not valid JSON: "),
        (b"[1]", "not a JSON object"),
        (b"", "not valid JSON: "),
        (b'{"a": "\xff"}', "not valid JSON: "),
        (b'{"a": ' + 10_000 * b"[", "not valid JSON of this program: nested too deeply"),
        (b'{"a": ' + 9_000 * b"9" + b"}", "not valid JSON: Exceeds the limit"),
        (b'{"a": "\\ud800"}', "not valid JSON: 'utf-8' codec can't encode"),
    ],
)
def test_wrong_json(tmp_path, content, message):
    path = tmp_path / "v.json"
    path.write_bytes(content)
    with pytest.raises(RunError) as caught:
        read_json(path, RunError)
    assert str(caught.value).startswith(f"{path}: {message}")


def test_missing_json(tmp_path):
    path = tmp_path / "v.json"
    with pytest.raises(DataError) as caught:
        read_json(path, DataError)
    assert str(caught.value) == f"{path}: No such file or directory"


def test_a_write_that_fails_says_of_what(tmp_path, monkeypatch):
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left") as caught, atomic_file(tmp_path / "a"):
        pass
    assert caught.value.filename == str(tmp_path / "a")


def test_a_link_stays_a_link_and_a_device_is_written_to(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for path in (tmp_path / "link", Path("/dev/null")):
        with atomic_file(path) as file:
            file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"
    assert Path("/dev/null").is_char_device()


def test_the_umask_holds(tmp_path):
    before = os.umask(0o077)
    try:
        with atomic_file(tmp_path / "secret") as file:
            file.write(b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600


def test_a_pipe_is_written_to(tmp_path):
    """As /dev/stdout is, where another program reads: its real name is none of the file system."""
    read, write = os.pipe()
    link = tmp_path / "link"
    link.symlink_to(f"/dev/fd/{write}")
    with atomic_file(link) as file:
        file.write(b"text")
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        assert pipe.read() == b"text"
    assert link.is_symlink()


@pytest.mark.parametrize("name", ["a/link", "folder-link", "broken"])
def test_a_link_that_leads_out_is_named(tmp_path, name):
    outside, folder = tmp_path / "outside", tmp_path / "run"
    outside.mkdir()
    (folder / "a").mkdir(parents=True)
    check_contained(folder, RunError)
    there = tmp_path / "none" if name == "broken" else outside
    (folder / name).symlink_to(os.path.relpath(there, (folder / name).parent))
    with pytest.raises(RunError) as caught:
        check_contained(folder, RunError)
    assert str(caught.value).startswith(f"{folder / name} is a link out of {folder}; ")


def test_links_inside_and_around_a_folder_are_none_of_its_harm(tmp_path):
    folder = tmp_path / "run"
    (folder / "a").mkdir(parents=True)
    (folder / "link").symlink_to("a")
    (folder / "loop").symlink_to("loop")
    (tmp_path / "other").symlink_to(folder)
    check_contained(tmp_path / "other", RunError)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes in folders")
def test_what_can_be_read_without_end_is_named(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "link").symlink_to(tmp_path / "nothing")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    check_plain(tmp_path, DataError)
    (tmp_path / "a" / "zero").symlink_to("/dev/zero")
    with pytest.raises(DataError, match=f"{tmp_path}/a/zero is not a file but a device or a pipe"):
        check_plain(tmp_path, DataError)
    (tmp_path / "a" / "zero").unlink()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match=f"{tmp_path}/pipe is not a file but a device or a pipe"):
        check_plain(tmp_path, DataError)
