"""Texts taken apart, sent through models, and put together; the best combinations."""

from __future__ import annotations

import asyncio
import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workers_played import PlayedPool, PlayedWorker

from nmtflex.serving.fields import Refused
from nmtflex.serving.languages import Pair
from nmtflex.serving.queueing import Dispatcher
from nmtflex.serving.service import Model, Service, Wanted, combinations
from nmtflex.serving.splitting import TextSplitter, has_words
from nmtflex.text.pipeline import SidePipeline, TextPipeline
from nmtflex.text.tokenizers import build_tokenizer
from nmtflex.text.vocabulary import Vocabulary

# All that str.splitlines takes for the end of a line.
ENDS = ["\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
SPACES = [" ", "\t", "\u3000", "\xa0", *ENDS]
PIECES = ["a", "Hello there.", "Really?", "e.g. this", "東京。", "😀", "...", "1", *SPACES]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | st.text(max_size=40)
SCORES = st.floats(-5, 0).map(lambda score: round(score, 2))
CHOICE = st.lists(SCORES, min_size=1, max_size=4).map(lambda x: sorted(x, reverse=True))


def splitter(longest: int = 50, join: int = 1) -> TextSplitter:
    def side(language: str) -> SidePipeline:
        tokenizer = build_tokenizer({"name": "none"})
        return SidePipeline(language, tokenizer, None, Vocabulary(["a", "b"], [1, 1]))

    return TextSplitter(TextPipeline(side("en"), side("fr")), join, longest)


@given(TEXTS, st.integers(1, 5), st.integers(1, 3))
def test_a_text_whose_units_stay_is_itself_again(text, longest, join):
    own = splitter(longest, join)
    split = own.split(text)
    assert own.join(split, split.units) == text
    assert all(unit == unit.strip() != "" for unit in split.units)
    assert not any(unit.splitlines()[1:] for unit in split.units)


@given(TEXTS)
def test_white_space_is_kept_wherever_words_change(text):
    own = splitter()
    split = own.split(text)
    made = own.join(split, [re.sub(r"\S", "x", unit) for unit in split.units])
    assert made == re.sub(r"\S", "x", text)


@pytest.mark.parametrize("end", ENDS)
def test_lines_are_translated_by_themselves(end):
    assert splitter().split(f"a{end}b{end}{end}").units == ["a", "b"]


def test_what_has_words():
    assert all(map(has_words, ["a", "1", "…é", "東", "½"]))
    assert not any(map(has_words, ["", " ", "...", "😀", "€", "\u0301"]))


@given(st.lists(CHOICE, max_size=4), st.integers(1, 40))
def test_combinations_are_the_best_of_all(scores, most):
    choices = [
        [(f"{place}:{number}", score) for number, score in enumerate(choice)]
        for place, choice in enumerate(scores)
    ]
    known = {text: score for choice in choices for text, score in choice}
    found = list(combinations(choices, most))
    every = [sum(x[1] for x in taken) for taken in itertools.product(*choices)]
    best = sorted(every, reverse=True)[:most]
    assert [sum(known[text] for text in taken) for taken in found] == pytest.approx(best)
    assert len(set(map(tuple, found))) == len(found)
    assert found[0] == [choice[0][0] for choice in choices]
    for taken in found:
        assert [text.split(":")[0] for text in taken] == [*map(str, range(len(choices)))]


UNKNOWN = {"links": [], "words": 1, "confidence": None, "unaligned": None}


def translated(texts, ways, wanted=Wanted(), answer=None):  # noqa: B008
    """Translate with two models, whose sentences a played worker answers."""
    known = answer or (lambda text: {"texts": [f"<{text}>"], "scores": [0.0]})
    worker = PlayedWorker(lambda text: UNKNOWN | known(text))
    models = [Model([], Pair(*pair), splitter()) for pair in (("en", "fr"), ("fr", "ja"))]

    async def run():
        dispatcher = Dispatcher(PlayedPool(worker), 1000, 60.0, 60.0)
        dispatcher.start()
        try:
            return await Service(models, dispatcher).translate(texts, ways, wanted)
        finally:
            await dispatcher.stop()

    return asyncio.run(asyncio.wait_for(run(), 60)), worker


def test_texts_go_their_ways():
    found, worker = translated(["a", "b", "c", " d\n"], [[0], [], [0, 1], [0]])
    assert [one.text for one in found] == ["<a>", "b", "<<c>>", " <d>\n"]
    assert worker.batches == [["a", "d"], ["c"], ["<c>"]]
    assert [model for model, _ in worker.options] == [0, 0, 1]


def test_what_has_no_words_is_not_asked_about():
    found, worker = translated(["...", "😀\na", "\r\n"], [[0], [0], [0]])
    assert [one.text for one in found] == ["...", "😀\n<a>", "\r\n"]
    assert worker.batches == [["a"]]


def test_alternatives_are_of_whole_texts_and_differ():
    def answer(text):
        second = -2.0 if text == "b" else -1.5
        return {"texts": [text, text.upper(), text], "scores": [-1.0, second, -3.0]}

    found, worker = translated(["a\nb", "c"], [[0], [0]], Wanted(3), answer)
    assert found[0].text == "a\nb"
    assert found[0].alternatives == ["A\nb", "a\nB", "A\nB"]
    assert (found[1].text, found[1].alternatives) == ("c", ["C"])
    assert counts(worker) == [(0, 4)]


def test_a_text_on_its_way_through_another_language_has_one_translation():
    _, worker = translated(["a"], [[0, 1]], Wanted(3))
    assert counts(worker) == [(0, 1), (1, 4)]


def test_terms_and_word_scores_reach_the_last_model():
    terms = (("a", "x"),)
    _, worker = translated(["a"], [[0, 1]], Wanted(0, terms, True))
    (_, first), (_, last) = worker.options
    assert (dict(first)["terms"], dict(first)["word_scores"]) == ((), False)
    assert (dict(last)["terms"], dict(last)["word_scores"]) == (terms, True)


def test_confidence_is_the_mean_over_words():
    known = {
        "a": {"words": 3, "confidence": 0.5, "unaligned": 0.0},
        "b": {"words": 1, "confidence": 0.9, "unaligned": 1.0},
        "c": {"words": 0, "confidence": None, "unaligned": None},
    }

    def answers(text):
        return {"texts": [text], "scores": [0.0]} | known[text]

    found, _ = translated(["a\nb\nc", "c", "..."], [[0]] * 3, Wanted(confidence=True), answers)
    assert [(one.confidence, one.unaligned) for one in found] == [
        (pytest.approx(0.6), pytest.approx(0.25)),
        (None, None),
        (None, None),
    ]


def test_what_the_models_cannot_give_is_refused():
    models = [Model([], Pair("en", "fr"), splitter()), Model([], Pair("fr", "ja"), splitter())]
    service = Service(models, None)
    service.check(Wanted(3, (("a", "b"),)), [[0], [], [1]])
    with pytest.raises(Refused, match="glossary"):
        service.check(Wanted(0, (("a", "b"),)), [[0], [0, 1]])
    with pytest.raises(Refused, match="nmtflex calibrate"):
        service.check(Wanted(confidence=True), [[0]])


def counts(worker):
    return [(model, dict(options)["n_best"]) for model, options in worker.options]
