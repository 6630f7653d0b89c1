"""What fuzzing does to the bytes of a file: small damage, and values that no program wrote."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

Edit = tuple[int, int, int]  # what, where, with what; each is taken modulo what there is

PIECES = (
    b"\0", b"\xff", b"\n", b"\t", b" ", b"0", b"9" * 30, b"9" * 5000, b"-1", b"\xed\xa0\x80", b"{",
    b"[" * 3000, b'"', b",", b"../", b"@@ ", "▁".encode(), b"\x80" * 8, b"\xff" * 8, b"A" * 3000,
)  # fmt: skip

JUNK: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 3, 10**9, 10**18, 2**63, 10**400, 1.5, -0.0, 1e308, float("nan"),
    float("inf"), "", "a", "1", "../x", "/etc/passwd", "a\0b", "\ud800", "x" * 5000, "none", "<u4",
    "O", "moses", "char", "auto", [], [[]], [1, "a"], {}, {"name": "char"}, {"kind": "memory"},
)  # fmt: skip

TOML_JUNK = (
    b"-1", b"0", b"3", b"1e999", b"nan", b"-inf", b"0x" + b"f" * 5000, b'""', b'"x"', b'"1"', b"[]",
    b"[0x" + b"f" * 5000 + b"]", b"{}", b"{ kind = 'memory' }", b"{ kind = [] }", b"1979-05-27",
    b"[1, 'a']", b"true", b'"\\u0000"', b"9" * 30, b"07:32:00",
)  # fmt: skip


def edits(most: int = 4) -> st.SearchStrategy[list[Edit]]:
    """Return some changes, one at least."""
    number = st.integers(0, 2**20)
    return st.lists(st.tuples(number, number, number), min_size=1, max_size=most)


def damage(data: bytes, changes: Sequence[Edit]) -> bytes:
    """Flip, cut out, insert, truncate or repeat bytes."""
    for what, where, value in changes:
        at = where % (len(data) + 1)
        kind = what % 6
        if kind == 0:
            data = data[:at] + bytes([value % 256]) + data[at + 1 :]
        elif kind == 1:
            data = data[:at]
        elif kind == 2:
            data = data[:at] + PIECES[value % len(PIECES)] + data[at:]
        elif kind == 3:
            data = data[:at] + data[at + 1 + value % 20 :]
        elif kind == 4:
            data = data[:at] + data[at : at + value % 40] + data[at:]
        else:
            flipped = bytes(byte ^ 1 << value % 8 for byte in data[at : at + 1])
            data = data[:at] + flipped + data[at + 1 :]
    return data


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return every (container, key) inside a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    found = []
    for key, inner in items:
        found.append((value, key))
        if isinstance(inner, dict | list):
            found += places(inner)
    return found


def disfigure(value: Any, changes: Sequence[Edit]) -> Any:
    """Replace, delete and add values inside a JSON value; the value itself stays as it is."""
    value = copy.deepcopy(value)
    for what, where, junk in changes:
        there = places(value)
        if not there:
            break
        container, key = there[where % len(there)]
        chosen = JUNK[junk % len(JUNK)]
        if what % 5 == 0:
            del container[key]
        elif what % 5 == 1 and isinstance(container, dict):
            container[str(chosen)[:40]] = container[key]
        elif what % 5 == 2 and isinstance(container[key], int | float):
            container[key] = -container[key]
        else:
            container[key] = copy.deepcopy(chosen)
    return value


def damage_json(data: bytes, changes: Sequence[Edit]) -> bytes:
    """Damage the text of JSON, or what it says."""
    if changes[0][0] % 3 == 0:
        return damage(data, changes)
    return json.dumps(disfigure(json.loads(data), changes)).encode()


def damage_safetensors(data: bytes, changes: Sequence[Edit]) -> bytes:
    """Damage bytes anywhere, in the header, or what the header says."""
    size = int.from_bytes(data[:8], "little")
    head, body = data[8 : 8 + size], data[8 + size :]
    kind = changes[0][0] % 4
    if kind == 0:
        return damage(data, changes)
    head = damage(head, changes) if kind == 1 else damage_json(head, changes)
    return len(head).to_bytes(8, "little") + head + body


def damage_toml(data: bytes, changes: Sequence[Edit]) -> bytes:
    """Damage the text of TOML, or give its options other values."""
    if changes[0][0] % 3 == 0:
        return damage(data, changes)
    lines = data.split(b"\n")
    for _, where, value in changes:
        at = where % len(lines)
        if b"=" in lines[at]:
            lines[at] = lines[at].split(b"=")[0] + b"= " + TOML_JUNK[value % len(TOML_JUNK)]
    return b"\n".join(lines)


Damage = Callable[[bytes, Sequence[Edit]], bytes]
