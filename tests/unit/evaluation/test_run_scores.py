"""A run's scores: in its own words, detokenised where they are Moses', or by the WAT procedure."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from nmtflex.config import ScoreConfig
from nmtflex.errors import DataError, RunError
from nmtflex.evaluation.run_scores import (
    evaluate_run,
    read_split,
    run_bleu,
    run_scorer,
)
from nmtflex.text.pipeline import SidePipeline
from nmtflex.text.tokenizers import build_tokenizer
from nmtflex.text.vocabulary import Vocabulary

TINY_KYTEA = Path(__file__).parents[2] / "fixtures/tiny.kytea"


def side(tokens, **tokenizer):
    vocabulary = Vocabulary(tokens, [1] * len(tokens))
    return SidePipeline("xx", build_tokenizer(tokenizer), None, vocabulary)


def passed(target, line):
    """Return the words of a line that a model has translated to itself."""
    return target.decode_words(target.encode(line))


def test_words_by_hand():
    target = side(list("abcde"), name="none")
    # 4/5 words, 3/4 pairs, 2/3 triples and 1/2 fours match.
    score = run_bleu(target, [passed(target, "a b c d e")], ["a b c  d f"])
    assert score.value == pytest.approx(100 * 0.2**0.25)
    assert "|tok:none|" in score.signature
    assert score.signature.endswith("|segmenter:none")


def test_punctuation_stays_with_its_word():
    target = side(["a", "b", "c", "d", "."], name="none")
    assert run_bleu(target, [passed(target, "a b c d .")], ["a b c d."]).value < 100


def test_unknown_word_is_wrong_even_where_the_reference_has_it_too():
    target = side(["a", "b", "c"], name="none")
    # The unknown words differ: the hypothesis reads "<unk>".
    assert run_bleu(target, [passed(target, "a b c d")], ["a b c d"]).value < 100


def test_characters_with_spaces():
    target = side(["a", "b", "c", "▁"], name="char")
    score = run_bleu(target, [passed(target, "ab c")], ["ab c"])
    assert score.value == 100
    assert score.signature.endswith("|segmenter:char")
    assert run_bleu(target, [passed(target, "abc")], ["ab c"]).value < 100


def test_moses_is_detokenised():
    target = side(["Hello", ",", "world", "!"], name="moses", language="en")
    score = run_bleu(target, [passed(target, "Hello, world!")], ["Hello, world!"])
    assert score.value == 100
    assert "|tok:13a|" in score.signature
    assert "segmenter" not in score.signature


def test_mecab_names_its_dictionary():
    pytest.importorskip("MeCab")
    pytest.importorskip("ipadic")
    line = "東京都に住んでいます"
    target = side([], name="mecab", dictionary="ipadic")
    words = target.words(line)
    target = side(sorted(set(words)), name="mecab", dictionary="ipadic")
    score = run_bleu(target, [passed(target, line)], [line])
    assert score.value == 100
    assert re.search(r"\|tok:none\|.*\|segmenter:mecab-ipadic-[\d.]+$", score.signature)


@pytest.mark.parametrize("name", ["none", "char"])
def test_unequal_counts(name):
    target = side(["a"], name=name)
    message = "the translations has 1 line, but the references has 2"
    with pytest.raises(DataError, match=f"^{message}"):
        run_bleu(target, [["a"]], ["a", "a"])


class Copier:
    """A translator that gives back the source's ids, at 2.5 computations a step."""

    def __init__(self, source, target):
        self.pipeline = SimpleNamespace(source=source, target=target)

    def n_best(self, lines, count, tally):
        assert count == 1
        tally.add(torch.tensor([5]), torch.tensor([2]), torch.tensor([7]))
        target = self.pipeline.target
        words = [target.decode_words(self.pipeline.source.encode(line)) for line in lines]
        return [
            [SimpleNamespace(words=found, text=target.tokenizer.detokenize(found), truncated=False)]
            for found in words
        ]


def scored(source, target, sources, references, **options):
    scorer = run_scorer(target, "test.target.txt", references, ScoreConfig(**options))
    return evaluate_run(Copier(source, target), scorer, sources)


def test_run():
    source, target = side(list("12345"), name="none"), side(list("abcde"), name="none")
    evaluation, output = scored(source, target, ["1 2 3 4 5", ""], ["a b c d f", "a"])
    assert output.lines == ["a b c d e", ""]
    # 4/5, 3/4, 2/3 and 1/2 match; five words out against six.
    assert evaluation.bleu.value == pytest.approx(100 * 0.2**0.25 * 2.718281828459045 ** (-1 / 5))
    assert evaluation.bleu.signature.endswith("|segmenter:none")
    assert evaluation.sentences == 2
    assert (evaluation.cps, evaluation.encoding_computations) == (2.5, 7)
    assert (evaluation.ribes, evaluation.ter) == (None, None)


def test_run_by_ribes_and_ter():
    source, target = side(list("123"), name="none"), side(list("abc"), name="none")
    evaluation, _ = scored(
        source, target, ["1 2 3", "3 1 2"], ["a b c", "a b c"], ribes=True, ter=True
    )
    # In order: 1. "c a b" has one of three pairs rising, and all its words.
    assert evaluation.ribes.value == pytest.approx((1 + 1 / 3) / 2)
    assert evaluation.ter.value == pytest.approx(100 / 6)  # one shift for six words
    assert evaluation.ribes.signature.endswith("|segmenter:none")
    assert evaluation.ter.signature.endswith("|segmenter:none")
    assert evaluation.to_dict()["ribes"] == evaluation.ribes.value


def test_characters_are_the_words_of_every_score():
    source, target = side(list("123"), name="char"), side(list("日本語"), name="char")
    evaluation, _ = scored(source, target, ["123"], ["日語本"], ribes=True, ter=True)
    assert evaluation.ribes.value == pytest.approx(2 / 3)  # two of three pairs rise
    assert evaluation.ter.value == pytest.approx(100 / 3)


def test_moses_run_by_ribes_has_the_words_of_13a():
    target = side(["Hello", ",", "world", "!"], name="moses", language="en")
    source = side(["1", "2", "3", "4"], name="none")
    evaluation, output = scored(source, target, ["1 2 3 4"], ["Hello, world!"], ribes=True)
    assert output.lines == ["Hello, world!"]
    assert evaluation.ribes.value == 1
    assert re.search(r"\|segmenter:13a-sacrebleu-[\d.]+$", evaluation.ribes.signature)


def test_run_by_wat_scores_raw_lines():
    pytest.importorskip("vaporetto")
    source, target = side(["1"], name="none"), side(["彼は東京へ行く。"], name="none")
    options = {"wat": "ja", "kytea_model": TINY_KYTEA}
    evaluation, output = scored(source, target, ["1"], ["彼 は東京へ行く｡ [１]"], **options)
    assert output.words == [["彼", "は", "東京", "へ", "行", "く", "。"]]
    assert "|wat" in evaluation.bleu.signature
    assert "|segmenter:kytea-vaporetto-" in evaluation.ribes.signature
    assert "|model:" in evaluation.ribes.signature
    assert "|case:mixed|" in evaluation.ribes.signature


def test_empty_reference_of_a_run():
    target = side(["a"], name="none")
    with pytest.raises(DataError, match=r"^raw/test\.target\.txt:2: an empty reference"):
        run_scorer(target, "raw/test.target.txt", ["a", " ", ""], ScoreConfig(ribes=True))


@pytest.fixture
def file(tmp_path):
    def write(name, text):
        path = tmp_path / "raw" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode())
        return path

    return write


def test_split_of_a_run(tmp_path, file):
    file("test.source.txt", "1 2\n\n3\n")
    file("test.target.txt", "a b\n\u3000\nc\n")
    assert read_split(tmp_path, "test") == (["1 2", "", "3"], ["a b", "\u3000", "c"])


def test_unknown_split_names_those_there_are(tmp_path, file):
    with pytest.raises(RunError) as caught:
        read_split(tmp_path, "test")
    assert str(caught.value) == f"{tmp_path} has no split 'test'; it has no test data"
    file("valid.source.txt", "a\n")
    file("test.source.txt", "a\n")
    with pytest.raises(RunError) as caught:
        read_split(tmp_path, "tset")
    assert str(caught.value) == f"{tmp_path} has no split 'tset'; there is test and valid"


def test_damaged_split(tmp_path, file):
    source, target = file("test.source.txt", "a\nb\n"), file("test.target.txt", "a\n")
    with pytest.raises(DataError) as caught:
        read_split(tmp_path, "test")
    assert str(caught.value).startswith(f"{source} has 2 lines, but {target} has 1")
