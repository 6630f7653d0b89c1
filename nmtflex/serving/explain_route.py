"""The route that says where the words of a translation come from."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request

from nmtflex.serving.desk import Desk, check_limit, shown
from nmtflex.serving.fields import AUTO, Refused, take, take_number, take_threshold
from nmtflex.serving.messages import finite
from nmtflex.serving.routes import Routes
from nmtflex.serving.schemas import SENT, USUAL, ExplainAnswer, ExplainRequest, body, errors
from nmtflex.serving.service import Service
from nmtflex.serving.waiting import answered

EXPLAINED = 2000  # characters of a text to explain: its sentences are translated one by one


class ExplainApi(Routes):
    """The route."""

    async def explain(self, request: Request) -> dict[str, Any]:
        """Translate a text, and say where each word of the translation comes from.

        Places are in characters (Unicode code points). A translation that goes through other
        languages is not explained.
        """
        fields = await self._desk.fields(request)
        text = take(fields, "q")
        source, target = take(fields, "source"), take(fields, "target")
        alternatives = take_number(fields, "alternatives", self._desk.limits.alternatives_limit)
        tau = take_threshold(fields)
        self._desk.check_size([text])
        check_limit(len(text), EXPLAINED)
        (detected,) = self._desk.detected([text], source, html=False)
        way = self._desk.way(detected.language, target)
        model = self._service.models[way[0]] if len(way) == 1 else None
        thresholds = model is not None and model.gated
        if tau is not None and not thresholds:
            raise Refused(400, "Invalid request: tau needs a run with flexible attention")
        work = self._service.explain(text, way, alternatives, tau)
        found, units = await answered(request, work, self._desk.limits.timeout)
        answer: dict[str, Any] = {"translatedText": found.text, "units": units}
        answer["thresholds"] = thresholds
        answer["tau"] = finite(model.tau if model and tau is None else tau)
        if alternatives:
            answer["alternatives"] = found.alternatives
        if source == AUTO:
            answer["detectedLanguage"] = shown(detected)
        return answer


def add_explanations(app: FastAPI, desk: Desk, service: Service) -> None:
    """Add the route to an app."""
    app.post(
        "/explain",
        response_model=ExplainAnswer,
        response_model_exclude_unset=True,
        responses=USUAL | errors(500, 503),
        openapi_extra=body(ExplainRequest, *SENT),
    )(ExplainApi(desk, service).explain)
