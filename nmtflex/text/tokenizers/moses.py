"""Moses' tokens."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Mapping, Sequence
from typing import Any

from nmtflex.text.tokenizers.base import Tokenizer
from nmtflex.text.tokenizers.moses_script import ESCAPES, MosesScript

HYPHEN = "@-@"


class MosesTokenizer(Tokenizer):
    """The tokens of Moses' tokenizer.perl, joined by sacremoses' detokenizer.

    Args:
        language: Two-letter code for the abbreviations and apostrophes; "de-AT" counts as "de".
        aggressive: Split hyphens between letters, as ``foo @-@ bar``; ``-a`` of the script.
        escape: Write ``'`` as ``&apos;`` and so on; if off, as with ``-no-escape``, detokenizing
            keeps entities too.
    """

    name = "moses"
    _ENTITY = re.compile("|".join(map(re.escape, ESCAPES.values())))
    _CHARACTER = {entity: character for character, entity in ESCAPES.items()}  # noqa: RUF012
    # sacremoses' detokenizer fails on these: Czech kniha' -li is one word.
    _CZECH_DASH = re.compile(r"(?<=[^\W\d_]') ([-–]) (?=li |mail)", re.IGNORECASE)

    def __init__(self, language: str, aggressive: bool = False, escape: bool = True) -> None:
        import sacremoses

        self.language = language
        self.aggressive = aggressive
        self.escape = escape
        self._short = _short(language)
        self._script = MosesScript(self._short, aggressive, escape)
        self._join = sacremoses.MosesDetokenizer(self._short)

    def tokenize(self, line: str) -> list[str]:
        """Split as the current tokenizer.perl does."""
        return self._script(line).split()

    def text(self, line: str) -> str:
        """Return the line of tokens that the script writes, with the same spaces."""
        return self._script(line)

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Join, and unescape if tokens are escaped, as detokenizer.perl does."""
        if self._short == "cs":
            tokens = self._CZECH_DASH.sub(r"\1", " ".join(tokens) + " ").split()
        return self._join.detokenize(tokens, unescape=self.escape)

    def surface(self, token: str) -> tuple[str, Sequence[int]]:
        """Map each entity to its character, and ``@-@`` to a hyphen."""
        if self.aggressive and token == HYPHEN:
            return "-", [0] * len(token)
        if not self.escape or "&" not in token:
            return token, range(len(token))
        raw, owners, start = "", [], 0
        while start < len(token):
            entity = self._ENTITY.match(token, start)
            found = entity[0] if entity else token[start]
            owners += [len(raw)] * len(found)
            raw += self._CHARACTER.get(found, found)
            start += len(found)
        return raw, owners

    def describe(self) -> dict[str, Any]:
        """Return name, language, options, and the packages that define abbreviations and letters.

        The letters are those of regex's Unicode version.
        """
        versions = [
            f"{name} {importlib.metadata.version(name)}" for name in ("sacremoses", "regex")
        ]
        return {
            "name": self.name,
            "language": self.language,
            "aggressive": self.aggressive,
            "escape": self.escape,
            "version": " ".join(versions),
        }


def remark(description: Mapping[str, Any]) -> str | None:
    """Return a remark if Moses does not know the language of a tokenizer's description."""
    if description["name"] != MosesTokenizer.name:
        return None
    from sacremoses.corpus import NonbreakingPrefixes

    language = description["language"]
    if _short(language) in NonbreakingPrefixes().available_langs.values():
        return None
    return f"Moses has no abbreviations for {language!r}, and uses those of English"


def _short(language: str) -> str:
    """Return a language code without the country."""
    return re.split("[-_]", language)[0].lower()
