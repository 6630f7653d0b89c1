"""The routes for files: one translates, the other gives what was translated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from fastapi import FastAPI, Request, Response

from nmtflex.serving.desk import Desk
from nmtflex.serving.documents import FORMATS
from nmtflex.serving.fields import Refused, take, take_file
from nmtflex.serving.routes import Routes
from nmtflex.serving.schemas import USUAL, FileAnswer, FileRequest, body, errors
from nmtflex.serving.service import Service
from nmtflex.serving.store import FileStore
from nmtflex.serving.waiting import answered


class FileApi(Routes):
    """The routes for files."""

    def __init__(self, desk: Desk, service: Service) -> None:
        super().__init__(desk, service)
        self._files = FileStore()

    async def translate_file(self, request: Request) -> FileAnswer:
        """Translate a file of text."""
        fields = await self._desk.fields(request)
        file = take_file(fields)
        source, target = take(fields, "source"), take(fields, "target")
        name = Path(file.filename or "").name
        known = FORMATS.get(Path(name).suffix.lower())
        if known is None:
            raise Refused(400, "Invalid request: file format not supported")

        async def translate(texts: Sequence[str]) -> list[str]:
            detected = self._desk.detected(texts, source, html=known.html, together=True)
            ways = [self._desk.way(one.language, target) for one in detected]
            translated = self._service.translate_html if known.html else self._service.translate
            return [one.text for one in await translated(texts, ways)]

        work = known.translate(await file.read(), translate)
        data = await answered(request, work, self._desk.limits.timeout)
        token = self._files.keep(name, known.kind, data)
        return FileAnswer(translatedFileUrl=str(request.url_for("download_file", token=token)))

    async def download_file(self, token: str) -> Response:
        """Give a translated file."""
        if (kept := self._files.fetch(token)) is None:
            raise Refused(404, "There is no such file, or it is not kept any more")
        name = quote(kept.name)
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
        return Response(kept.data, media_type=kept.kind, headers=headers)


def add_files(app: FastAPI, desk: Desk, service: Service) -> None:
    """Add the routes to an app."""
    api = FileApi(desk, service)
    app.post(
        "/translate_file",
        responses=USUAL | errors(500, 503),
        openapi_extra=body(FileRequest, "multipart/form-data"),
    )(api.translate_file)
    app.get("/download_file/{token}", response_class=Response, responses=errors(404))(
        api.download_file
    )
