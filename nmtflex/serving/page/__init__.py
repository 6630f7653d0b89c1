"""The page at /: HTML, style and scripts of our own, and how they are served."""

from __future__ import annotations

import hashlib
from importlib import resources

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
POLICY = "; ".join([
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
])
HEADERS = {
    "Cache-Control": "no-cache",  # a browser asks whether its copy is still right
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def add_page(app: FastAPI) -> None:
    """Add the page to an app: index.html at /, all else under /page/."""
    for file in resources.files(__package__).iterdir():
        kind = KINDS.get(file.name.rpartition(".")[2])
        if kind:
            path = "/" if file.name == "index.html" else f"/page/{file.name}"
            answer = _File(file.read_bytes(), kind).answer
            app.add_api_route(path, answer, methods=["GET", "HEAD"], include_in_schema=False)


class _File:
    """A file of the page, in memory.

    Args:
        content: Its bytes.
        kind: Its media type.
    """

    def __init__(self, content: bytes, kind: str) -> None:
        self._content = content
        self._headers = {**HEADERS, "ETag": f'"{hashlib.sha256(content).hexdigest()[:32]}"'}
        self._kind = kind

    def answer(self, request: Request) -> Response:
        """Answer with the file, or with 304 if the client has it."""
        asked = (tag.strip() for tag in request.headers.get("if-none-match", "").split(","))
        if self._headers["ETag"] in {tag.removeprefix("W/") for tag in asked}:
            return Response(status_code=304, headers=self._headers)
        return Response(self._content, media_type=self._kind, headers=self._headers)
