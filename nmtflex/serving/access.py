"""Who may use the server, and how often."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from starlette.requests import Request

from nmtflex.config import AccessConfig, LimitConfig
from nmtflex.errors import OptionError
from nmtflex.serving.fields import Refused

MINUTE = 60.0
MOST = 100_000  # clients that are remembered


class Access:
    """Checks keys, and counts the requests of each client.

    Attributes:
        has_keys: Whether there are keys.
        required: Whether a request needs one.

    Args:
        access: Keys, and whether one is needed.
        limits: Requests a minute.
        clock: Seconds.
    """

    def __init__(
        self,
        access: AccessConfig,
        limits: LimitConfig,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keys = read_keys(access.api_keys) if access.api_keys else {}
        self.has_keys = access.api_keys is not None
        self.required = access.require_key
        self._limit = limits.request_limit
        self._proxy = limits.trust_proxy
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}  # requests, when

    def check(self, request: Request, fields: Mapping[str, Any]) -> None:
        """Check that the client of a request may send it.

        Raises:
            Refused: It has no key or a wrong one, or sends too many requests.
        """
        key = fields.get("api_key") or None
        known = key if isinstance(key, str) and key in self._keys else None
        if self.has_keys and key is not None and known is None:
            raise Refused(403, "Invalid API key")
        if known is None and self.required:
            raise Refused(400, "Please contact the server operator to get an API key")
        own = self._keys.get(known) if known else None
        limit = self._limit if own is None else own
        if limit and not self._take(f"key {known}" if known else self._address(request), limit):
            raise Refused(429, f"Slowdown: {limit} per 1 minute")

    def _address(self, request: Request) -> str:
        forwarded = request.headers.get("x-forwarded-for", "") if self._proxy else ""
        client = request.client.host if request.client else ""
        return forwarded.split(",")[0].strip()[:100] or client

    def _take(self, client: str, limit: int) -> bool:
        """Take one of the requests that a client has left; they come back evenly."""
        now = self._clock()
        left, since = self._left.pop(client, (float(limit), now))
        left = min(limit, left + (now - since) * limit / MINUTE)
        if len(self._left) >= MOST:
            self._left.pop(next(iter(self._left)))  # the one that was seen the longest ago
        self._left[client] = (left - (left >= 1), now)
        return left >= 1


def read_keys(path: Path) -> dict[str, int | None]:
    """Read API keys, each with its requests a minute, or None.

    Raises:
        OptionError: A line is not a key and a number.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"--api-keys {path}: {error}") from error
    keys: dict[str, int | None] = {}
    for number, line in enumerate(lines, start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) > 2 or not re.fullmatch(r"\d{1,9}", words[-1] if len(words) > 1 else "0"):
            raise OptionError(
                f"{path}, line {number}: give a key, and after white space how many requests a "
                f"minute it may send, or nothing"
            )
        if words[0] in keys:
            raise OptionError(f"{path}, line {number}: the key is in an earlier line, too")
        keys[words[0]] = int(words[1]) if len(words) > 1 else None
    return keys
