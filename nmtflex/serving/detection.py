"""Which of the served languages a text is in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from nmtflex.serving.languages import base_of

LONGEST = 2000  # characters that are looked at


class Detected(NamedTuple):
    """A language, and how sure it is, from 0 to 100."""

    language: str
    confidence: float


class Detector:
    """Tells the served languages apart, by py3langid's bytes and naive Bayes.

    Args:
        codes: The languages. One that the library does not know is never found.
    """

    def __init__(self, codes: Sequence[str]) -> None:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        library: Any = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
        known = set(map(str, library.labels))
        self._codes: dict[str, str] = {}
        for code in codes:
            if base_of(code) in known:
                self._codes.setdefault(base_of(code), code)
        self._library = library
        if self._codes:
            library.set_languages(list(self._codes))

    def ranked(self, text: str) -> list[Detected]:
        """Return the languages that a text may be in, the most probable first.

        A text without letters is as much in one as in another.
        """
        shown = text[:LONGEST]
        if not self._codes:
            return []
        if not any(map(str.isalpha, shown)):
            return [Detected(code, 0.0) for code in self._codes.values()]
        found = self._library.rank(shown)
        return [Detected(self._codes[str(base)], round(100 * float(p), 1)) for base, p in found]
