"""Which weights finetuning changes, and at which rate."""

from __future__ import annotations

import pytest

from nmtflex.config import ModelConfig
from nmtflex.errors import OptionError
from nmtflex.model.build import build_model
from nmtflex.training.trainable import factors_of, trainable


def tied_model():
    config = ModelConfig.from_flat(
        embedding_size=4, encoder_size=3, decoder_size=4, tie_embeddings="target"
    )
    return build_model(config, 9, 9, 5)


def test_tied_weights_go_by_either_name():
    whole = list(tied_model().parameters())
    for pattern in ("output.projection.weight", "target_embedding.weight"):
        model = tied_model()
        left = trainable(model, [pattern])
        assert not model.target_embedding.weight.requires_grad
        assert len(left) == len(set(left)) == len(whole) - 1


def test_the_last_factor_that_matches_counts():
    model = tied_model()
    found = factors_of(model, {"*": 0.5, "encoder.*": 0.25, "output.projection.weight": 2.0})
    for name, weight in model.named_parameters():
        factor = 0.25 if name.startswith("encoder.") else 0.5
        assert found[weight] == (2.0 if weight is model.target_embedding.weight else factor)


def test_a_factor_without_a_trained_weight_is_refused():
    model = tied_model()
    with pytest.raises(OptionError, match=r"--lr-factor 'encode\.\*' .*encoder\.\*"):
        factors_of(model, {"encode.*": 0.5})
    trainable(model, ["encoder.*"])
    trained = {weight for weight in model.parameters() if weight.requires_grad}
    assert factors_of(model, {"*": 0.1}) == dict.fromkeys(trained, 0.1)
    with pytest.raises(OptionError, match=r"--lr-factor 'encoder\.\*' .*--freeze"):
        factors_of(model, {"encoder.*": 0.5})
