"""Options of the translation server."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from nmtflex.config.base import Config, Opt


@dataclass(frozen=True, kw_only=True, slots=True)
class ServeConfig(Config):
    """Server."""

    host: Annotated[
        str, Opt("Address to listen on; 0.0.0.0 lets other machines reach the server.")
    ] = "127.0.0.1"
    port: Annotated[int, Opt("Port to listen on; 0 takes a free one.", ge=0, le=65535)] = 5000
    workers: Annotated[
        int,
        Opt(
            "Processes that translate; each opens every run. 0 for one a core, or one on a GPU.",
            ge=0,
            le=1024,
        ),
    ] = 0
    latency: Annotated[
        float,
        Opt(
            "Seconds that a batch should take: sentences that wait are translated together, those "
            "that wait longest first, until they would take longer.",
            gt=0,
            le=60,
        ),
    ] = 0.5
    join: Annotated[
        int,
        Opt(
            "Translate up to N consecutive sentences of a line together, for a run whose data was "
            "made with preprocess --concat.",
            ge=1,
        ),
    ] = 1
    page: Annotated[bool, Opt("Serve a page to translate on, at /.")] = True


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitConfig(Config):
    """Limits of requests."""

    char_limit: Annotated[
        int, Opt("Most characters of a request to translate; 0 for no limit.", ge=0)
    ] = 20_000
    batch_limit: Annotated[int, Opt("Most texts of a request; 0 for no limit.", ge=0)] = 1000
    alternatives_limit: Annotated[
        int, Opt("Most alternatives that a request may ask for.", ge=0, le=100)
    ] = 10
    body_limit: Annotated[
        int, Opt("Most bytes of a request, files included; more are answered with 413.", ge=1024)
    ] = 10_000_000
    queue_limit: Annotated[
        int,
        Opt("Most sentences that may wait; requests beyond that are answered with 429.", ge=1),
    ] = 2000
    timeout: Annotated[
        float,
        Opt("Seconds after which a request is given up and answered with 503.", gt=0, le=86_400),
    ] = 60.0
    request_limit: Annotated[
        int,
        Opt(
            "Requests a minute of one client, known by its key or its address; more are answered "
            "with 429. 0 for no limit.",
            ge=0,
        ),
    ] = 0
    trust_proxy: Annotated[
        bool,
        Opt(
            "Take a client's address from X-Forwarded-For, for a server that only a proxy can "
            "reach.",
            flag="--trust-proxy",
        ),
    ] = False


@dataclass(frozen=True, kw_only=True, slots=True)
class AccessConfig(Config):
    """Access."""

    api_keys: Annotated[
        Path | None,
        Opt(
            "File of API keys: one a line, and after white space the requests a minute it may send "
            "(default: --request-limit). Clients send theirs as api_key."
        ),
    ] = None
    require_key: Annotated[
        bool, Opt("Refuse requests to translate that have no key.", flag="--require-key")
    ] = False
    cors: Annotated[
        list[str],
        Opt("Origin whose pages may use the server, such as https://example.com, or *."),
    ] = field(default_factory=list)

    def validate(self) -> list[str]:
        """Check that there are keys to require."""
        if self.require_key and self.api_keys is None:
            return ["--require-key needs --api-keys"]
        return []
