"""The server's routes: LibreTranslate's API."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

import nmtflex
from nmtflex.serving.desk import Desk, shown
from nmtflex.serving.docs import add_docs
from nmtflex.serving.documents import FORMATS
from nmtflex.serving.explain_route import EXPLAINED, add_explanations
from nmtflex.serving.fields import (
    AUTO,
    Refused,
    take,
    take_choice,
    take_flag,
    take_number,
    take_terms,
    take_texts,
)
from nmtflex.serving.file_routes import add_files
from nmtflex.serving.guard import Guard
from nmtflex.serving.languages import english_name
from nmtflex.serving.metrics import Metrics
from nmtflex.serving.page import add_page
from nmtflex.serving.routes import Routes
from nmtflex.serving.schemas import (
    SENT,
    USUAL,
    Choice,
    Detection,
    DetectRequest,
    Health,
    Language,
    Settings,
    TranslateAnswer,
    TranslateRequest,
    body,
    errors,
)
from nmtflex.serving.service import Service, Wanted
from nmtflex.serving.waiting import answered

LOG = logging.getLogger("nmtflex.serving")
TYPING = 500  # milliseconds from the last key to a request


class Api(Routes):
    """The routes for texts."""

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
        return list(map(shown, self._desk.detector.ranked("\n".join(texts))))

    async def translate(self, request: Request) -> dict[str, Any]:
        """Translate a text or several."""
        fields = await self._desk.fields(request)
        texts, several = take_texts(fields)
        source, target = take(fields, "source"), take(fields, "target")
        kind = take_choice(fields, "format", ("text", "html"))
        alternatives = take_number(fields, "alternatives", self._desk.limits.alternatives_limit)
        self._desk.check_size(texts)
        detected = self._desk.detected(texts, source, html=kind == "html")
        ways = [self._desk.way(one.language, target) for one in detected]
        wanted = Wanted(alternatives, take_terms(fields), take_flag(fields, "confidence"))
        self._service.check(wanted, ways)
        translate = self._service.translate_html if kind == "html" else self._service.translate
        work = translate(texts, ways, wanted)
        found = await answered(request, work, self._desk.limits.timeout)
        answer: dict[str, Any] = {"translatedText": [one.text for one in found]}
        if alternatives:
            answer["alternatives"] = [one.alternatives for one in found]
        if wanted.confidence:
            answer["confidence"] = [one.confidence for one in found]
            answer["unaligned"] = [one.unaligned for one in found]
        if source == AUTO:
            answer["detectedLanguage"] = list(map(shown, detected))
        return answer if several else {name: values[0] for name, values in answer.items()}

    def settings(self) -> Settings:
        """Say what a page that translates should know."""
        first = self._service.models[0].pair
        return Settings(
            apiKeys=self._desk.access.has_keys,
            keyRequired=self._desk.access.required,
            charLimit=self._desk.limits.char_limit or -1,
            explainLimit=min(EXPLAINED, self._desk.limits.char_limit or EXPLAINED),
            alternativesLimit=self._desk.limits.alternatives_limit,
            frontendTimeout=TYPING,
            suggestions=False,
            filesTranslation=True,
            supportedFilesFormat=list(FORMATS),
            language={
                "source": Choice(code=AUTO, name="Auto Detect"),
                "target": Choice(code=first.target, name=english_name(first.target)),
            },
        )

    def health(self, response: Response) -> Health:
        """Say whether there are workers that translate."""
        if self._service.dispatcher.alive:
            return Health(status="ok")
        response.status_code = 503
        return Health(status="error")


def build_app(
    desk: Desk, service: Service, origins: Sequence[str], metrics: Metrics, *, page: bool
) -> FastAPI:
    """Put the routes together.

    Args:
        desk: Checks requests.
        service: Translates.
        origins: Whose pages may use the server.
        metrics: Counts.
        page: Whether there is a page at /.
    """
    api = Api(desk, service)
    app = FastAPI(
        title="nmtflex",
        summary="Translation by cheap attention",
        version=nmtflex.__version__,
        openapi_url="/spec",
        docs_url=None,
        redoc_url=None,
        swagger_ui_oauth2_redirect_url=None,
        redirect_slashes=False,  # they would lead to whatever host the client names
    )
    add_docs(app)
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
    add_files(app, desk, service)
    add_explanations(app, desk, service)
    app.get("/frontend/settings")(api.settings)
    if page:
        add_page(app)
    app.get("/metrics", response_class=Response)(lambda: _as_text(metrics))
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _failed)
    if origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=list(origins), allow_methods=["GET", "POST"]
        )
    app.add_middleware(Guard, most=desk.limits.body_limit, metrics=metrics)
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
    """Answer an unexpected error without showing the client the server's internals."""
    LOG.error("a request failed", exc_info=error)
    return JSONResponse({"error": "Internal server error"}, 500)
