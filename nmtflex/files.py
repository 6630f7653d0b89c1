"""Files and folders that are whole or not there: temporary name, fsync, rename."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from nmtflex.errors import NmtflexError, OptionError

UNFINISHED = "unfinished-"  # in the name of a folder that is being made


def is_full(error: OSError) -> bool:
    """Whether an error says that there is no more room, on the disk or in a user's share of it."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that takes ``path``'s place when the block ends without an error.

    A link stays a link to the new file; what is no regular file (``/dev/null``) is written to.

    Raises:
        OSError: What the system says (a full disk, say); ``path`` is then as it was before.
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
    """Say of what a write failed, which the system does not."""
    if isinstance(error, OSError) and error.filename is None:
        error.filename = str(path)


@contextlib.contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Make a temporary folder that takes the name ``path`` when the block ends without an error.

    ``path`` must be free, see ``is_free``. Files inside are synced before the rename. What
    processes that were killed left of the same folder is deleted; what a living one is making is
    locked, and stays.

    Raises:
        OSError: What the system says (a full disk, say); nothing is left then.
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
    """Check before any work that a file can be written where an option says.

    Raises:
        OptionError: There is no such folder, or nothing can be written to it; or it is a folder.
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
    """Whether a folder can be made of this name: there is nothing, or an empty folder."""
    if path.is_symlink() or not path.is_dir():
        return not os.path.lexists(path)
    return not any(path.iterdir())


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Hold the lock of a folder, which goes with the process; yield whether it could be had."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = True
        except OSError:  # somebody else's, or a file system without locks
            held = False
        yield held
    finally:
        os.close(handle)


def _remove_unfinished(path: Path) -> None:
    """Delete what was begun under the temporary names of a folder by processes that are gone."""
    prefix = f".{path.name}.{UNFINISHED}"
    beside: list[Path] = []
    with contextlib.suppress(PermissionError):  # a parent that may be written to, and not listed
        beside += path.parent.iterdir()
    for folder in beside:
        if folder.name.startswith(prefix) and folder.is_dir() and not folder.is_symlink():
            with contextlib.suppress(FileNotFoundError), _locked(folder) as dead:
                if dead:
                    shutil.rmtree(folder, ignore_errors=True)


def _sync_tree(folder: Path) -> None:
    """Make the files of a folder, and their names, survive a power cut."""
    for item in sorted(folder.rglob("*")):
        if item.is_file():
            with item.open("rb") as file:
                os.fsync(file.fileno())
        elif item.is_dir():
            sync_folder(item)
    sync_folder(folder)


def remove_folder(folder: Path) -> None:
    """Delete a folder so that no half of it is ever seen under its name."""
    doomed = folder.with_name(f".{folder.name}.doomed")
    shutil.rmtree(doomed, ignore_errors=True)
    folder.rename(doomed)
    shutil.rmtree(doomed)


def _umask() -> int:
    """Return the permissions that the user withholds; there is no way to read them but to set."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def sync_folder(path: Path) -> None:
    """Make renames in a folder survive a power cut, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_json(path: Path, value: Any) -> None:
    """Write JSON for people and programs, atomically."""
    with atomic_file(path) as file:
        file.write((json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())


def read_json(path: Path, error: type[NmtflexError]) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        NmtflexError: Of the class ``error``: the file is missing, unreadable or no JSON object.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        json.dumps(value, ensure_ascii=False).encode()  # half a surrogate pair is no text
    except OSError as fault:
        raise error(f"{path}: {fault.strerror}") from fault
    except ValueError as fault:
        raise error(f"{path}: not valid JSON: {fault}") from fault
    except RecursionError as fault:
        raise error(f"{path}: not valid JSON that this program writes: nested too deep") from fault
    if not isinstance(value, dict):
        raise error(f"{path}: not a JSON object")
    return value


def check_contained(folder: Path, error: type[NmtflexError]) -> None:
    """Check that no link inside a folder leads out of it, before it is written to or copied.

    Raises:
        NmtflexError: Of the class ``error``: one does.
    """
    root = Path(os.path.realpath(folder))
    for path in _entries(root):
        if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(root):
            raise error(
                f"{folder / path.relative_to(root)} is a link that leads out of {folder}; put what "
                f"it leads to in its place"
            )


def check_plain(folder: Path, error: type[NmtflexError]) -> None:
    """Check that a folder holds files and folders alone, or links to such.

    Reading a device or a pipe may have no end.

    Raises:
        NmtflexError: Of the class ``error``: something else is in it.
    """
    for path in _entries(folder):
        with contextlib.suppress(OSError):  # a link to nothing: whoever reads it says so
            mode = path.stat().st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                raise error(f"{path} is no file but a device or a pipe; remove it")


def _entries(folder: Path) -> Iterator[Path]:
    """Yield all that is in a folder and the folders inside it; links are not followed."""
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            yield Path(place, name)


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
