"""Atomic writing of files and folders: temporary name, fsync, rename."""

from __future__ import annotations

import contextlib
import csv
import errno
import fcntl
import hashlib
import io
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from nmtflex.errors import NmtflexError, OptionError

UNFINISHED = "unfinished-"  # in the name of a folder being written


def is_full(error: OSError) -> bool:
    """Whether an error says that the disk or the user's quota is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces ``path`` when the block ends without an error.

    A link stays a link to the new file; a device (``/dev/null``) is written to directly.

    Raises:
        OSError: From the system (a full disk, say); ``path`` is then unchanged.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    path = path.resolve()
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        name_file(error, path)
        raise
    sync_folder(path.parent)


def name_file(error: BaseException, path: Path | str) -> None:
    """Add the path to the error of a failed write; the system leaves it out."""
    if isinstance(error, OSError) and error.filename is None:
        error.filename = str(path)


@contextlib.contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Make a temporary folder that takes the name ``path`` when the block ends without an error.

    ``path`` must be free, see ``is_free``. Files inside are synced before the rename. Remains
    of killed processes that were making the same folder are deleted; the folder of a running one is
    locked, and stays.

    Raises:
        OSError: From the system (a full disk, say); nothing is left then.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_unfinished(path)
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.{UNFINISHED}"))
    try:
        with _locked(temporary):
            yield temporary
            _sync_tree(temporary)
            temporary.chmod(0o777 & ~_umask())
            temporary.rename(path)
    except BaseException as error:
        shutil.rmtree(temporary, ignore_errors=True)
        name_file(error, path)
        raise
    sync_folder(path.parent)


def check_writable(path: Path, flag: str) -> None:
    """Check before any work that the file of an option can be written.

    Raises:
        OptionError: It is a folder, or its folder does not exist or cannot be written to.
    """
    if path.is_dir():
        raise OptionError(f"{flag} {path}: that is a folder; give a file")
    if not path.parent.is_dir():
        raise OptionError(f"{flag} {path}: there is no folder {path.parent}")
    if path.exists() and not path.is_file():
        return  # a device or a pipe
    try:
        with tempfile.TemporaryFile(dir=path.resolve().parent):
            pass
    except OSError as error:
        raise OptionError(f"{flag} {path}: cannot be written: {error.strerror}") from error


def is_free(path: Path) -> bool:
    """Whether a folder of this name can be made: nothing exists, or an empty folder."""
    if path.is_symlink() or not path.is_dir():
        return not os.path.lexists(path)
    return not any(path.iterdir())


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Try to lock a folder, at most until the process ends; yield whether that succeeded."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = True
        except OSError:  # held by another process, or a file system without locks
            held = False
        yield held
    finally:
        os.close(handle)


def _remove_unfinished(path: Path) -> None:
    """Delete the temporary folders that dead processes left beside a folder."""
    prefix = f".{path.name}.{UNFINISHED}"
    beside: list[Path] = []
    with contextlib.suppress(PermissionError):  # a parent that can be written to, but not listed
        beside += path.parent.iterdir()
    for folder in beside:
        if folder.name.startswith(prefix) and folder.is_dir() and not folder.is_symlink():
            with contextlib.suppress(FileNotFoundError), _locked(folder) as dead:
                if dead:
                    shutil.rmtree(folder, ignore_errors=True)


def _sync_tree(folder: Path) -> None:
    """Sync the files of a folder, and their names, to disk."""
    for item in sorted(folder.rglob("*")):
        if item.is_file():
            with item.open("rb") as file:
                os.fsync(file.fileno())
        elif item.is_dir():
            sync_folder(item)
    sync_folder(folder)


def remove_folder(folder: Path) -> None:
    """Delete a folder atomically: it is renamed first."""
    doomed = folder.with_name(f".{folder.name}.doomed")
    shutil.rmtree(doomed, ignore_errors=True)
    folder.rename(doomed)
    shutil.rmtree(doomed)


def _umask() -> int:
    """Return the user's umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def sync_folder(path: Path) -> None:
    """Sync renames in a folder to disk, if the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def csv_text(columns: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """Return a table with a header as CSV, numbers unrounded."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def write_json(path: Path, value: Any) -> None:
    """Write indented JSON atomically."""
    with atomic_file(path) as file:
        file.write((json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())


def read_json(path: Path, error: type[NmtflexError]) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        NmtflexError: Of the class ``error``: the file is missing, unreadable or not a JSON object.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        json.dumps(value, ensure_ascii=False).encode()  # fails on half a surrogate pair
    except OSError as fault:
        raise error(f"{path}: {fault.strerror}") from fault
    except ValueError as fault:
        raise error(f"{path}: not valid JSON: {fault}") from fault
    except RecursionError as fault:
        raise error(f"{path}: not valid JSON of this program: nested too deeply") from fault
    if not isinstance(value, dict):
        raise error(f"{path}: not a JSON object")
    return value


def check_contained(folder: Path, error: type[NmtflexError]) -> None:
    """Check that no link inside a folder points outside it, before it is written to or copied.

    Raises:
        NmtflexError: Of the class ``error``: one does.
    """
    root = Path(os.path.realpath(folder))
    for path in _entries(root):
        if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(root):
            raise error(
                f"{folder / path.relative_to(root)} is a link out of {folder}; replace it by "
                f"the file or folder that it points to"
            )


def check_plain(folder: Path, error: type[NmtflexError]) -> None:
    """Check that a folder holds only files and folders, or links to them.

    Reading a device or a pipe might never end.

    Raises:
        NmtflexError: Of the class ``error``: it holds something else.
    """
    for path in _entries(folder):
        with contextlib.suppress(OSError):  # a broken link is reported when it is read
            mode = path.stat().st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                raise error(f"{path} is not a file but a device or a pipe; remove it")


def _entries(folder: Path) -> Iterator[Path]:
    """Yield everything in a folder, recursively; links are not followed."""
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            yield Path(place, name)


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
