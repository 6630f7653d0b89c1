"""Print one value of a JSON file, as ``value.py FILE KEY``; of ``chosen.tau`` each key in turn.

A null on the way prints nothing: a sweep that chose no threshold, say.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def value(found: Any, key: str) -> str:
    """Return the value as text, "" for null.

    Raises:
        KeyError: There is no such key.
    """
    for name in key.split("."):
        if found is None:
            return ""
        found = found[name]
    return "" if found is None else str(found)


if __name__ == "__main__":
    file, wanted = sys.argv[1:]
    sys.stdout.write(value(json.loads(Path(file).read_text(encoding="utf-8")), wanted) + "\n")
