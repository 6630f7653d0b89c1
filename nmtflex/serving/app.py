"""The server's routes: LibreTranslate's API."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse
from fastapi_swagger import patch_fastapi
from starlette.exceptions import HTTPException

import nmtflex
from nmtflex.config import LimitConfig
from nmtflex.serving.access import Access
from nmtflex.serving.detection import Detected, Detector
from nmtflex.serving.fields import (
    AUTO,
    Refused,
    read_fields,
    take,
    take_choice,
    take_number,
    take_texts,
)
from nmtflex.serving.guard import Guard
from nmtflex.serving.languages import english_name
from nmtflex.serving.metrics import Metrics
from nmtflex.serving.schemas import (
    Detection,
    DetectRequest,
    Health,
    Language,
    TranslateAnswer,
    TranslateRequest,
    body,
    errors,
)
from nmtflex.serving.service import Service
from nmtflex.serving.waiting import answered

LOG = logging.getLogger("nmtflex.serving")
CERTAIN = 100.0  # percent
SHORT = 40  # characters of a text whose language others of the request help to find
SENT = ("application/json", "application/x-www-form-urlencoded", "multipart/form-data")
USUAL = errors(400, 403, 408, 413, 429)


class Api:
    """The routes, and what they need.

    Args:
        service: Translates.
        limits: Of requests.
        access: Who may send them.
        detector: Finds languages.
    """

    def __init__(
        self, service: Service, limits: LimitConfig, access: Access, detector: Detector
    ) -> None:
        self._service = service
        self._limits = limits
        self._access = access
        self._detector = detector
        self._languages = service.languages

    async def languages(self) -> list[Language]:
        """List the languages, and what each can be translated into."""
        return [
            Language(code=code, name=english_name(code), targets=self._languages.targets(code))
            for code in self._languages.codes
        ]

    async def detect(self, request: Request) -> list[Detection]:
        """Find the language of a text, among those served; the most probable first."""
        fields = await self._fields(request)
        texts, _ = take_texts(fields)
        self._check_size(texts)
        return list(map(_shown, self._detector.ranked("\n".join(texts))))

    async def translate(self, request: Request) -> dict[str, Any]:
        """Translate a text or several."""
        fields = await self._fields(request)
        texts, several = take_texts(fields)
        source, target = take(fields, "source"), take(fields, "target")
        take_choice(fields, "format", ("text", "html"))
        alternatives = take_number(fields, "alternatives", self._limits.alternatives_limit)
        self._check_size(texts)
        detected = self._detected(texts, source)
        ways = [self._way(one.language, target) for one in detected]
        work = self._service.translate(texts, ways, alternatives)
        found = await answered(request, work, self._limits.timeout)
        answer: dict[str, Any] = {"translatedText": [one.text for one in found]}
        if alternatives:
            answer["alternatives"] = [one.alternatives for one in found]
        if source == AUTO:
            answer["detectedLanguage"] = list(map(_shown, detected))
        return answer if several else {name: values[0] for name, values in answer.items()}

    def health(self, response: Response) -> Health:
        """Say whether there are workers that translate."""
        if self._service.dispatcher.alive:
            return Health(status="ok")
        response.status_code = 503
        return Health(status="error")

    async def _fields(self, request: Request) -> dict[str, Any]:
        """Return what a request asks, if its client may send it."""
        fields = await read_fields(request)
        self._access.check(request, fields)
        return fields

    def _check_size(self, texts: Sequence[str]) -> None:
        sizes = (
            (len(texts), self._limits.batch_limit),
            (sum(map(len, texts)), self._limits.char_limit),
        )
        for size, limit in sizes:
            if limit and size > limit:
                raise Refused(
                    400, f"Invalid request: request ({size}) exceeds text limit ({limit})"
                )

    def _detected(self, texts: Sequence[str], source: str) -> list[Detected]:
        """Return the language of each text."""
        if source != AUTO:
            return [Detected(self._code(source), CERTAIN)] * len(texts)
        whole = self._detector.ranked("\n".join(texts))
        if not whole:
            raise Refused(400, "The language cannot be found; give it as source")
        return [self._detector.ranked(x)[0] if len(x) > SHORT else whole[0] for x in texts]

    def _code(self, asked: str) -> str:
        code = self._languages.find(asked)
        if code is None:
            raise Refused(400, f"{asked} is not supported")
        return code

    def _way(self, source: str, target: str) -> list[int]:
        """Return the models that lead from one language to another."""
        code = self._code(target)
        way = self._languages.way(source, code)
        if way is None:
            names = [f"{english_name(one)} ({one})" for one in (code, source)]
            raise Refused(400, f"{names[0]} is not available as a target language from {names[1]}")
        return way


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
