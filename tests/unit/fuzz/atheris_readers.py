"""Fuzz one reader under the guidance of coverage, where atheris is installed.

From the repository, with the arguments of libFuzzer after the name of a target of ``readers.py``::

    pip install atheris
    python tests/unit/fuzz/atheris_readers.py codes -max_total_time=600
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path


def main(arguments: list[str]) -> None:
    try:
        import atheris
    except ImportError:
        sys.exit("this needs atheris; run pip install atheris")
    with atheris.instrument_imports(include=["nmtflex"]):
        from readers import TARGETS, bounded, make_files

        from nmtflex.errors import NmtflexError
    if len(arguments) < 2 or arguments[1] not in TARGETS:
        sys.exit(f"give a target: {', '.join(TARGETS)}")
    target = TARGETS[arguments.pop(1)]
    folder = Path(tempfile.mkdtemp(prefix="nmtflex-fuzz-"))
    make_files(folder)
    path = folder / target.file
    seeds = folder / "seeds"
    seeds.mkdir()
    (seeds / "whole").write_bytes(path.read_bytes())

    def one(data: bytes) -> None:
        path.write_bytes(data)
        with bounded(), contextlib.suppress(NmtflexError):
            target.read(folder)

    atheris.Setup([*arguments, str(seeds)], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv)
