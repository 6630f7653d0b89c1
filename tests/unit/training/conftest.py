"""A model, batches for it, and a prepared corpus."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from letters import LENGTHS, make_corpus, small_model

from nmtflex.corpus.batches import Batches
from nmtflex.corpus.store import PreparedCorpus, StoreWriter, TokenStore
from nmtflex.model.build import build_model
from nmtflex.model.seq2seq import Seq2Seq


@pytest.fixture
def batches(tmp_path: Path) -> Batches:
    """Return batches over pairs with as many tokens on both sides."""
    draw = np.random.default_rng(1)
    stores = []
    for side in ("source", "target"):
        with StoreWriter(tmp_path / side, "<u2") as writer:
            for length in LENGTHS:
                writer.append(draw.integers(4, 20, length), [length])
        stores.append(TokenStore(tmp_path / side, "<u2", 20))
    return Batches(*stores, tokens=64)


@pytest.fixture
def model() -> Seq2Seq:
    """Return a model for these batches."""
    torch.manual_seed(2)
    return build_model(small_model(), 20, 20, 8).double()


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> PreparedCorpus:
    """Return the corpus of ``letters``."""
    return make_corpus(tmp_path_factory.mktemp("letters"))


@pytest.fixture
def data(corpus: PreparedCorpus) -> Path:
    """Return its folder."""
    return corpus.folder
