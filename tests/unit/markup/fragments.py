"""Random HTML, synthetic translations with links, and what a browser would see of a document."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from justhtml import JustHTML

INLINE = ["b", "i", "a", "em", "span", "sup", "u", "x-y", "q", "label", "ruby"]
BLOCKS = ["p", "div", "li", "ul", "td", "table", "tr", "h1", "section", "blockquote", "button"]
KEPT = ["code", "kbd", "pre", "svg", "math", "script", "style", "textarea", "video", "noscript"]
VOID = ["br", "img", "hr", "wbr", "input"]
WORDS = ["Hund", "läuft", "im", "Schnee", "a", "犬", "が", "x1", "3", "Straße"]
GAPS = [" ", " ", " ", "", "\n ", ", ", ". ", "&nbsp;", "&amp;", " &lt; ", "! ", "&eacute;"]


def fragment(random: Random, faulty: float = 0.0) -> str:
    """Return a fragment whose elements are numbered by their attribute n.

    Args:
        random: Decides everything.
        faulty: How often a tag is left out or out of place.
    """
    writer = Writer(random, faulty)
    # A fragment that begins with a part of a table is not one of a <div>.
    writer.write(0, [*INLINE, *(name for name in BLOCKS if name not in ("td", "tr"))])
    return "".join(writer.out)


class Writer:
    """Writes random elements; see ``fragment``."""

    def __init__(self, random: Random, faulty: float) -> None:
        self.random = random
        self.faulty = faulty
        self.out: list[str] = []
        self.numbers = itertools.count()

    def write(self, depth: int, names: list[str]) -> None:
        for _ in range(self.random.randint(0, 4)):
            kind = self.random.random()
            if kind < 0.68 or depth > 4:
                self.leaf(kind)
            else:
                self.element(depth, self.random.choice(names), names)

    def element(self, depth: int, name: str, names: list[str]) -> None:
        if self.random.random() >= self.faulty:
            self.out.append(self.tag(name))
        self.write(depth + 1, names if name in BLOCKS else INLINE)
        if self.random.random() >= self.faulty:
            self.out.append(f"</{name}>")
        self.out.append(self.gap())
        if self.random.random() < self.faulty:
            stray = self.random.choice(INLINE)
            self.out.append(self.random.choice([f"</{stray}>", "</p>", "<", "<!x>"]))

    def leaf(self, kind: float) -> None:
        name = self.random.choice(KEPT)
        if kind < 0.1:
            void = self.tag(self.random.choice(VOID))
            self.out.append(self.random.choice([void, "<!-- c -->", " \n"]))
        elif kind < 0.18:
            self.out.append(f"{self.tag(name)}x &quot;y&quot;</{name}>{self.gap()}")
        else:
            self.out += [self.random.choice(WORDS) + self.gap() for _ in range(3)]

    def gap(self) -> str:
        return self.random.choice([*GAPS, "<"] if self.faulty else GAPS)

    def tag(self, name: str) -> str:
        more = ["", ' title="Ein Bild"', " href=?a=1&b=2", ' class="x  y"', " hidden"]
        said = ' translate="no"', ' class="notranslate"', " translate=yes"
        own = self.random.choice(more)
        if name not in KEPT and self.random.random() < 0.05:
            own += self.random.choice(said)
        return f"<{name} n={next(self.numbers)}{own}>"


def words(text: str) -> list[tuple[int, int]]:
    """Return the spans of words and signs."""
    return [found.span() for found in re.finditer(r"\w+|[^\w\s]", text)]


def identity(text: str, random: Random) -> tuple[str, list[Any]]:
    """Translate into the same."""
    return text, [(span, span) for span in words(text)]


def shouting(text: str, random: Random) -> tuple[str, list[Any]]:
    """Translate into capitals, of which ß has two."""
    found, links, last = "", [], 0
    for start, end in words(text):
        found += text[last:start]
        word = text[start:end].upper()
        links.append(((start, end), (len(found), len(found) + len(word))))
        found, last = found + word, end
    return found + text[last:], links


def reversal(text: str, random: Random) -> tuple[str, list[Any]]:
    """Translate into the words from the last to the first."""
    found, links = "", []
    for start, end in reversed(words(text)):
        found += " " * bool(found)
        links.append(((start, end), (len(found), len(found) + end - start)))
        found += text[start:end]
    return found, links


def shuffled(text: str, random: Random) -> tuple[str, list[Any]]:
    """Translate into any words, linked at random."""
    spans = words(text)
    found, links = "", []
    for _ in range(random.randint(0, 2 * len(spans))):
        found += random.choice(["", " ", " "])
        word = random.choice([*WORDS, "<&>", '"'])
        if random.random() < 0.8:
            links.append((random.choice(spans), (len(found), len(found) + len(word))))
        found += word
    return found, links


def unlinked(text: str, random: Random) -> tuple[str, list[Any]]:
    """Translate into other words without links."""
    return " ".join(random.choices(WORDS, k=random.randint(0, 6))), []


ALIGNERS: list[Callable[[str, Random], tuple[str, list[Any]]]] = [
    identity, shouting, reversal, shuffled, unlinked,
]  # fmt: skip


def nodes(html: str) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yield every node that a browser sees, and the tags around it."""
    context = JustHTML(html, sanitize=False, fragment=True).root
    stack: list[tuple[Any, tuple[Any, ...]]] = [(context, ())]
    while stack:
        node, path = stack.pop()
        yield node, path
        own = path if node.name.startswith("#") else (*path, tag_of(node))
        inside = getattr(node, "template_content", None) or node
        stack += [(child, own) for child in reversed(inside.children or ())]


def tag_of(node: Any) -> tuple[Any, ...]:
    return node.name, tuple((node.attrs or {}).items())


def tags(html: str) -> Counter[Any]:
    """Count the tags with their attributes and all tags around them."""
    found = [(tag_of(node), path) for node, path in nodes(html) if not node.name.startswith("#")]
    return Counter(found)
