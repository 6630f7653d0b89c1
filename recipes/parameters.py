"""The number of parameters that a toolkit trained, from the file that it saved.

    parameters.py FILE

FILE is .safetensors (nmtflex), .npz (Marian) or .pt (fairseq; needs the Python that has it). Shared
weights count once. Numbers that are not trained do not count, such as fairseq's second copy of each
encoder layer, which only its inference uses.
"""

from __future__ import annotations

import ast
import json
import math
import re
import struct
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

# fairseq: copies for inference, positions, and a buffer with the version
UNTRAINED = re.compile(r"\.(in_proj|out_proj|fc1|fc2)_(weight|bias)$|_float_tensor$|\.version$")


def of_nmtflex(path: Path) -> Iterator[int]:
    """Return the sizes of the tensors in the header of a .safetensors file."""
    with path.open("rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    return (math.prod(tensor["shape"]) for name, tensor in header.items() if name[0] != "_")


def of_marian(path: Path) -> Iterator[int]:
    """Return the sizes of the arrays of a .npz file; Marian's options are one of them."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            with archive.open(name) as file:
                start = file.read(10)  # magic number, version, length of the header
                header = ast.literal_eval(file.read(struct.unpack("<H", start[8:])[0]).decode())
            if not name.startswith("special:"):
                yield math.prod(header["shape"])


def of_fairseq(path: Path) -> Iterator[int]:
    """Return the sizes of the tensors of a checkpoint."""
    import torch

    tensors = torch.load(path, weights_only=False)["model"].items()
    kept = {one.data_ptr(): one.numel() for name, one in tensors if not UNTRAINED.search(name)}
    return iter(kept.values())


READERS = {".safetensors": of_nmtflex, ".npz": of_marian, ".pt": of_fairseq}

if __name__ == "__main__":
    found = Path(sys.argv[-1])
    print(sum(READERS[found.suffix](found)))  # noqa: T201
