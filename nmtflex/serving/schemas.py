"""Requests and answers of the server, for its OpenAPI description."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

KEY = Field(None, description="API key, where the server wants one")


class TranslateRequest(BaseModel):
    """What to translate."""

    q: str | list[str] = Field(description="Text, or texts", examples=["Guten Morgen!"])
    source: str = Field(description="Language code, or auto to find it out", examples=["de"])
    target: str = Field(description="Language code", examples=["en"])
    format: Literal["text", "html"] = Field("text", description="What the text is")
    alternatives: int = Field(0, ge=0, description="How many other translations to give")
    api_key: str | None = KEY


class DetectRequest(BaseModel):
    """What to find the language of."""

    q: str | list[str] = Field(description="Text, or texts", examples=["Guten Morgen!"])
    api_key: str | None = KEY


class FileRequest(BaseModel):
    """A file to translate."""

    file: bytes = Field(description="The file", json_schema_extra={"format": "binary"})
    source: str = Field(description="Language code, or auto to find it out", examples=["de"])
    target: str = Field(description="Language code", examples=["en"])
    api_key: str | None = KEY


class Detection(BaseModel):
    """A language that a text may be in."""

    language: str = Field(description="Language code")
    confidence: float = Field(ge=0, le=100, description="In percent")


class TranslateAnswer(BaseModel):
    """A translation, or a list of them if the request had one."""

    translatedText: str | list[str]  # noqa: N815
    alternatives: list[str] | list[list[str]] | None = None
    detectedLanguage: Detection | list[Detection] | None = None  # noqa: N815


class FileAnswer(BaseModel):
    """Where the translated file can be fetched, for a while."""

    translatedFileUrl: str  # noqa: N815


class Language(BaseModel):
    """A language, and what it can be translated into."""

    code: str
    name: str = Field(description="In English")
    targets: list[str]


class Health(BaseModel):
    """Whether the server can translate."""

    status: Literal["ok", "error"]


class Error(BaseModel):
    """What is wrong."""

    error: str


def body(model: type[BaseModel], *kinds: str) -> dict[str, Any]:
    """Return the description of a request's body, for FastAPI's ``openapi_extra``."""
    schema = model.model_json_schema()
    content = {kind: {"schema": schema} for kind in kinds}
    return {"requestBody": {"required": True, "content": content}}


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the description of a route's errors."""
    said = {
        400: "The request is wrong",
        403: "The API key is wrong",
        404: "There is no such thing",
        408: "The request came too slowly",
        413: "The request is too large",
        429: "Too many requests, or too many sentences waiting",
        500: "The text cannot be translated",
        503: "No answer in time, or the process that translated ended",
    }
    return {status: {"model": Error, "description": said[status]} for status in statuses}
