"""What config.json says of the data."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from letters import PAIRS, VALID, make_corpus

from nmtflex.config import GlobalConfig, MemoryConfig, ModelConfig
from nmtflex.training.describe import describe_data

LONGEST = max(len(line.split()) for line in PAIRS)


def test_lengths_and_sizes(corpus):
    letters = {letter for line in PAIRS for letter in line.split()}
    assert describe_data(corpus, None) == {
        "fingerprint": corpus.fingerprint,
        "source_size": 4 + len(letters),
        "target_size": 4 + len(letters),
        "longest_source": LONGEST,
        "mean_valid_source": pytest.approx(sum(len(line.split()) for line in VALID) / len(VALID)),
    }


def test_empty_sources_do_not_count(tmp_path):
    corpus = make_corpus(tmp_path, valid=["", "a b c", "", "a"])
    assert describe_data(corpus, None)["mean_valid_source"] == 2


@pytest.mark.parametrize("valid", [None, ["", ""]])
def test_no_mean_without_validation_sources(tmp_path, valid):
    corpus = make_corpus(tmp_path, valid=valid, targets=PAIRS if valid is None else None)
    assert describe_data(corpus, None)["mean_valid_source"] is None


@pytest.mark.parametrize(
    ("attention", "before", "longest"),
    [
        (GlobalConfig(), 77, 77),
        (GlobalConfig(), 1, LONGEST),
        (MemoryConfig(position_encoding=False), 1, LONGEST),
        (MemoryConfig(), 77, 77),
        (MemoryConfig(), 1, 1),
    ],
)
def test_the_longest_source_that_a_model_has_learned(corpus, attention, before, longest):
    """Of all data, unless weights belong to memory attention's position encodings."""
    base = SimpleNamespace(
        config={"data": {"longest_source": before}},
        model_config=ModelConfig(attention=attention),
    )
    assert describe_data(corpus, base)["longest_source"] == longest
