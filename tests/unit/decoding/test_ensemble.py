"""Several runs that translate together, against loops of their own."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch

import nmtflex
from nmtflex.config import (
    BatchConfig,
    DeviceConfig,
    FlexibleConfig,
    GlobalConfig,
    MemoryConfig,
    NoneConfig,
    SearchConfig,
    ThresholdConfig,
)
from nmtflex.decoding.opening import open_ensemble
from nmtflex.decoding.tally import Tally
from nmtflex.errors import OptionError
from nmtflex.runs.opening import load_run
from nmtflex.text.vocabulary import BOS_ID, EOS_ID, Vocabulary

CPU = {"device": "cpu", "threads": 1, "dtype": "float64"}
LINES = ["a b c", "", "h g f e d c b a", "? a", "c c c c c"]


def opened(paths: list[Path], tau: str | None = None, **search: object):
    return open_ensemble(
        paths, SearchConfig(**search), ThresholdConfig(tau=tau), BatchConfig(), DeviceConfig(**CPU)
    )


@pytest.fixture
def two(make_tiny_run) -> list[Path]:
    """Runs of different weights and mechanisms."""
    return [make_tiny_run("one", GlobalConfig()), make_tiny_run("two", FlexibleConfig(), seed=2)]


def greedy(models, source: list[int], longest: int) -> tuple[list[int], float]:
    """Take the word of the greatest mean probability, one sentence, one step at a time."""
    lengths = torch.tensor([len(source)])
    encoded = [model.encode(torch.tensor([source]), lengths) for model in models]
    memories, states = map(list, zip(*encoded, strict=True))
    ids: list[int] = []
    total, word = 0.0, BOS_ID
    while len(ids) < longest:
        mean = torch.zeros(models[0].target_size, dtype=torch.float64)
        for at, model in enumerate(models):
            step = model.step(memories[at], torch.tensor([0]), states[at], torch.tensor([word]))
            states[at] = step.state
            mean += model.log_probs(step.output)[0].exp() / len(models)
        mean[[0, BOS_ID]] = 0  # no search writes these
        word = int(mean.argmax())
        total += math.log(mean[word])
        if word == EOS_ID:
            break
        ids.append(word)
    return ids, total


@torch.inference_mode()
def test_the_probabilities_are_averaged(two) -> None:
    models = [load_run(path, DeviceConfig(**CPU)).model for path in two]
    translator = opened(two, beam=1, max_length=15).translator
    sources = [translator.pipeline.source.encode(line) for line in LINES if line]
    for source, [found] in zip(sources, translator.translate_ids(sources), strict=True):
        ids, log_probability = greedy(models, source, 15)
        assert list(found.ids) == ids
        if len(ids) < 15:  # where the search cut it off, it counts no end
            assert found.log_probability == pytest.approx(log_probability, rel=1e-12)
    alone = [nmtflex.load(path, beam=1, max_length=15, **CPU).translate(LINES) for path in two]
    assert translator.translate(LINES) not in alone  # it is not one of them


def test_a_run_with_itself_is_that_run(two) -> None:
    alone = nmtflex.load(two[1], **CPU).n_best(LINES, 5)
    together = nmtflex.load([two[1], str(two[1])], **CPU).n_best(LINES, 5)
    for ours, theirs in zip(together, alone, strict=True):
        assert [one.text for one in ours] == [one.text for one in theirs]
        assert [one.score for one in ours] == pytest.approx([one.score for one in theirs])


def test_a_list_of_one_is_that_run(two) -> None:
    assert nmtflex.load(two[:1], **CPU).translate(LINES) == nmtflex.load(two[0], **CPU).translate(
        LINES
    )


def test_traces_are_the_first_run_s_and_computations_the_sum(two) -> None:
    for paths in (two, two[::-1]):
        translator = opened(paths).translator
        tally = Tally()
        [[best]] = translator.n_best(LINES[:1], 1, tally, trace=True)
        [alone] = opened(paths[:1]).translator.traces(LINES[:1], [best])
        assert best.trace is not None
        assert alone is not None
        assert (best.trace.weights == alone.weights).all()
        assert (best.trace.gate is None) == (paths[0] == two[0])
        assert tally.cps == 3 + 3  # three words, and nothing left out


def test_each_line_needs_its_translation(two) -> None:
    translator = opened(two).translator
    for method in (translator.traces, translator.word_features):
        with pytest.raises(ValueError, match=f"are {len(LINES)} lines, and 0 "):
            method(LINES, [])


def test_a_threshold_is_for_those_with_a_penalty(two) -> None:
    tally = Tally()
    found = opened(two, tau="0")
    found.translator.n_best(LINES[:1], 1, tally)
    assert found.tau == 0
    assert tally.cps == 3 + 1
    assert opened(two, tau="auto").tau == pytest.approx(math.log10(4))


def test_a_threshold_for_none_of_them(two) -> None:
    with pytest.raises(OptionError, match=r"--tau 0\.5 needs a run with flexible attention"):
        opened([two[0], two[0]], tau="0.5")


def test_unknown_words_are_replaced_by_what_the_first_run_looked_at(make_tiny_run) -> None:
    runs = [make_tiny_run("none", NoneConfig()), make_tiny_run("memory", MemoryConfig(K=3))]
    with pytest.raises(OptionError, match=f"--replace-unk needs .*{runs[0]} has --attention none"):
        opened(runs, replace_unk=True)
    opened(runs[::-1], replace_unk=True)


def test_no_run_at_all() -> None:
    with pytest.raises(OptionError, match="load: there is no run in the list"):
        nmtflex.load([])


def other_vocabulary(run: Path) -> None:
    Vocabulary(list("abcdefgi"), [1] * 8).save(run / "pipeline" / "source.vocabulary")


def described(run: Path, side: str, **values: object) -> None:
    path = run / "pipeline" / "pipeline.json"
    description = json.loads(path.read_text())
    description[side] |= values
    path.write_text(json.dumps(description))


def other_bpe(run: Path) -> None:
    described(run, "target", bpe=1)
    (run / "pipeline" / "target.codes").write_text("#version: 0.2\nA B</w>\n")


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (other_vocabulary, "source vocabulary"),
        (lambda run: described(run, "target", language="cc"), "target language"),
        (lambda run: described(run, "source", tokenizer={"name": "char"}), "source tokenizer"),
        (other_bpe, "target BPE"),
    ],
)
def test_runs_that_do_not_go_together(two, change, what) -> None:
    change(two[1])
    message = f"{two[1]} has another {what} than {two[0]}, .* --like {two[0]}$"
    with pytest.raises(OptionError, match=message):
        opened(two)
