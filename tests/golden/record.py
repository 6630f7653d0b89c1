"""What a golden run makes of its lines; ``python tests/golden/record.py RUN`` writes it down."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import nmtflex
from nmtflex.decoding.forced import score_pairs
from nmtflex.decoding.tally import Tally

OUTPUT = "expected.json"
THRESHOLDS: dict[str, tuple[str | None, ...]] = {"luong-flexible": (None, "auto", "0.3")}


def translated(run: Path, lines: list[str], dtype: str) -> list[dict[str, Any]]:
    """Return the n-best lists of the lines for each threshold, their scores, and CPS."""
    found = []
    for tau in THRESHOLDS.get(run.name, (None,)):
        translator = nmtflex.load(run, beam=3, dtype=dtype, device="cpu", threads=1, tau=tau)
        tally = Tally()
        translations = translator.n_best(lines, 3, tally)
        best = [(line, n_best[0].text) for line, n_best in zip(lines, translations, strict=True)]
        found.append({
            "tau": tau,
            "cps": tally.cps,
            "n_best": [
                [[one.text, one.log_probability, one.score] for one in n_best]
                for n_best in translations
            ],
            "forced": [
                score.log_probability
                for score in score_pairs(translator._models, translator.pipeline, best)
            ],
        })
    return found


def main(run: Path) -> None:
    lines = (run / "lines.txt").read_text(encoding="utf-8").splitlines()
    text = json.dumps(translated(run, lines, "float64"), ensure_ascii=False, indent=1)
    (run / OUTPUT).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
