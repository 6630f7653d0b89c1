"""``--preset``: option files that come with the package."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from nmtflex.cli.config_file import Fields, Origin, keyword, read_toml, remember

FOLDER = Path(__file__).parents[1] / "presets"


def preset_names() -> tuple[str, ...]:
    """Return the names of the presets."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


def read_preset(name: str, fields: Fields) -> dict[str, Any]:
    """Return the options of a preset, as flags set them."""
    return read_toml(FOLDER / f"{name}.toml", fields)


def preset_parameter(fields: Fields) -> inspect.Parameter:
    """Make ``--preset``, which uses the values of such a file as defaults of a command.

    Args:
        fields: What the file may contain.
    """

    def read(context: typer.Context, name: str | None) -> str | None:
        if name is not None and not context.resilient_parsing:
            remember(context, Origin.PRESET, read_preset(name, fields))
        return name

    names: Any = Literal[preset_names()] | None
    info = typer.Option(
        "--preset",
        help="Options of model and training under one name: tiny and base are transformers with "
        "an SSRU decoder, of 256 and 512 units; small is one for 30,000 to 200,000 pairs; "
        "yardstick is the recurrent model of the speed comparisons. Flags and --config override "
        "them; --print-config shows them.",
        is_eager=True,
        callback=read,
    )
    return keyword("preset", Annotated[names, info], None)
