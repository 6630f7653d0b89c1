"""What the tests of figures share."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

from nmtflex.training.metrics import COLUMNS

VALID = "100,1,90.0,8000,valid,3.5,33.0,12.5,0.001,,0.25,8.75"


def texts_of(path: Path) -> list[str]:
    root = ET.parse(path).getroot()
    return ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]


def write_metrics(run: Path, *lines: str) -> None:
    (run / "metrics.csv").write_text("".join(f"{line}\n" for line in (",".join(COLUMNS), *lines)))


def put_in_config(run: Path, **more: object) -> None:
    path = run / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | more))
