"""Random fragments with random translations: what must hold whatever attention says."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from fragments import ALIGNERS, KEPT, fragment, identity, nodes, shouting, tags
from hypothesis import given
from hypothesis import strategies as st

from nmtflex.markup.document import HtmlDocument
from nmtflex.markup.parsing import markup, parse

FAULTY = (0, 0, 0.1, 0.3)  # every second fragment is as HTML demands
UNTOUCHED = set(KEPT)


def kept(html: str) -> Counter[str]:
    """Count the contents of the elements that are not translated."""
    return Counter(node.to_html(pretty=False) for node, _ in nodes(html) if node.name in UNTOUCHED)


def text_of(html: str) -> str:
    """Return the words outside of what is not translated, in order."""
    found = []
    for node, path in nodes(html):
        names = {name for name, _ in path}
        switched = any(
            key == "translate" or (key, value) == ("class", "notranslate")
            for _, attributes in path
            for key, value in attributes
        )
        if node.name == "#text" and not names & UNTOUCHED and not switched:
            found.append(node.data)
    return " ".join("".join(found).split())


def bare(found: Counter[Any]) -> Counter[Any]:
    """Count tags with their attributes, wherever they are."""
    counted: Counter[Any] = Counter()
    for (tag, _), count in found.items():
        counted[tag] += count
    return counted


def check(seed: int) -> None:
    random = Random(seed)
    source = fragment(random, FAULTY[seed % 4])
    document = HtmlDocument(source)
    # Some trees, as of a button in a table in a button, cannot be written down; a similar one is.
    expected = tags(markup(parse(source)))
    if not FAULTY[seed % 4]:
        assert bare(expected) == bare(tags(source))
    for translate in ALIGNERS:
        found = document.render([translate(text, random) for text in document.texts])
        assert tags(found) == expected
        assert FAULTY[seed % 4] or kept(found) == kept(source)
        assert markup(parse(found)) == found  # well-formed: written as it is read


@pytest.mark.parametrize("start", range(0, 300, 50))
def test_tags_and_what_is_not_translated_stay(start):
    for seed in range(start, start + 50):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(300, 10_300, 500))
def test_ten_thousand_fragments(start):
    for seed in range(start, start + 500):
        check(seed)


@pytest.mark.parametrize("seed", range(40))
def test_words_without_markup_are_the_translation(seed):
    random = Random(seed)
    source = fragment(random, FAULTY[seed % 4])
    document = HtmlDocument(source)
    same = document.render([identity(text, random) for text in document.texts])
    assert text_of(same) == text_of(source)
    loud = document.render([shouting(text, random) for text in document.texts])
    assert text_of(loud) == text_of(same).upper()


@given(st.text(st.sampled_from("<>/=\"'&;!- abpidx\n"), max_size=60))
def test_any_characters(text):
    document = HtmlDocument(text)
    found = document.render([(one.upper(), []) for one in document.texts])
    assert tags(found) == tags(markup(parse(text)))
    assert markup(parse(found)) == found
