"""The page that describes the API; all of its parts come from the server itself."""

from __future__ import annotations

from functools import partial
from importlib.resources import files

from fastapi import FastAPI, Response
from fastapi.openapi.docs import get_swagger_ui_html

PARTS = {
    "swagger-ui-bundle.js": "text/javascript",
    "swagger-ui.css": "text/css",
    "favicon-32x32.png": "image/png",
}


def add_docs(app: FastAPI) -> None:
    """Add the page /docs, and what it consists of.

    Addresses are relative: they hold behind any proxy, and none comes from a client's headers.
    """
    script, style, icon = (f"swagger/{name}" for name in PARTS)
    page = get_swagger_ui_html(
        openapi_url="spec",
        title=f"{app.title}: API",
        swagger_js_url=script,
        swagger_css_url=style,
        swagger_favicon_url=icon,
    )

    async def docs() -> Response:
        return page

    app.get("/docs", include_in_schema=False)(docs)
    for name, kind in PARTS.items():
        app.get(f"/swagger/{name}", include_in_schema=False)(partial(_part, name, kind))


async def _part(name: str, kind: str) -> Response:
    content = (files("fastapi_swagger") / "resources" / name).read_bytes()
    return Response(content, media_type=kind, headers={"Cache-Control": "max-age=3600"})
