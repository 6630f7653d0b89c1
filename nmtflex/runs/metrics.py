"""Reading ``metrics.csv``, which a training writes."""

from __future__ import annotations

import csv
from typing import NamedTuple

from nmtflex.errors import RunError
from nmtflex.runs.folder import RunFolder

NUMBERS = ("loss", "perplexity", "bleu", "gate_mean", "cps")  # the columns that are read


class MetricsRow(NamedTuple):
    """A row of ``metrics.csv``; columns that are empty are left out."""

    update: int
    seconds: float
    split: str
    values: dict[str, float]


def read_metrics(folder: RunFolder) -> list[MetricsRow]:
    """Read a run's ``metrics.csv``.

    Raises:
        RunError: The file is missing, damaged or empty.
    """
    path = folder.metrics
    if not path.is_file():
        raise RunError(f"{folder.path} has no {path.name}: nmtflex train writes it")
    try:
        rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    except OSError as error:
        raise RunError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise RunError(f"{path}: damaged: not UTF-8") from error
    except csv.Error as error:
        raise RunError(f"{path}: damaged: {error}") from error
    found = []
    for number, row in enumerate(rows, start=2):
        try:
            values = {column: float(row[column]) for column in NUMBERS if row[column]}
            found.append(
                MetricsRow(int(row["update"]), float(row["seconds"]), row["split"], values)
            )
        except (KeyError, TypeError, ValueError) as error:
            raise RunError(f"{path}:{number}: damaged: {error}") from error
    if not found:
        raise RunError(f"{path} has no rows yet; let nmtflex train reach a validation")
    return found
