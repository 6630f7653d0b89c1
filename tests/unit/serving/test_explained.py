"""Explanations of sentences, put together to that of a text."""

from __future__ import annotations

import pytest

from nmtflex.serving.explained import explained_units
from nmtflex.serving.splitting import TextSplitter, has_words
from nmtflex.text.pipeline import SidePipeline, TextPipeline
from nmtflex.text.tokenizers import build_tokenizer
from nmtflex.text.vocabulary import Vocabulary


def words_in(text: str) -> list[tuple[int, int]]:
    """Find words between spaces, by a loop."""
    found, start = [], None
    for place, character in enumerate(f"{text} "):
        if character.isspace() and start is not None:
            found.append((start, place))
            start = None
        elif not character.isspace() and start is None:
            start = place
    return found


def answer_of(unit: str, space: str) -> dict[str, object]:
    """Answer as a worker that writes capitals does, and white space around them."""
    text = f"{space}{unit.upper()}{space}"
    words = words_in(text)
    about = {
        "source_words": words_in(unit),
        "target_words": words,
        "weights": [[1.0] * len(words)] * len(words),
        "skipped": [None] * len(words),
        "confidences": [0.5] * len(words),
        "cps": 2.0,
        "positions": 3,
        "milliseconds": 4.0,
    }
    return {"texts": [text], "scores": [0.0], "explanation": about}


def splitter(source: str = "none", target: str = "none") -> TextSplitter:
    sides = [
        SidePipeline(code, build_tokenizer({"name": name}), None, Vocabulary("ab", [1, 1]))
        for code, name in (("en", source), ("de", target))
    ]
    return TextSplitter(TextPipeline(*sides), join=1, longest=6)


@pytest.mark.parametrize("space", ["", "  "])
@pytest.mark.parametrize(
    "text",
    [
        "one two .",
        "  one two. Three four!\n\n five \r\n... ...\n\tSix 👋 seven. 8",
        "a sentence of too many words to be translated at once, cut into several units .",
        "\n",
    ],
)
def test_places_are_those_of_the_whole_text(text, space):
    own = splitter()
    split = own.split(text)
    answers = [answer_of(unit, space) for unit in split.units if has_words(unit)]
    left = iter(answers)
    texts = [next(left)["texts"][0] if has_words(unit) else unit for unit in split.units]
    translation = own.join(split, texts)
    found = explained_units(own, split, answers)
    assert len(found) == len(answers)
    for unit in found:
        source = text[slice(*unit["source"])]
        assert translation[slice(*unit["target"])] == source.upper()
        words = [text[slice(*span)] for span in unit["sourceWords"]]
        assert words == source.split()
        targets = [translation[slice(*word["span"])] for word in unit["targetWords"]]
        assert targets == [word.upper() for word in words]
        assert (unit["cps"], unit["positions"], unit["milliseconds"]) == (2.0, 3, 4.0)
    assert " ".join(text[slice(*unit["source"])] for unit in found).split() == [
        word for unit in split.units if has_words(unit) for word in unit.split()
    ]


def test_words_that_were_not_found_keep_their_place():
    own = splitter()
    split = own.split(" one two")
    answer = answer_of("one two", "")
    answer["explanation"]["source_words"] = [None, (0, 3), None]
    answer["explanation"]["target_words"] = [None, (4, 7)]
    (unit,) = explained_units(own, split, [answer])
    assert unit["sourceWords"] == [[1, 1], [1, 4], [4, 4]]
    assert [word["span"] for word in unit["targetWords"]] == [[5, 8]]
