"""What every route checks: who asks, how much, and from which language into which."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request

from nmtflex.config import LimitConfig
from nmtflex.serving.access import Access
from nmtflex.serving.detection import Detected, Detector
from nmtflex.serving.fields import AUTO, Refused, quoted, read_fields
from nmtflex.serving.languages import Languages, english_name
from nmtflex.serving.schemas import Detection

CERTAIN = 100.0  # percent
_TAG = re.compile("<[^>]*>")
SHORT = 40  # characters of a text whose language others of the request help to find


class Desk:
    """Takes requests in.

    Args:
        languages: That are served.
        limits: Of requests.
        access: Who may send them.
    """

    def __init__(self, languages: Languages, limits: LimitConfig, access: Access) -> None:
        self.limits = limits
        self.detector = Detector(languages.sources)
        self._languages = languages
        self.access = access

    async def fields(self, request: Request) -> dict[str, Any]:
        """Return what a request asks, if its client may send it.

        Raises:
            Refused: It is damaged, or its client may not.
        """
        fields = await read_fields(request)
        self.access.check(request, fields)
        return fields

    def check_size(self, texts: Sequence[str]) -> None:
        """Check that texts are not too many or too long.

        Raises:
            Refused: They are.
        """
        sizes = (
            (len(texts), self.limits.batch_limit),
            (sum(map(len, texts)), self.limits.char_limit),
        )
        for size, limit in sizes:
            if limit:
                check_limit(size, limit)

    def detected(
        self, texts: Sequence[str], source: str, *, html: bool, together: bool = False
    ) -> list[Detected]:
        """Return the language of each text.

        Args:
            texts: Of a request.
            source: Their language as asked for, or ``AUTO``.
            html: Whether they are HTML.
            together: Whether they have the same language.

        Raises:
            Refused: It is not served, or cannot be found.
        """
        if source != AUTO:
            return [Detected(self._code(source), CERTAIN)] * len(texts)
        if html:
            texts = [_TAG.sub(" ", text) for text in texts]
        whole = self.detector.ranked("\n".join(texts))
        if not whole:
            raise Refused(400, "The language cannot be found; give it as source")
        alone = [not together and len(text) > SHORT for text in texts]
        return [
            self.detector.ranked(text)[0] if long else whole[0]
            for text, long in zip(texts, alone, strict=True)
        ]

    def _code(self, asked: str) -> str:
        code = self._languages.find(asked)
        if code is None:
            raise Refused(400, f"{quoted(asked)} is not supported")
        return code

    def way(self, source: str, target: str) -> list[int]:
        """Return the models that lead from one language to another.

        Raises:
            Refused: There is no way.
        """
        code = self._code(target)
        way = self._languages.way(source, code)
        if way is None:
            names = [f"{english_name(one)} ({one})" for one in (code, source)]
            raise Refused(400, f"{names[0]} is not available as a target language from {names[1]}")
        return way


def check_limit(size: int, limit: int) -> None:
    """Check the size of a request.

    Raises:
        Refused: It is beyond the limit.
    """
    if size > limit:
        raise Refused(400, f"Invalid request: request ({size}) exceeds text limit ({limit})")


def shown(detected: Detected) -> Detection:
    """Return what a client reads of a language that was found."""
    return Detection(language=detected.language, confidence=detected.confidence)
