"""The command that made a run, from its ``config.json``, without torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nmtflex.errors import OptionError, RunError

# Commands whose runs have no training of their own to resume; the last one that made a run first.
WITHOUT_TRAINING = ("export", "average")


def maker_of(config: Mapping[str, Any]) -> str:
    """Return the command that made a run."""
    for made in WITHOUT_TRAINING:
        if made in config:
            return made
    return "finetune" if "base_run" in config.get("train", {}) else "train"


def check_made_by(path: Path, config: dict[str, Any], command: str) -> None:
    """Check that a run may be resumed by a command.

    Args:
        path: Its folder.
        config: Its ``config.json``.
        command: ``train`` or ``finetune``.

    Raises:
        OptionError: It was made by the other one.
        RunError: It was made by ``nmtflex average`` or ``nmtflex export``.
    """
    made = maker_of(config)
    if made in WITHOUT_TRAINING:
        raise RunError(
            f"{path} was made by nmtflex {made} and has no training to resume; continue "
            f"from it with nmtflex finetune, in another --run"
        )
    if made != command:
        raise OptionError(
            f"{path} was made by nmtflex {made}; resume it with that, or give another --run"
        )
