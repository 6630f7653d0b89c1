"""Machine code kept on disk, so that a loop is compiled once per machine, not once per process.

numba keeps the code of a function as long as that function's own file stays the same. Our loops
inline functions of other files, so the code is kept under a hash of every file
of ``ops`` and of the function's own. It is looked for beside the source, then in the user's cache
folder; or only in ``NUMBA_CACHE_DIR`` if that is set. A folder that cannot be read or written, a
damaged file and a full disk cost a compilation and nothing else.

Code from disk is trusted like the package itself: it is loaded only from folders that belong to
this user, to root or to the owner of the package, and that are not world-writable.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator

from nmtflex.garbage import uncollected
from nmtflex.ops.compile_lock import lock, unlock

LOOPS = Path(__file__).resolve().parent
log = logging.getLogger(__name__)


class CodeCache:
    """The code of one loop, in the first folder that has it; has the interface of numba's cache.

    Args:
        function: The loop in Python.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._caches = [_cache(function, folder) for folder in folders()]
        self._locked: Path | None = None  # folder with the lock of what is being compiled

    @property
    def cache_path(self) -> str:
        """The folder that is searched first."""
        return str(self._caches[0].cache_path)

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return the code for a signature, or None if this process has to compile it.

        If another process compiles it just now, wait for it; see ``compile_lock``.
        """
        with uncollected():
            found = self._load(signature, context)
            if found is None:
                self._lock(signature)
                found = self._load(signature, context)
                if found is not None:
                    self._unlock(signature)
            return found

    def _load(self, signature: Any, context: Any) -> Any:
        context.refresh()
        for cache in self._caches:
            try:
                if _trusted(Path(cache.cache_path)):
                    found = cache.load_overload(signature, context)
                    if found is not None:
                        return found
            except Exception as error:  # whatever a damaged file makes pickle raise
                log.debug("%s: no code of %s: %s", cache.cache_path, self._function, error)
        return None

    def save_overload(self, signature: Any, code: Any) -> None:
        """Keep code in the first folder that takes it, and let others load it."""
        self._keep(signature, code)
        self._unlock(signature)

    def _keep(self, signature: Any, code: Any) -> None:
        faults = []
        for cache in self._caches:
            folder = Path(cache.cache_path)
            try:
                folder.mkdir(mode=0o755, parents=True, exist_ok=True)
                if not _trusted(folder):
                    faults.append(f"{folder} belongs to somebody else or is open to everybody")
                    continue
                _save(cache, signature, code)
                _remove_stale(folder, self._function)
            except OSError as error:
                faults.append(f"{folder}: {error.strerror}")
                continue
            return
        _report_faults(tuple(faults))

    def _lock(self, signature: Any) -> None:
        """Lock the code of a signature in the first folder that can be locked."""
        paths = (Path(cache.cache_path) for cache in self._caches)
        self._locked = next((path for path in paths if lock(path, self._name(signature))), None)

    def _unlock(self, signature: Any) -> None:
        if self._locked:
            unlock(self._locked, self._name(signature))
            self._locked = None

    def _name(self, signature: Any) -> str:
        own = self._function
        return f"{own.__module__}.{own.__qualname__} {stamp(_file(own))} {signature}"

    def flush(self) -> None:
        """Forget the code."""
        for cache in self._caches:
            cache.flush()

    def enable(self) -> None:
        """Keep code; numba's interface."""

    def disable(self) -> None:
        """Keep no more code; numba's interface."""
        self._caches = []


def stamp(own: Path) -> str:
    """Return a hash of every file that a loop of the file ``own`` can take code from."""
    return _stamp() if LOOPS in own.parents else _stamp(own)  # once for all files of ours


@functools.cache
def _stamp(*others: Path) -> str:
    """Return a hash of all files of ours, and of others."""
    content = hashlib.sha256()
    for path in sorted({*LOOPS.rglob("*.py"), *others}):
        name = os.path.relpath(path, LOOPS).encode()
        content.update(name + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return content.hexdigest()[:16]


def folders() -> list[Path]:
    """Return the folders that may hold code, in order of search."""
    # Two checkouts or environments must not write over each other's code.
    own = f"kernels_{hashlib.sha256(str(LOOPS).encode()).hexdigest()[:16]}"
    settings: Any = config
    if settings.CACHE_DIR:
        return [Path(settings.CACHE_DIR) / own]
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111
    return [LOOPS / "__pycache__", Path(home) / "nmtflex" / own]


def _cache(function: Callable[..., Any], folder: Path) -> Any:
    """Return numba's own cache of one function in one folder, under our stamp."""
    own = stamp(_file(function))

    class Locator(_CacheLocator):
        """Names the folder, and the stamp that code must have."""

        _py_file = str(LOOPS / f"{function.__module__}.py")

        def ensure_cache_path(self) -> None:
            """``CodeCache`` makes the folder."""

        def get_cache_path(self) -> str:
            return str(folder)

        def get_source_stamp(self) -> str:
            return own

        def get_disambiguator(self) -> str:
            # In the name too: a process of an older version may write at the same time.
            return own

        @classmethod
        def from_function(cls, py_func: Any, py_file: str) -> Locator:
            return cls()

    class Implementation(CompileResultCacheImpl):
        _locator_classes = [Locator]  # type: ignore[list-item]  # noqa: RUF012

        def get_filename_base(self, fullname: str, abiflags: str) -> str:
            # With the whole name of the module: several files are called ``loops``.
            package = function.__module__.rpartition(".")[0]
            name: str = super().get_filename_base(f"{package}.{fullname}", abiflags)  # type: ignore[no-untyped-call]
            return name

    class InFolder(FunctionCache):
        _impl_class = Implementation

    cache: Any = InFolder
    return cache(function)


def _file(function: Callable[..., Any]) -> Path:
    """Return the file that defines a function."""
    return Path(function.__code__.co_filename).resolve()


def _save(cache: Any, signature: Any, code: Any) -> None:
    """Keep code, replacing a damaged index.

    Raises:
        OSError: The folder cannot be written.
    """
    try:
        cache.save_overload(signature, code)
    except OSError:
        raise
    except Exception:  # whatever a damaged index makes pickle raise
        cache.flush()
        cache.save_overload(signature, code)


def _trusted(folder: Path) -> bool:
    """Whether nobody but this user, root and the package's owner can have put code there."""
    if not hasattr(os, "getuid"):
        return True
    state = folder.stat()
    owners = {0, os.getuid(), LOOPS.stat().st_uid}
    return state.st_uid in owners and not state.st_mode & stat.S_IWOTH


def _remove_stale(folder: Path, function: Callable[..., Any]) -> None:
    """Remove a function's code of earlier versions."""
    own = stamp(_file(function))
    for path in folder.glob(f"{function.__module__}.{function.__qualname__}-*.nb[ic]"):
        if own not in path.name:
            path.unlink(missing_ok=True)


@functools.cache
def _report_faults(faults: tuple[str, ...]) -> None:
    """Say once why code is not kept."""
    log.warning(
        "compiled code cannot be kept (%s), so every process compiles it again; "
        "set NUMBA_CACHE_DIR to a folder that you can write",
        "; ".join(faults),
    )
