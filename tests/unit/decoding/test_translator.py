from __future__ import annotations

import string

import pytest
from table_model import TableModel

import nmtflex
from nmtflex.config import BatchConfig, SearchConfig
from nmtflex.decoding.search import Hypothesis
from nmtflex.decoding.translator import Translator
from nmtflex.errors import OptionError
from nmtflex.text.pipeline import SidePipeline, TextPipeline
from nmtflex.text.tokenizers import build_tokenizer
from nmtflex.text.vocabulary import UNK_ID, Vocabulary


def side(language: str, letters: str) -> SidePipeline:
    vocabulary = Vocabulary(list(letters), [1] * len(letters))
    return SidePipeline(language, build_tokenizer({"name": "none"}), None, vocabulary)


PIPELINE = TextPipeline(side("aa", string.ascii_lowercase), side("bb", string.ascii_uppercase))
LINES = ["a b c", "", "z", "b " * 40, " \t ", "? ! ?", "c b a", "a b c"]


def translator(batch_sentences: int = 64, beam: int = 4) -> Translator:
    model = TableModel(30, eos_bonus=1.0)
    return Translator(
        [model], PIPELINE, SearchConfig(beam=beam), BatchConfig(batch_sentences=batch_sentences)
    )


def test_lines_come_back_in_order_whatever_the_batch() -> None:
    one_by_one = [translator().translate([line])[0] for line in LINES]
    for size in (1, 3, 64):
        assert translator(size).translate(LINES) == one_by_one
    assert one_by_one[1] == one_by_one[4] == ""
    assert one_by_one[0] == one_by_one[7]


def test_a_line_of_unknown_words_alone_is_translated() -> None:
    [hypotheses] = translator().translate_ids([[UNK_ID, UNK_ID, UNK_ID]])
    assert translator().translate(["? ! ?"]) == [PIPELINE.target.decode(hypotheses[0].ids)]


def test_no_lines_give_none() -> None:
    assert translator().translate([]) == []


def test_an_empty_source_has_one_empty_hypothesis() -> None:
    assert translator().translate_ids([[]]) == [[Hypothesis([], 0.0, 0.0)]]


def test_n_best_tells_text_tokens_and_scores() -> None:
    [found] = translator().n_best(["a b"], 3)
    [hypotheses] = translator().translate_ids([[4, 5]])
    assert len(found) == 3
    for translation, hypothesis in zip(found, hypotheses, strict=False):
        assert translation.tokens == [PIPELINE.target.vocabulary.token(i) for i in hypothesis.ids]
        assert translation.text == " ".join(translation.tokens)
        assert translation.score == hypothesis.score
        assert translation.log_probability == hypothesis.log_probability


def test_load_takes_the_options_of_the_command(tiny_run) -> None:
    opened = nmtflex.load(
        str(tiny_run), beam=3, batch_sentences=2, device="cpu", dtype="float64", threads=1
    )
    assert opened.search == SearchConfig(beam=3)
    assert opened.batch == BatchConfig(batch_sentences=2)
    assert opened.translate(["", "a b"])[0] == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beem": 3}, "load: unknown option 'beem'; did you mean beam"),
        ({"beam": 0}, "--beam must be at least 1, not 0"),
        ({"beam": "three"}, "option 'beam' .*'three'"),
    ],
)
def test_load_refuses_wrong_options(tiny_run, options, message) -> None:
    with pytest.raises(OptionError, match=message):
        nmtflex.load(tiny_run, **options)


def test_one_string_is_not_taken_for_a_list_of_letters(tiny_run) -> None:
    from nmtflex import load

    with pytest.raises(TypeError, match="not one string"):
        load(tiny_run, device="cpu", threads=1).translate("a b")
