"""The table of a recipe's trainings, in Markdown: updates, time and the best validation.

    trainings.py FOLDER RUN...

Reads ``metrics.csv`` of the runs in FOLDER. Seconds are of all sittings, with validation.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

HEAD = ("training", "updates", "epochs", "target tokens", "seconds", "best validation BLEU")


class MetricsError(Exception):
    """A run without metrics; one line."""


def row(name: str, path: Path) -> tuple[str, ...]:
    """Return a line of the table.

    Raises:
        MetricsError: The file is missing, damaged or has no rows.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        last = rows[-1]
        counts = [int(last[column]) for column in ("update", "epoch", "target_tokens")]
        # What finetuning begins from is validated as update 0, and no checkpoint of the run.
        valid = [one for one in rows if one["split"] == "valid" and int(one["update"]) > 0]
        scored = [one for one in valid if one["bleu"]]
        # As the run chooses its best checkpoint: of the same BLEU the one of less perplexity.
        best = max(
            scored, key=lambda one: (float(one["bleu"]), -float(one["perplexity"])), default=None
        )
        bleu = f"{float(best['bleu']):.2f} (update {int(best['update']):,})" if best else ""
        return (name, *(f"{count:,}" for count in counts), f"{float(last['seconds']):,.0f}", bleu)
    except OSError as error:
        raise MetricsError(f"{path}: {error.strerror}; run the recipe again") from error
    except (ValueError, KeyError, TypeError, IndexError, csv.Error) as error:
        raise MetricsError(f"{path}: damaged; delete the run and run the recipe again") from error


def table(folder: Path, names: list[str]) -> str:
    """Return the whole table.

    Raises:
        MetricsError: As ``row``.
    """
    lines = [HEAD, ["---"] * len(HEAD), *(row(one, folder / one / "metrics.csv") for one in names)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    try:
        sys.stdout.write(table(Path(sys.argv[1]), sys.argv[2:]) + "\n")
    except MetricsError as error:
        sys.exit(f"trainings.py: {error}")
