"""The languages that a server translates between, directly or through others."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple


class Pair(NamedTuple):
    """A direction of translation, by language codes."""

    source: str
    target: str


class Languages:
    """What can be translated into what.

    Args:
        pairs: The direction of each model.
    """

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self._models = {pair: number for number, pair in enumerate(pairs)}
        self.codes = sorted({code for pair in pairs for code in pair})
        self.sources = sorted({pair.source for pair in pairs})

    def way(self, source: str, target: str) -> list[int] | None:
        """Return the models that lead from one language to another, as few as possible.

        Returns:
            Their numbers in order, none if the languages are the same; None if there is no way.
        """
        ways: dict[str, list[int]] = {source: []}
        open_ends = deque([source])
        while open_ends and target not in ways:
            here = open_ends.popleft()
            for pair, number in self._models.items():
                if pair.source == here and pair.target not in ways:
                    ways[pair.target] = [*ways[here], number]
                    open_ends.append(pair.target)
        return ways.get(target)

    def targets(self, source: str) -> list[str]:
        """Return what a language can be translated into, itself included."""
        return [code for code in self.codes if self.way(source, code) is not None]

    def find(self, asked: str) -> str | None:
        """Return the code that a client means: de also stands for de_AT, and de-AT for de."""
        wanted = _plain(asked)
        plain = {_plain(code): code for code in self.codes}
        if wanted in plain:
            return plain[wanted]
        near = (code for code in plain if wanted == base_of(code) or base_of(wanted) == code)
        return next((plain[code] for code in near), None)


def _plain(code: str) -> str:
    return code.lower().replace("_", "-")


def base_of(code: str) -> str:
    """Return the code of a language without its country or script."""
    return _plain(code).split("-")[0]


def english_name(code: str) -> str:
    """Return the English name of a language, or its code."""
    from iso639 import Lang
    from iso639.exceptions import InvalidLanguageValue

    try:
        name = str(Lang(base_of(code)).name)
    except InvalidLanguageValue:
        return code
    rest = code[len(base_of(code)) + 1 :]
    return f"{name} ({rest})" if rest else name
