"""The server's routes: LibreTranslate's API."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request, Response
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse
from fastapi_swagger import patch_fastapi
from starlette.exceptions import HTTPException

import nmtflex
from nmtflex.config import LimitConfig
from nmtflex.serving.desk import Desk
from nmtflex.serving.detection import Detected
from nmtflex.serving.documents import FORMATS
from nmtflex.serving.fields import (
    AUTO,
    Refused,
    take,
    take_choice,
    take_file,
    take_number,
    take_texts,
)
from nmtflex.serving.guard import Guard
from nmtflex.serving.languages import english_name
from nmtflex.serving.metrics import Metrics
from nmtflex.serving.schemas import (
    Detection,
    DetectRequest,
    FileAnswer,
    FileRequest,
    Health,
    Language,
    TranslateAnswer,
    TranslateRequest,
    body,
    errors,
)
from nmtflex.serving.service import Service
from nmtflex.serving.store import FileStore
from nmtflex.serving.waiting import answered

LOG = logging.getLogger("nmtflex.serving")
SENT = ("application/json", "application/x-www-form-urlencoded", "multipart/form-data")
USUAL = errors(400, 403, 408, 413, 429)


class Api:
    """The routes, and what they need.

    Args:
        desk: Checks requests.
        service: Translates.
    """

    def __init__(self, desk: Desk, service: Service) -> None:
        self._desk = desk
        self._service = service
        self._limits = desk.limits
        self._files = FileStore()

    async def languages(self) -> list[Language]:
        """List the languages, and what each can be translated into."""
        languages = self._service.languages
        return [
            Language(code=code, name=english_name(code), targets=languages.targets(code))
            for code in languages.codes
        ]

    async def detect(self, request: Request) -> list[Detection]:
        """Find the language of a text, among those served; the most probable first."""
        fields = await self._desk.fields(request)
        texts, _ = take_texts(fields)
        self._desk.check_size(texts)
        return list(map(_shown, self._desk.detector.ranked("\n".join(texts))))

    async def translate(self, request: Request) -> dict[str, Any]:
        """Translate a text or several."""
        fields = await self._desk.fields(request)
        texts, several = take_texts(fields)
        source, target = take(fields, "source"), take(fields, "target")
        kind = take_choice(fields, "format", ("text", "html"))
        alternatives = take_number(fields, "alternatives", self._limits.alternatives_limit)
        self._desk.check_size(texts)
        detected = self._desk.detected(texts, source, html=kind == "html")
        ways = [self._desk.way(one.language, target) for one in detected]
        work = (
            self._service.translate_html(texts, ways)
            if kind == "html"
            else self._service.translate(texts, ways, alternatives)
        )
        found = await answered(request, work, self._limits.timeout)
        answer: dict[str, Any] = {"translatedText": [one.text for one in found]}
        if alternatives:
            answer["alternatives"] = [one.alternatives for one in found]
        if source == AUTO:
            answer["detectedLanguage"] = list(map(_shown, detected))
        return answer if several else {name: values[0] for name, values in answer.items()}

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
        data = await answered(request, work, self._limits.timeout)
        token = self._files.keep(name, known.kind, data)
        return FileAnswer(translatedFileUrl=str(request.url_for("download_file", token=token)))

    async def download_file(self, token: str) -> Response:
        """Give a translated file."""
        if (kept := self._files.fetch(token)) is None:
            raise Refused(404, "There is no such file, or it is not kept any more")
        name = quote(kept.name)
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
        return Response(kept.data, media_type=kept.kind, headers=headers)

    def health(self, response: Response) -> Health:
        """Say whether there are workers that translate."""
        if self._service.dispatcher.alive:
            return Health(status="ok")
        response.status_code = 503
        return Health(status="error")


def _shown(detected: Detected) -> Detection:
    return Detection(language=detected.language, confidence=detected.confidence)


def build_app(api: Api, limits: LimitConfig, origins: Sequence[str], metrics: Metrics) -> FastAPI:
    """Put the routes together.

    Args:
        api: Answers.
        limits: Has the size of a request.
        origins: Whose pages may use the server.
        metrics: Counts.
    """
    app = FastAPI(
        title="nmtflex",
        summary="Translation by cheap attention",
        version=nmtflex.__version__,
        openapi_url="/spec",
        docs_url=None,
        redoc_url=None,
        swagger_ui_oauth2_redirect_url=None,
    )
    patch_fastapi(app, redirect_from_root_to_docs=False)
    app.get("/languages")(api.languages)
    app.get("/health", responses=errors(503))(api.health)
    detect = body(DetectRequest, *SENT)
    app.post("/detect", responses=USUAL, openapi_extra=detect)(api.detect)
    app.post(
        "/translate",
        response_model=TranslateAnswer,
        response_model_exclude_none=True,
        responses=USUAL | errors(500, 503),
        openapi_extra=body(TranslateRequest, *SENT),
    )(api.translate)
    app.post(
        "/translate_file",
        responses=USUAL | errors(500, 503),
        openapi_extra=body(FileRequest, "multipart/form-data"),
    )(api.translate_file)
    app.get("/download_file/{token}", response_class=Response, responses=errors(404))(
        api.download_file
    )
    app.get("/metrics", response_class=Response)(lambda: _as_text(metrics))
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _failed)
    if origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=list(origins), allow_methods=["GET", "POST"]
        )
    app.add_middleware(Guard, most=limits.body_limit, metrics=metrics)
    return app


def _as_text(metrics: Metrics) -> Response:
    return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


async def _refused(_: Request, error: Exception) -> JSONResponse:
    status = error.status if isinstance(error, Refused) else 500
    headers = {"Retry-After": "1"} if status in (429, 503) else None
    return JSONResponse({"error": str(error)}, status, headers)


async def _http_error(_: Request, error: Exception) -> JSONResponse:
    """Answer what the framework refuses, such as an unknown address, in the same form."""
    if not isinstance(error, HTTPException):
        raise error
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


async def _failed(_: Request, error: Exception) -> JSONResponse:
    """Answer what nobody expected; the client is told nothing of the server's inside."""
    LOG.error("a request failed", exc_info=error)
    return JSONResponse({"error": "Internal server error"}, 500)
