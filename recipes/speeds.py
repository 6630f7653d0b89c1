"""The table of a decoding benchmark, in Markdown: parameters and target tokens a second.

    speeds.py FOLDER NAME...

NAME.json in FOLDER is what ``nmtflex bench RUN... --json`` printed, each for the same runs.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from parameters import of_nmtflex


def rows(benchmarks: list[list[dict[str, Any]]]) -> list[list[str]]:
    """Return a line of cells for each run, in the order of the first benchmark."""
    found = []
    for several in zip(*benchmarks, strict=True):
        path = Path(several[0]["run"])
        speeds = [f"{one['target_tokens_per_second']:,.0f}" for one in several]
        count = sum(of_nmtflex(path / "checkpoints" / "best.safetensors"))
        found.append([several[0]["name"], f"{count:,}", *speeds])
    return found


def main(folder: Path, names: list[str]) -> str:
    """Return the table."""
    files = [json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in names]
    head = ["run", "parameters", *(f"{name}, target tokens/s" for name in names)]
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows([file["runs"] for file in files])]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    sys.stdout.write(main(Path(sys.argv[1]), sys.argv[2:]) + "\n")
