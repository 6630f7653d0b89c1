"""Whether a prepared folder is unchanged since it was written."""

from __future__ import annotations

from pathlib import Path

from nmtflex.corpus.store import MANIFEST, PreparedCorpus
from nmtflex.errors import DataError
from nmtflex.files import file_hash

SMALL = 1 << 26  # bytes; such a file is read in a twentieth of a second

Stamp = tuple[int, int]  # bytes; nanoseconds of the last change


class Integrity:
    """Watches the files of a prepared folder while a run trains on it.

    A small file is compared with the manifest's SHA-256. A large one is compared only if it changed
    after the manifest, which is written last: reading a whole corpus at each start takes minutes.
    """

    def __init__(self, corpus: PreparedCorpus) -> None:
        self._folder = corpus.folder
        self._entries = corpus.manifest["files"]
        self._seen: dict[str, Stamp] = {}

    def check(self) -> None:
        """Compare the files that changed since the last call; the first call compares all.

        Raises:
            DataError: A file differs from the manifest.
        """
        made = (self._folder / MANIFEST).stat().st_mtime_ns
        for name, entry in self._entries.items():
            path = self._folder / name
            stamp = _stamp(path)
            if stamp == self._seen.get(name):
                continue
            fresh = name in self._seen or stamp[0] <= SMALL or stamp[1] > made
            expected = entry.get("sha256")
            if fresh and expected is not None and file_hash(path) != expected:
                raise DataError(
                    f"{path} was changed after it was prepared: its SHA-256 is not the one in "
                    f"{MANIFEST}; restore the file, or prepare the folder again and train in "
                    f"another --run"
                )
            self._seen[name] = stamp


def _stamp(path: Path) -> Stamp:
    try:
        state = path.stat()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}; restore it, then resume") from error
    return state.st_size, state.st_mtime_ns
