"""What a worker answers about where words come from, against plain loops over the trace."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import nmtflex
from nmtflex.config import SearchConfig
from nmtflex.decoding.tally import Tally
from nmtflex.decoding.traces import SentenceTrace
from nmtflex.decoding.translation import Translation
from nmtflex.serving.explain import translate_explained
from nmtflex.text.pipeline import SidePipeline, TextPipeline
from nmtflex.text.subwords.bpe import BPE
from nmtflex.text.tokenizers import build_tokenizer
from nmtflex.text.vocabulary import Vocabulary

GOLDEN = Path(__file__).parents[2] / "golden"
OPTIONS = {"n_best": 1, "thresholds": True, "scored": False, "tau": None}
LINE = "私は先生が公園で走ったかどうか知りません。"


class Fixed:
    """A translator that knows one translation."""

    def __init__(self, trace: SentenceTrace | None) -> None:
        self.calls: list[dict[str, object]] = []
        self._trace = trace
        # cab is c@@ ab: x@@ y, and z stands alone
        sides = [
            SidePipeline(
                code, build_tokenizer({"name": "none"}), subwords, Vocabulary("abcd", [1] * 4)
            )
            for code, subwords in (("aa", BPE([("a", "b</w>")])), ("bb", BPE([])))
        ]
        self.pipeline = TextPipeline(*sides)
        self.search = SearchConfig(beam=2)

    def translate_batch(self, lines, n_best=1, trace=False, word_scores=False, **options):
        self.calls.append({"n_best": n_best, "tau": options["tau"], "beam": options["beam"]})
        best = Translation("xy  z", ["x@@", "y", "z"], ["xy", "z"], -1.0, -1.5, self._trace)
        return [[best._replace(word_scores=[0.25, 0.75]) if word_scores else best]]


def trace_of(weights, start=None, stop=None) -> SentenceTrace:
    windows = [None if part is None else np.array(part) for part in (start, stop)]
    return SentenceTrace(
        np.ones(4), None if weights is None else np.array(weights), None, None, *windows, None, None
    )


def by_loops(weights, columns, rows) -> list[list[float]]:
    """Sum over the tokens of a source word, and take the mean over those of a target word."""
    found = []
    for word in range(max(rows) + 1):
        own = [weights[row] for row in range(len(rows)) if rows[row] == word]
        sums = [
            sum(line[at] for line in own for at in range(len(columns)) if columns[at] == place)
            for place in range(max(columns) + 1)
        ]
        means = [value / len(own) for value in sums]
        found.append([value / sum(means) for value in means])
    return found


def test_weights_are_sums_over_source_tokens_and_means_over_target_tokens():
    weights = [[0.2, 0.3, 0.5], [0.1, 0.2, 0.4], [0.0, 0.9, 0.1], [1.0, 0.0, 0.0]]
    _, about = translate_explained(Fixed(trace_of(weights)), " cab d", OPTIONS)
    assert about["source_words"] == [(1, 4), (5, 6)]
    assert about["target_words"] == [(0, 2), (4, 5)]
    expected = by_loops(weights, [0, 0, 1], [0, 0, 1])
    np.testing.assert_allclose(about["weights"], expected, atol=5e-5)
    assert about["positions"] == 3


def test_a_word_that_looks_at_nothing_has_no_weights():
    weights = [[0.0, 0.5, 0.5], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    _, about = translate_explained(Fixed(trace_of(weights)), "cab d", OPTIONS)
    assert about["weights"][0] == [0.5, 0.5]
    assert about["weights"][1] is None


def test_skipped_is_what_no_step_of_a_word_read():
    weights = [[0.2, 0.3, 0.5]] * 4
    windows = trace_of(weights, start=[0, 1, 2, 0], stop=[1, 2, 3, 3])
    _, about = translate_explained(Fixed(windows), "cab d", OPTIONS)
    assert about["skipped"] == [[False, True], [True, False]]


def test_several_heads_skip_what_none_of_them_looked_at():
    weights = [[0.0, 0.5, 0.5], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    _, about = translate_explained(Fixed(trace_of(weights)), "cab d", OPTIONS)
    assert about["skipped"] == [[False, False], [True, False]]


@pytest.mark.parametrize("trace", [None, trace_of(None)])
def test_a_run_without_weights_is_not_explained(trace):
    _, about = translate_explained(Fixed(trace), "cab d", OPTIONS)
    assert about["weights"] == about["skipped"] == about["confidences"] == [None, None]


def test_without_flexible_attention_nothing_is_skipped():
    translator = Fixed(trace_of([[0.2, 0.3, 0.5]] * 4, start=[0] * 4, stop=[1] * 4))
    _, about = translate_explained(translator, "cab d", OPTIONS | {"thresholds": False})
    assert about["skipped"] == [None, None]


def test_options_of_the_call_reach_the_search():
    translator = Fixed(None)
    translate_explained(translator, "cab d", OPTIONS | {"n_best": 3, "tau": 0.7})
    assert translator.calls == [{"n_best": 3, "tau": 0.7, "beam": 3}] * 2


def test_scores_of_words_are_there_if_the_run_has_them():
    translator = Fixed(None)
    _, about = translate_explained(translator, "cab d", OPTIONS)
    assert about["confidences"] == [None, None]
    _, about = translate_explained(translator, "cab d", OPTIONS | {"scored": True})
    assert about["confidences"] == [0.25, 0.75]


@pytest.mark.parametrize("tau", [None, 0.3])
def test_a_run_is_explained_as_it_decodes(tau):
    translator = nmtflex.load(GOLDEN / "luong-flexible", beam=3)
    found, about = translate_explained(translator, LINE, OPTIONS | {"tau": tau})
    tally = Tally()
    ((best,),) = translator.translate_batch([LINE], trace=True, tally=tally, tau=tau)
    assert found[0].text == best.text
    assert about["cps"] == tally.cps
    assert about["milliseconds"] > 0
    # Characters are words here, and BPE parts the target: xx@@ xx@@ x.
    side, trace = translator.pipeline.target, best.trace
    starts = [*side.word_starts(best.tokens), len(best.tokens)]
    rows = [word for word, (a, b) in enumerate(pairwise(starts)) for _ in range(a, b)]
    expected = by_loops(trace.weights.tolist(), range(len(LINE)), rows)
    np.testing.assert_allclose(about["weights"], expected, atol=5e-5)
    looked = [
        {
            place
            for row, (start, stop) in enumerate(
                zip(trace.window_start, trace.window_stop, strict=True)
            )
            if row < len(rows) and rows[row] == word
            for place in range(int(start), int(stop))
        }
        for word in range(max(rows) + 1)
    ]
    assert about["skipped"] == [[place not in own for place in range(len(LINE))] for own in looked]
    assert any(map(any, about["skipped"])) == (tau is not None)
    assert math.isclose(sum(about["weights"][0]), 1, abs_tol=1e-3)
    assert [best.text[start:end] for start, end in about["target_words"]] == best.words
