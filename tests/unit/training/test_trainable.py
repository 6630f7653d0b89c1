"""Which weights finetuning changes."""

from __future__ import annotations

from nmtflex.config import ModelConfig
from nmtflex.model.build import build_model
from nmtflex.training.trainable import trainable


def test_tied_weights_go_by_either_name():
    config = ModelConfig.from_flat(
        embedding_size=4, encoder_size=3, decoder_size=4, tie_embeddings="target"
    )
    whole = list(build_model(config, 9, 9, 5).parameters())
    for pattern in ("output.projection.weight", "target_embedding.weight"):
        model = build_model(config, 9, 9, 5)
        left = trainable(model, [pattern])
        assert not model.target_embedding.weight.requires_grad
        assert len(left) == len(set(left)) == len(whole) - 1
