"""What the server and its worker processes send each other: JSON after its length.

Nothing that another process sends is unpickled.
"""

from __future__ import annotations

import json
import math
import struct
from typing import Any, BinaryIO

LENGTH = struct.Struct(">I")


def packed(message: Any) -> bytes:
    """Return a message as bytes."""
    data = json.dumps(message).encode()
    return LENGTH.pack(len(data)) + data


def read_message(stream: BinaryIO) -> Any:
    """Read a message; None where the stream ends."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    data = stream.read(length)
    return json.loads(data) if len(data) == length else None


def finite(tau: float | None) -> float | None:
    """Return a threshold as JSON can hold it: None if it skips nothing."""
    return None if tau is None or math.isinf(tau) else tau
