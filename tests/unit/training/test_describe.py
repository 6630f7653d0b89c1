"""What config.json says of the data."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from letters import PAIRS, VALID, make_corpus

from nmtflex.training.describe import describe_data


def test_lengths_and_sizes(corpus):
    letters = {letter for line in PAIRS for letter in line.split()}
    assert describe_data(corpus, None) == {
        "fingerprint": corpus.fingerprint,
        "source_size": 4 + len(letters),
        "target_size": 4 + len(letters),
        "longest_source": max(len(line.split()) for line in PAIRS),
        "mean_valid_source": pytest.approx(sum(len(line.split()) for line in VALID) / len(VALID)),
    }


def test_empty_sources_do_not_count(tmp_path):
    corpus = make_corpus(tmp_path, valid=["", "a b c", "", "a"])
    assert describe_data(corpus, None)["mean_valid_source"] == 2


@pytest.mark.parametrize("valid", [None, ["", ""]])
def test_no_mean_without_validation_sources(tmp_path, valid):
    corpus = make_corpus(tmp_path, valid=valid, targets=PAIRS if valid is None else None)
    assert describe_data(corpus, None)["mean_valid_source"] is None


def test_the_longest_source_is_that_of_the_base_runs_weights(corpus):
    base = SimpleNamespace(config={"data": {"longest_source": 77}})
    assert describe_data(corpus, base)["longest_source"] == 77
