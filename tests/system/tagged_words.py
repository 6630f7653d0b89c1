"""The words of tests/fixtures/tagged_words.txt, and whether a tag is around the right one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

WORDS = Path(__file__).parents[1] / "fixtures" / "tagged_words.txt"
_TAGGED = re.compile(r"\[([^|\]]+)\|([^\]]+)\]")
_BOLD = re.compile(r"<b>(.*?)</b>")


class Tagged(NamedTuple):
    """A sentence in which one word is bold, and the translations of the word."""

    html: str
    accepted: list[str]


class Judged(NamedTuple):
    """How many tags are around the right word."""

    right: int
    wrong: list[tuple[str, str]]  # source and translation
    lost: list[tuple[str, str]]  # the translation has no word that would be right


def read_tagged(path: Path = WORDS) -> Iterator[Tagged]:
    """Yield each tagged word of a file with its sentence."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        for place, word in enumerate(_TAGGED.finditer(line)):
            numbers = iter(range(len(line)))
            html = _TAGGED.sub(
                lambda one: f"<b>{one[1]}</b>" if next(numbers) == place else one[1],  # noqa: B023
                line,
            )
            yield Tagged(html, word[2].split(","))


def judge(words: list[Tagged], translate: Callable[[str], str]) -> Judged:
    """Translate all sentences as one document, and compare what is bold."""
    document = "\n".join(f"<p>{one.html}</p>" for one in words)
    found = translate(document).split("\n")
    right, wrong, lost = 0, [], []
    for one, html in zip(words, found, strict=True):
        plain = re.sub("<.*?>", "", html).lower()
        [bold] = _BOLD.findall(html)
        if bold.lower() in one.accepted:
            right += 1
        elif any(re.search(rf"\b{re.escape(word)}\b", plain) for word in one.accepted):
            wrong.append((one.html, html))
        else:
            lost.append((one.html, html))
    return Judged(right, wrong, lost)
