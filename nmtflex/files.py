"""Files and folders that are whole or not there: temporary name, fsync, rename."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from nmtflex.errors import NmtflexError


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
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)  # a failed write does not say of what
        raise
    sync_folder(path.parent)


@contextlib.contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Make a temporary folder that takes the name ``path`` when the block ends without an error.

    ``path`` must not exist. Files inside are synced before the rename.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        yield temporary
        for item in sorted(temporary.rglob("*")):
            if item.is_file():
                with item.open("rb") as file:
                    os.fsync(file.fileno())
        temporary.chmod(0o777 & ~_umask())
        temporary.rename(path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    sync_folder(path.parent)


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
