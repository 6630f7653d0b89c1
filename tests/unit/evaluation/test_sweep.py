"""BLEU against computations: which threshold is chosen, and what is written."""

from __future__ import annotations

import csv
import io
import math

import pytest
import sacrebleu
import torch

from nmtflex.attention import Limits
from nmtflex.config import BatchConfig, FlexibleConfig, ModelConfig, SearchConfig
from nmtflex.decoding.tally import Tally
from nmtflex.decoding.translator import Translator
from nmtflex.evaluation.sweep import COLUMNS, Point, as_csv, smallest_within, sweep
from nmtflex.model.build import build_model
from nmtflex.model.seq2seq import Seq2Seq
from nmtflex.scoring.ribes import word_ribes
from nmtflex.text.pipeline import SidePipeline, TextPipeline
from nmtflex.text.tokenizers import NoneTokenizer
from nmtflex.text.vocabulary import Vocabulary

INF = math.inf


def points(*pairs: tuple[float, float]) -> list[Point]:
    return [Point(tau, bleu, None, min(tau, 20.0), 1.0, 10) for tau, bleu in pairs]


@pytest.mark.parametrize(
    ("curve", "loss", "tau"),
    [
        ([(0.2, 10.0), (1.0, 19.6), (2.0, 19.9), (INF, 20.0)], 0.5, 1.0),
        ([(0.2, 10.0), (1.0, 19.5), (INF, 20.0)], 0.5, 1.0),  # exactly so many are allowed
        ([(0.2, 10.0), (1.0, 19.49), (INF, 20.0)], 0.5, INF),
        # Not monotone: the smallest that holds, whatever lies between it and none.
        ([(0.2, 19.6), (0.5, 15.0), (1.0, 20.4), (INF, 20.0)], 0.5, 0.2),
        ([(0.2, 15.0), (0.5, 19.9), (1.0, 15.0), (INF, 20.0)], 0.5, 0.5),
        ([(0.2, 21.0), (INF, 20.0)], 0.0, 0.2),  # better than none
        ([(0.2, 20.0), (0.5, 20.0), (INF, 20.0)], 0.0, 0.2),
        ([(INF, 20.0), (1.0, 19.9), (0.2, 10.0), (0.5, 19.7)], 0.5, 0.5),  # in any order
        ([(INF, 20.0)], 0.5, INF),
        ([(0.0, 0.0), (INF, 0.0)], 0.5, 0.0),
    ],
)
def test_the_smallest_threshold_that_loses_no_more(curve, loss, tau):
    found = smallest_within(points(*curve), loss)
    assert found.tau == tau
    assert found in points(*curve)


@pytest.mark.parametrize(
    ("baseline", "tau"), [(20.4, 0.2), (20.5, 0.2), (20.6, 1.0), (21.5, 1.0), (21.6, None)]
)
def test_another_baseline_than_no_threshold(baseline, tau):
    curve = points((0.2, 20.0), (1.0, 21.0), (INF, 19.0))
    found = smallest_within(curve, 0.5, baseline)
    assert (found and found.tau) == tau


@pytest.mark.parametrize("curve", [[], [(0.2, 10.0), (2.0, 20.0)]])
def test_a_curve_without_a_baseline_is_refused(curve):
    with pytest.raises(ValueError, match="no point has tau = inf"):
        smallest_within(points(*curve), 0.5)


def test_csv_is_read_back_unrounded():
    written = [
        Point(0.1 + 0.2, 100 / 3, 2 / 3, 10 / 7, 1.23456789012345e-05, 500),
        Point(INF, 1e-17, None, 22.0, 3.0, 500),
    ]
    text = as_csv(written)
    assert text.splitlines()[0] == "tau,bleu,ribes,cps,seconds,sentences"
    assert "\r" not in text
    rows = list(csv.DictReader(io.StringIO(text)))
    found = [Point(*(float(row[name]) if row[name] else None for name in COLUMNS)) for row in rows]
    assert found == written


def test_csv_says_of_what_it_is_in_columns_at_the_end():
    assert as_csv([Point(INF, 1.5, None, 22.0, 3.0, 500, 88.0)], ("a, b", "valid", 5)) == (
        "tau,bleu,ribes,cps,seconds,sentences,run,split,beam,cps_total\n"
        'inf,1.5,,22.0,3.0,500,"a, b",valid,5,88.0\n'
    )


def test_csv_of_nothing_is_its_header():
    assert as_csv([]) == ",".join(COLUMNS) + "\n"


@pytest.fixture(scope="module")
def model() -> Seq2Seq:
    torch.manual_seed(1)
    config = ModelConfig.from_flat(
        attention=FlexibleConfig(), embedding_size=5, encoder_size=4, decoder_size=6
    )
    model = build_model(config, 9, 9, 12).double().eval()
    for parameter in model.parameters():
        parameter.data.normal_(std=0.8)
    return model


@pytest.fixture(scope="module")
def translator(model) -> Translator:
    sides = [
        SidePipeline(name, NoneTokenizer(), None, Vocabulary("abcde", [1] * 5)) for name in "xy"
    ]
    search = SearchConfig(beam=2, max_length=8)
    return Translator([model], TextPipeline(*sides), search, BatchConfig())


SOURCES = ["a b c d e a b", "c", "", "b b a e c c"]


@pytest.fixture(scope="module")
def references(translator) -> list[str]:
    """What the model makes of the sources without a threshold, so that BLEU is not 0."""
    return [line or "b" for line in translator.translate(SOURCES)]


@pytest.fixture(scope="module")
def at(translator, model):
    """What translates under a threshold."""
    return lambda tau: translator.decoding([model.limited(Limits(tau))])


def run(at, taus, references):
    """Sweep, and note what was asked for and reported when, the warm-up's threshold first."""
    events = []

    def translator_at(tau):
        events.append(tau)
        return at(tau)

    found = sweep(translator_at, taus, SOURCES, references, events.append)
    return found, events


def test_each_point_is_a_translation_under_its_threshold(at, references):
    taus = [0.05, 0.5, INF]
    found, events = run(at, taus, references)
    assert events == [INF, *(item for pair in zip(taus, found, strict=True) for item in pair)]
    for tau, point in zip(taus, found, strict=True):
        tally = Tally()
        found_words = [best.words for [best] in at(tau).n_best(SOURCES, 1, tally)]
        lines = [" ".join(words) for words in found_words]
        bleu = sacrebleu.corpus_bleu(
            lines, [references], smooth_method="none", tokenize="none", force=True
        ).score
        ribes = word_ribes(found_words, [line.split() for line in references]).value
        assert (point.tau, point.sentences, point.cps) == (tau, 4, tally.cps)
        assert point.bleu == pytest.approx(bleu, abs=1e-9)
        assert point.ribes == pytest.approx(ribes, abs=1e-12)
        assert point.seconds > 0
    assert found[-1].bleu > found[0].bleu > 0
    cps = [point.cps for point in found]
    assert cps == sorted(set(cps))
    assert cps[-1] == pytest.approx((7 + 1 + 6) / 3)


def test_ribes_is_left_out_where_a_reference_has_no_words(at):
    [point], _ = run(at, [INF], ["a b c d", " ", "b", "c"])
    assert point.ribes is None
    assert point.bleu >= 0
