"""``nmtflex serve``: translation over HTTP."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Annotated

import typer

from nmtflex.cli.app import app
from nmtflex.cli.bind import command
from nmtflex.cli.console import note
from nmtflex.config import AccessConfig, Decoding, LimitConfig, ServeConfig
from nmtflex.errors import OptionError

NEEDED = ("fastapi", "fastapi_swagger", "iso639", "prometheus_client", "py3langid", "uvicorn")


@command(app, "serve")
def serve(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Run folders from nmtflex train, one a direction; several of one direction form "
            "an ensemble.",
            metavar="RUNS",
        ),
    ],
    config: ServeConfig,
    limits: LimitConfig,
    access: AccessConfig,
    decoding: Decoding,
) -> None:
    """Translate over HTTP, with LibreTranslate's API and a page at /.

    Texts may have any length: they are split into sentences, and white space is kept. Where no run
    leads from one language to another, the translation goes through others. Sentences of all
    requests are translated together.

    /docs describes the API. SIGTERM and Ctrl-C end the server after it has answered the requests
    that it has begun.
    """
    _check_installed()
    from nmtflex.serving.server import Plan, serve

    serve(runs, Plan(config, limits, access, decoding), note)


def _check_installed() -> None:
    """Check that the extra of the server is installed.

    Raises:
        OptionError: It is not.
    """
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise OptionError(
            f"nmtflex serve needs {', '.join(missing)}; install it with: pip install "
            f"'nmtflex[serve]'"
        )
