"""Calls with options of their own: what they give is what a translator loaded with them gives."""

from __future__ import annotations

import itertools
import json
import typing
import warnings
from collections.abc import Mapping

import pytest

import nmtflex
from nmtflex.config import (
    BatchConfig,
    FlexibleConfig,
    GlobalConfig,
    SearchConfig,
    ThresholdConfig,
    options_of,
)
from nmtflex.decoding.options import AT_LOADING
from nmtflex.decoding.tally import Tally
from nmtflex.errors import OptionError

LINES = ["a b c", "", "c a b b", "h", "z a", "g f e d c b a"]
PLAIN = {"device": "cpu", "threads": 1, "dtype": "float64"}
OPTIONS = [
    {"beam": 1},
    {"beam": 7, "length_penalty": 0.3},
    {"no_repeat_ngram": 1},
    {"retry_loops": True, "max_length": 60},
    {"max_length": 3},
    {"max_length_ratio": 0.5},
    {"replace_unk": True},
    {"unk": "UNK"},
    {"tau": 0.6},
    {"tau": "auto", "beam": 2},
    {"tau": "inf"},
    {"batch_sentences": 1},
]
ids = [str(options) for options in OPTIONS]


@pytest.fixture
def run(make_tiny_run):
    return make_tiny_run("flexible", FlexibleConfig())


@pytest.fixture
def translator(run):
    return nmtflex.load(run, **PLAIN)


def texts(translator, lines, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # random models may end at the maximum length
        return translator.translate(lines, **options)


def same(found, wanted):
    """Compare translations of lines; in another batch, sums differ in their last bits."""
    for many, others in zip(found, wanted, strict=True):
        for one, other in zip(many, others, strict=True):
            numbers, expected = (
                [each.score, each.log_probability, *each.log_probabilities] for each in (one, other)
            )
            assert numbers == pytest.approx(expected, rel=1e-9)
            bare = {"score": 0, "log_probability": 0, "log_probabilities": (), "trace": None}
            assert one._replace(**bare) == other._replace(**bare)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("options", OPTIONS, ids=ids)
def test_options_of_a_call_are_those_of_loading(run, translator, options):
    loaded, plain = nmtflex.load(run, **PLAIN, **options), translator.n_best(LINES, 2)
    same(translator.translate_batch(LINES, n_best=2, **options), loaded.n_best(LINES, 2))
    assert texts(translator, LINES, **options) == texts(loaded, LINES)
    same(zip(translator.stream(LINES, **options), strict=True), loaded.n_best(LINES, 1))
    same(translator.n_best(LINES, 2), plain)  # the next call has the options of loading again


def test_a_threshold_of_a_call_computes_fewer_scores(translator):
    counted = {}
    for tau in (0.2, 1.0, "inf"):
        tally = Tally()
        translator.translate_batch(LINES, tally=tally, tau=tau)
        counted[tau] = tally.cps
    assert counted[0.2] < counted[1.0] < counted["inf"]


def test_options_of_a_call_go_before_those_of_loading(run):
    translator = nmtflex.load(run, **PLAIN, beam=3, tau=0.3, max_length_ratio=0.5)
    assert texts(translator, LINES, max_length=4, tau="inf") == texts(
        nmtflex.load(run, **PLAIN, beam=3, max_length=4), LINES
    )
    assert texts(translator, LINES, beam=None, tau=None) == texts(translator, LINES)


def test_an_ensemble_takes_them_too(make_tiny_run):
    runs = make_tiny_run("one", GlobalConfig()), make_tiny_run("two", FlexibleConfig(), seed=2)
    given = {"tau": 0.4, "beam": 3, "max_length": 9}
    ensemble = nmtflex.load(runs, **PLAIN)
    loaded = nmtflex.load(runs, **PLAIN, **given)
    same(ensemble.translate_batch(LINES, 3, **given), loaded.n_best(LINES, 3))


def test_each_line_has_its_own(translator):
    each = [*OPTIONS[:4], {"n_best": 3, "align": True, "beam": 4}, {"max_length": 5, "trace": True}]
    found = translator.translate_batch(LINES, each=each, beam=2)
    for line, options, result in zip(LINES, each, found, strict=True):
        same([result], translator.translate_batch([line], **{"beam": 2, **options}))
    assert [len(result) for result in found] == [1, 1, 1, 1, 3, 1]
    assert found[4][0].attended
    assert found[5][0].trace is not None
    assert found[4][0].trace is None


@pytest.mark.parametrize("lengths", [[1, 2, 3, 4, 5, 6], [40, 0, 1, 0, 2, 40]])
def test_lines_of_other_maximum_lengths_are_decoded_together(translator, monkeypatch, lengths):
    calls = []
    plain = type(translator).n_best
    monkeypatch.setattr(
        "nmtflex.decoding.translator.Translator.n_best",
        lambda self, lines, *a, **b: calls.append(len(lines)) or plain(self, lines, *a, **b),
    )
    each = [{"max_length": length} for length in lengths]
    found = translator.translate_batch(LINES, each=each)
    assert len(calls) == len({bool(length) for length in lengths})
    for line, length, (best,) in zip(LINES, lengths, found, strict=True):
        assert not length or len(best.tokens) <= length
        same([[best]], translator.translate_batch([line], max_length=length))


def test_terms_are_a_dictionary_or_a_glossary(translator, monkeypatch):
    terms = {"c": "f g", "h": "e"}
    wanted = translator.translate_batch(LINES, glossary=nmtflex.Glossary(terms))
    assert "f g" in wanted[0][0].text
    same(translator.translate_batch(LINES, glossary=terms), wanted)
    calls = []
    plain = type(translator).n_best
    monkeypatch.setattr(
        "nmtflex.decoding.translator.Translator.n_best",
        lambda self, lines, *a, **b: calls.append(len(lines)) or plain(self, lines, *a, **b),
    )
    same(translator.translate_batch(LINES, each=[{"glossary": dict(terms)} for _ in LINES]), wanted)
    assert calls == [len(LINES)]  # those of equal terms are decoded together


def test_results_are_plain_values(translator):
    [found] = translator.translate_batch(["a z b"], n_best=3, trace=True, align=True)
    assert len(found) == 3
    for one in found:
        again = json.loads(json.dumps(one.to_dict()))
        assert again.keys() == set(one._fields)
        assert (again["text"], again["score"]) == (one.text, one.score)
        assert again["attended"] == list(one.attended)
        assert len(again["attended"]) == len(one.words)
    trace = json.loads(json.dumps(found[0].to_dict()))["trace"]
    assert len(trace["weights"]) == len(found[0].tokens) + 1
    assert len(trace["weights"][0]) == 3


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda t: t.translate(LINES, beem=3), ["translate:", "'beem'", "beam"]),
        (lambda t: t.translate(LINES, beam=0), ["--beam", "1", "0"]),
        (lambda t: t.translate(LINES, beam="3"), ["'beam'", "'3'"]),
        (lambda t: t.translate(LINES, n_best=3), ["translate:", "'n_best'"]),
        (lambda t: t.translate(LINES, tau=-1), ["--tau", "'-1'"]),
        (lambda t: t.translate(LINES, unk="a b"), ["--unk", "'a b'"]),
        (lambda t: t.translate(LINES, max_length=3, max_length_ratio=2.0), ["--max-length 3"]),
        (lambda t: t.translate(LINES, reuse_below=0.5), ["--reuse-below 0.5", "gate"]),
        (lambda t: t.translate(LINES, int8=True), ["translate:", "int8", "nmtflex.load"]),
        (lambda t: t.translate(LINES, max_source_length=9), ["max_source_length", "load"]),
        (lambda t: t.translate_batch(LINES, n_best=0), ["--n-best", "1", "0"]),
        (lambda t: t.translate_batch(LINES, each=[{"taw": 1}] * 6), ["'taw'", "tau"]),
        (lambda t: t.translate_batch(LINES, each=[{"trace": "yes"}] * 6), ["'trace'", "'yes'"]),
        (lambda t: t.translate(LINES, glossary="terms.tsv"), ["'glossary'", "'terms.tsv'", "read"]),
        (lambda t: t.stream(LINES, buffer=0), ["--buffer", "1", "0"]),
        (lambda t: t.stream(LINES, beem=0), ["stream:", "'beem'", "beam"]),
        (lambda t: t.stream(LINES, n_best=2), ["stream:", "'n_best'"]),
    ],
)
def test_wrong_options_are_named(translator, call, named):
    with pytest.raises(OptionError) as caught:
        call(translator)
    assert [word for word in named if word not in str(caught.value)] == []


def test_a_run_without_a_penalty_takes_no_threshold(tiny_run):
    with pytest.raises(OptionError, match=r"--tau 1\.5 needs flexible attention"):
        nmtflex.load(tiny_run, **PLAIN).translate(LINES, tau=1.5)


def test_a_line_without_options_has_those_of_the_call(translator):
    plain = translator.translate_batch(LINES, beam=2)
    same(translator.translate_batch(LINES, each=[None] * 6, beam=2), plain)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda t: t.translate_batch(["a", "b"], each=[{}, 3]), ["line 1", "int"]),
        (lambda t: t.translate_batch(["a"], each=["n_best"]), ["line 0", "str"]),
        (lambda t: t.align([("a", "A"), ("b",)]), ["pair 1", "('b',)"]),
        (lambda t: t.align([("a", "A", "B")]), ["pair 0", "('a', 'A', 'B')"]),
        (lambda t: t.align(["ab"]), ["pair 0", "'ab'"]),
        (lambda t: t.align([3]), ["pair 0", "3"]),
        (lambda t: t.align([("a", b"A")]), ["pair 0", "b'A'"]),
    ],
)
def test_what_is_of_another_kind_is_named(translator, call, named):
    with pytest.raises(TypeError) as caught:
        call(translator)
    assert [word for word in named if word not in str(caught.value)] == []


def test_options_for_too_few_lines(translator):
    with pytest.raises(ValueError, match="6 lines, and options for 2"):
        translator.translate_batch(LINES, each=[{}, {}])


def test_a_split_line_has_the_maximum_length_for_each_sentence(run):
    translator = nmtflex.load(run, **PLAIN, split="sentences")
    line = "a b c! A b e! H g!"
    [[best]] = translator.translate_batch([line], each=[{"max_length": 2}])
    assert len(best.units) == 3
    assert all(len(text.split()) <= 2 for _, text in best.units)
    assert len(best.tokens) <= 6


def test_every_option_of_a_call_has_its_type():
    """Type checkers and editors see the options that a call takes, and no others."""
    hints = typing.get_type_hints(nmtflex.CallOptions)
    wanted = {}
    for group in (SearchConfig, ThresholdConfig, BatchConfig):
        wanted |= {name: plain for name, (plain, _) in options_of(group).items()}
    assert hints.keys() == wanted.keys() - set(AT_LOADING) | {"word_scores", "glossary", "prefix"}
    hints["tau"] = str | None  # a number as well
    assert hints.pop("word_scores") == bool | None  # of what a call returns
    assert hints.pop("glossary") == nmtflex.Glossary | Mapping[str, str] | None
    assert hints.pop("prefix") == str | None
    for name, hint in hints.items():
        assert hint == wanted[name] | None, name


def test_a_stream_reads_no_further_than_its_buffer(translator):
    read = []

    def endless():
        for number in itertools.count():
            read.append(number)
            yield LINES[number % len(LINES)]

    stream = translator.stream(endless(), buffer=4)
    assert read == []
    found = []
    for count in range(1, 10):
        found.append(next(stream))
        assert len(read) == -(-count // 4) * 4
    same(zip(found, strict=True), translator.n_best((LINES * 2)[:9], 1))


def test_a_stream_answers_each_line_at_once_without_a_buffer(translator):
    """As in a conversation: the next line is written after the answer was read."""
    answers = []

    def lines():
        yield "a b c"
        assert len(answers) == 1
        yield "h"
        assert len(answers) == 2

    answers.extend(one.text for one in translator.stream(lines(), buffer=1))
    assert answers == texts(translator, ["a b c", "h"])


@pytest.mark.parametrize("fault", [OSError("the disk is gone"), KeyError("x")])
def test_what_came_before_a_fault_of_reading_is_translated(translator, fault):
    def lines():
        yield from LINES[:3]
        raise fault

    found = []
    with pytest.raises(type(fault)):
        found.extend(one.text for one in translator.stream(lines(), buffer=2))
    assert found == texts(translator, LINES[:3])


def test_a_stream_of_what_is_no_line(translator):
    with pytest.raises(TypeError, match="not one string"):
        translator.stream("a b")
    with pytest.raises(TypeError, match=r"line 5 .*int"):
        list(translator.stream([*LINES[:5], 7], buffer=2))


def test_what_attention_looked_at_in_a_stream(translator):
    for best in translator.stream(LINES, buffer=4, trace=True, align=True):
        assert (best.trace is None) == (not best.tokens and best.score == 0)
        assert len(best.attended) == len(best.words)
