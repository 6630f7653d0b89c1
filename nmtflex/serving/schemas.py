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


class ExplainRequest(BaseModel):
    """What to translate and explain."""

    q: str = Field(description="Text", examples=["Guten Morgen!"])
    source: str = Field(description="Language code, or auto to find it out", examples=["de"])
    target: str = Field(description="Language code", examples=["en"])
    alternatives: int = Field(0, ge=0, description="How many other translations to give")
    tau: float | Literal["inf"] | None = Field(
        None,
        description="Threshold of flexible attention, at least 0; inf skips nothing. "
        "Left out, it is the server's",
    )
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
    confidence: float | list[float | None] | None = Field(
        None, description="Expected share of right words, if it was asked for"
    )
    unaligned: float | list[float | None] | None = Field(
        None, description="Share of words that come from nothing in the source: invented text"
    )


class ExplainedWord(BaseModel):
    """A word of the translation."""

    span: tuple[int, int] = Field(description="Its place in translatedText, in characters")
    weights: list[float] | None = Field(
        description="How much it looked at each of sourceWords; their sum is 1. "
        "Null if it looked at none, or the model has no such weights"
    )
    skipped: list[bool] | None = Field(
        description="Which of sourceWords the threshold left out; null without flexible attention"
    )
    confidence: float | None = Field(description="Probability that it is right, if known")


class ExplainedUnit(BaseModel):
    """A sentence that was translated by itself."""

    source: tuple[int, int] = Field(description="Its place in q, in characters")
    target: tuple[int, int] = Field(description="That of its translation in translatedText")
    sourceWords: list[tuple[int, int]] = Field(  # noqa: N815
        description="Places in q; an empty one for a word that was not found"
    )
    targetWords: list[ExplainedWord]  # noqa: N815
    cps: float = Field(description="Scores of attention computed a step")
    positions: int = Field(description="Source tokens: as many scores as there can be in a step")
    milliseconds: float = Field(description="Time of the search, for this sentence by itself")


class ExplainAnswer(BaseModel):
    """A translation, and where its words come from."""

    translatedText: str  # noqa: N815
    alternatives: list[str] | None = None
    detectedLanguage: Detection | None = None  # noqa: N815
    thresholds: bool = Field(description="Whether the model has flexible attention, and takes tau")
    tau: float | None = Field(description="Threshold that was used; null if nothing was skipped")
    units: list[ExplainedUnit] = Field(
        description="Sentences, in order; none if the translation went through other languages"
    )


class Choice(BaseModel):
    """A language of the page."""

    code: str
    name: str


class Settings(BaseModel):
    """What a page that translates should know."""

    apiKeys: bool = Field(description="Whether there are API keys")  # noqa: N815
    keyRequired: bool = Field(description="Whether a request needs one")  # noqa: N815
    charLimit: int = Field(description="Most characters; -1 for no limit")  # noqa: N815
    explainLimit: int = Field(description="Most characters to explain")  # noqa: N815
    alternativesLimit: int  # noqa: N815
    frontendTimeout: int = Field(description="Milliseconds from a key to a request")  # noqa: N815
    suggestions: bool = Field(description="Whether better translations are taken")
    filesTranslation: bool = Field(description="Whether files are translated")  # noqa: N815
    supportedFilesFormat: list[str] = Field(description="Ends of their names")  # noqa: N815
    language: dict[Literal["source", "target"], Choice] = Field(description="What to offer first")


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


SENT = ("application/json", "application/x-www-form-urlencoded", "multipart/form-data")
USUAL = errors(400, 403, 408, 413, 429)
