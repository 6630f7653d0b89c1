"""Plant known mistakes one at a time, and see whether the tests notice.

    python tests/mutants              all mutants: an hour or so
    python tests/mutants search tanh  those whose file or description holds one of the words

The tree is copied, so that nothing here changes. Exit code 1 if a mutant survives, if the tests
fail without any mutant, or if a text to be changed does not occur exactly once.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from mutant import Mutant
from mutants_attention import ATTENTION
from mutants_kernels import KERNELS
from mutants_model import MODEL
from mutants_text import TEXT
from mutants_training import TRAINING

TREE = Path(__file__).parents[2]
# pytest's exit codes: tests failed, or could not even be collected. Others are no verdict.
VERDICTS = {0: "survived", 1: "killed", 2: "killed"}
LOOPS_FOLDER = "nmtflex/ops/"  # a change of any file here has all loops compiled again
SECONDS = 900  # that a mutant may take; one that runs for ever is noticed too


class Copy:
    """A copy of the tree in which mutants are planted.

    Compiled code is kept under a hash of all kernels, so a mutant of theirs has a cache of its own,
    which goes with it; the others share one.

    Args:
        folder: Empty.
    """

    def __init__(self, folder: Path) -> None:
        self.tree = folder / "tree"
        self.shared_cache = folder / "numba"
        listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
        names = subprocess.run(listing, cwd=TREE, capture_output=True, text=True, check=True).stdout
        for name in filter(None, names.split("\0")):
            path = self.tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(TREE / name, path)

    def plant(self, mutant: Mutant) -> str:
        """Run a mutant's tests on the tree with the mutant in it; return the verdict."""
        path = self.tree / mutant.file
        state = path.stat()
        before = path.read_text(encoding="utf-8")
        path.write_text(before.replace(mutant.old, mutant.new), encoding="utf-8")
        own = None
        if mutant.file.startswith(LOOPS_FOLDER):
            own = Path(tempfile.mkdtemp(dir=self.tree.parent))
        try:
            return self.run(mutant.tests, own or self.shared_cache)
        finally:
            path.write_text(before, encoding="utf-8")
            os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))  # as numba's cache knows it
            if own:
                shutil.rmtree(own)

    def run(self, tests: str, cache: Path) -> str:
        environment = os.environ | {
            "PYTHONPATH": str(self.tree),
            "PYTHONDONTWRITEBYTECODE": "1",
            "NUMBA_CACHE_DIR": str(cache),
            "OMP_NUM_THREADS": "1",
        }
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        command += ["-m", "sampled or not slow"]  # all cases
        try:
            ended = subprocess.run(
                [*command, *shlex.split(tests)],
                cwd=self.tree,
                env=environment,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "killed"
        if ended.returncode not in VERDICTS:
            last = (ended.stdout + ended.stderr)[-500:]
            return f"no verdict: pytest ended with {ended.returncode}: {last}"
        return VERDICTS[ended.returncode]


def misplaced(mutants: list[Mutant]) -> list[str]:
    """Return a line for each mutant whose text does not occur exactly once."""
    lines = []
    for mutant in mutants:
        count = (TREE / mutant.file).read_text(encoding="utf-8").count(mutant.old)
        if count != 1:
            lines.append(f"{mutant.file}: the text occurs {count} times: {mutant.old!r}")
    return lines


def say(*lines: str) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(words: list[str]) -> int:
    every = [*MODEL, *ATTENTION, *KERNELS, *TRAINING, *TEXT]
    chosen = [
        mutant
        for mutant in every
        if not words or any(word in f"{mutant.file} {mutant.breaks}" for word in words)
    ]
    if faults := misplaced(every):
        say(*faults)
        return 1
    verdicts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Copy(Path(folder))
        for tests in dict.fromkeys(mutant.tests for mutant in chosen):
            verdict = copy.run(tests, copy.shared_cache)
            if verdict != "survived":
                say(f"without a mutant, {tests}: {verdict}")
                return 1
        for mutant in chosen:
            verdict = copy.plant(mutant)
            verdicts[verdict] += 1
            say(f"{verdict:10}{mutant.file:40}{mutant.breaks}")
    say(", ".join(f"{count} {verdict}" for verdict, count in verdicts.items()))
    return 0 if verdicts.keys() <= {"killed"} else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
