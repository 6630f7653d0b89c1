"""Conversion of the ``config.json`` of older runs to the current format."""

from __future__ import annotations

from typing import Any

from nmtflex.config.base import RUN_FORMAT, options_of
from nmtflex.config.decoder import DecoderConfig
from nmtflex.config.encoder import EncoderConfig, RecurrentEncoderConfig


def upgraded(config: dict[str, Any]) -> dict[str, Any]:
    """Return a run's ``config.json`` in the current format.

    Format 1 had only the recurrent encoder, and kept encoder and decoder options with the model's.

    Raises:
        KeyError: The model's options are missing.
        TypeError: They are not a dictionary.
    """
    if config["format"] >= RUN_FORMAT:
        return config
    model = dict(config["model"])
    kind = model.pop("decoder", "")
    parts = RecurrentEncoderConfig, DecoderConfig.variants().get(kind, DecoderConfig)
    own = [{key: model[key] for key in options_of(part) if key in model} for part in parts]
    moved = {"encoder": {"kind": "recurrent", **own[0]}, "decoder": {"kind": kind, **own[1]}}
    others = EncoderConfig.owners() | DecoderConfig.owners()
    kept = {name: value for name, value in model.items() if name not in others}
    return config | {"format": RUN_FORMAT, "model": kept | moved}
