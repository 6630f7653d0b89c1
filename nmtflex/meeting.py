"""How processes that were started together find each other, and none of an earlier attempt.

torchrun keeps one key-value store over all restarts. Entries of dead processes would be taken for
the addresses of running ones, so each attempt uses a name of its own: the first process makes it
up, and gives it to those whose new number it has seen.
"""

from __future__ import annotations

import json
import time
import uuid

from torch.distributed import PrefixStore, Store  # type: ignore[attr-defined]  # not in __all__

PATIENCE = 600.0  # seconds within which all must connect
PAUSE = 0.02  # seconds between two looks


def meet(store: Store, rank: int, size: int) -> PrefixStore:
    """Return a store that only the processes of this attempt write to.

    Args:
        store: The one that outlives attempts.
        rank: Which process this is.
        size: Processes of this attempt.

    Raises:
        RuntimeError: Some did not connect in time, or the store is gone.
    """
    number = uuid.uuid4().hex
    store.set(f"nmtflex/number/{rank}", number)
    if rank == 0:
        store.set("nmtflex/seen/0", number)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = _lead(store, number, size) if rank == 0 else _follow(store, rank, number)
        if found is not None:
            return PrefixStore(f"nmtflex/{found}", store)
        time.sleep(PAUSE)
    raise RuntimeError(f"not all {size} processes connected within {PATIENCE:.0f} seconds")


def _lead(store: Store, name: str, size: int) -> str | None:
    """Publish the name; return it once all processes have confirmed it."""
    numbers = _values(store, "number", size)
    store.set("nmtflex/call", json.dumps([name, numbers]))
    return name if _values(store, "seen", size) == [name] * size else None


def _follow(store: Store, rank: int, number: str) -> str | None:
    """Return the name once the first process has seen this process's number."""
    if not store.check(["nmtflex/call"]):
        return None
    name, numbers = json.loads(store.get("nmtflex/call"))
    if numbers[rank : rank + 1] != [number]:
        return None
    store.set(f"nmtflex/seen/{rank}", name)
    return str(name)


def _values(store: Store, key: str, size: int) -> list[str | None]:
    """Return what each process wrote under a key, None if nothing yet."""
    names = [f"nmtflex/{key}/{rank}" for rank in range(size)]
    return [store.get(name).decode() if store.check([name]) else None for name in names]
