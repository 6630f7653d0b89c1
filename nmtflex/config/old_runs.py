"""The ``config.json`` of runs that earlier versions made, in the form of today."""

from __future__ import annotations

from typing import Any

from nmtflex.config.base import RUN_FORMAT, options_of
from nmtflex.config.decoder import DecoderConfig
from nmtflex.config.encoder import EncoderConfig, RecurrentEncoderConfig


def upgraded(config: dict[str, Any]) -> dict[str, Any]:
    """Return a run's ``config.json`` in today's format.

    Format 1 had one recurrent encoder, and the options of encoder and decoders among the model's.

    Raises:
        KeyError: There are no options of a model.
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
