"""Scores of files and of a run's split, and what is wrong with either."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from nmtflex.errors import DataError, RunError
from nmtflex.scoring.evaluation import evaluate_files, evaluate_run, read_split
from nmtflex.text.pipeline import SidePipeline
from nmtflex.text.tokenizers import build_tokenizer
from nmtflex.text.vocabulary import Vocabulary


@pytest.fixture
def file(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.write_bytes(text.encode())
        return path

    return write


def test_files(file):
    hypothesis, reference = file("h", "a b c d e\n"), file("r", "a b c d f\n")
    evaluation = evaluate_files(hypothesis, reference, "13a")
    assert evaluation.bleu.value == pytest.approx(100 * 0.2**0.25)
    assert (evaluation.sentences, evaluation.unspaced) == (1, False)
    assert evaluation.to_dict() == {
        "bleu": evaluation.bleu.value,
        "chrf": evaluation.chrf.value,
        "signature": evaluation.bleu.signature,
        "chrf_signature": evaluation.chrf.signature,
        "sentences": 1,
    }


def test_lines_end_at_line_feeds_alone(file):
    hypothesis, reference = file("h", "a\u0085b\nc\n"), file("r", "a\u2028b\nc")
    assert evaluate_files(hypothesis, reference, "13a").sentences == 2


def test_files_of_different_length(file):
    hypothesis, reference = file("h", "a\nb\n\n"), file("r", "a\nb\n")
    with pytest.raises(DataError) as caught:
        evaluate_files(hypothesis, reference, "13a")
    message = f"{hypothesis} has 3 lines, but {reference} has 2; they must be parallel"
    assert str(caught.value) == message


def test_empty_files(file):
    hypothesis, reference = file("h", ""), file("r", "")
    with pytest.raises(DataError) as caught:
        evaluate_files(hypothesis, reference, "13a")
    assert str(caught.value) == f"{reference} is empty: no lines to score"


@pytest.mark.parametrize(
    ("hypothesis", "tokenize", "unspaced"),
    [
        ("空白のない文がここにあります", "13a", True),
        ("空白のない文がここにあります", "none", True),
        ("空白のない文がここにあります", "char", False),
        ("空白 の ない 文 が ここ に あり ます", "13a", True),  # the reference has none
    ],
)
def test_text_without_spaces_is_noticed(file, hypothesis, tokenize, unspaced):
    reference = file("r", "空白のない文がここにあります\n")
    assert evaluate_files(file("h", hypothesis), reference, tokenize).unspaced is unspaced


def test_split_of_a_run(tmp_path, file):
    file("test.source.txt", "1 2\n\n3\n")
    file("test.target.txt", "a b\n\u3000\nc\n")
    assert read_split(tmp_path, "test") == (["1 2", "", "3"], ["a b", "\u3000", "c"])


def test_unknown_split_names_those_there_are(tmp_path, file):
    run = tmp_path.parent
    with pytest.raises(RunError) as caught:
        read_split(tmp_path, "test")
    assert str(caught.value) == f"{run} has no split 'test'; it carries no test data"
    file("valid.source.txt", "a\n")
    file("test.source.txt", "a\n")
    with pytest.raises(RunError) as caught:
        read_split(tmp_path, "tset")
    assert str(caught.value) == f"{run} has no split 'tset'; there is test and valid"


def test_damaged_split(tmp_path, file):
    source, target = file("test.source.txt", "a\nb\n"), file("test.target.txt", "a\n")
    with pytest.raises(DataError) as caught:
        read_split(tmp_path, "test")
    assert str(caught.value).startswith(f"{source} has 2 lines, but {target} has 1")


class Copier:
    """A translator that gives back the source's ids, at 2.5 computations a step."""

    def __init__(self, source, target):
        self.pipeline = SimpleNamespace(source=source, target=target)

    def n_best(self, lines, count, tally):
        assert count == 1
        tally.add(torch.tensor([5]), torch.tensor([2]), torch.tensor([7]))
        words = [self.pipeline.target.decode_words(self._ids(line)) for line in lines]
        return [[SimpleNamespace(words=found, text=" ".join(found))] for found in words]

    def _ids(self, line):
        return self.pipeline.source.encode(line)


def test_run():
    def side(tokens):
        vocabulary = Vocabulary(tokens, [1] * len(tokens))
        return SidePipeline("xx", build_tokenizer({"name": "none"}), None, vocabulary)

    translator = Copier(side(list("12345")), side(list("abcde")))
    evaluation, lines = evaluate_run(translator, ["1 2 3 4 5", ""], ["a b c d f", "a"])
    assert lines == ["a b c d e", ""]
    # 4/5, 3/4, 2/3 and 1/2 match; five words out against six.
    assert evaluation.bleu.value == pytest.approx(100 * 0.2**0.25 * 2.718281828459045 ** (-1 / 5))
    assert evaluation.bleu.signature.endswith("|segmenter:none")
    assert evaluation.sentences == 2
    assert not evaluation.unspaced
    assert (evaluation.cps, evaluation.encoding_computations) == (2.5, 7)
    assert evaluation.ribes is None


def test_run_by_ribes():
    def side(tokens):
        vocabulary = Vocabulary(tokens, [1] * len(tokens))
        return SidePipeline("xx", build_tokenizer({"name": "none"}), None, vocabulary)

    translator = Copier(side(list("123")), side(list("abc")))
    evaluation, _ = evaluate_run(translator, ["1 2 3", "3 1 2"], ["a b c", "a b c"], ribes=True)
    # In order: 1. "c a b" has one of three pairs rising, and all its words.
    assert evaluation.ribes.value == pytest.approx((1 + 1 / 3) / 2)
    assert evaluation.ribes.signature.endswith("|segmenter:none")
    assert evaluation.to_dict()["ribes"] == evaluation.ribes.value
