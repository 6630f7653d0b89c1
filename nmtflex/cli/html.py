"""``nmtflex translate --html``: an HTML document in, the same document translated out."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from nmtflex.cli.console import note
from nmtflex.config import OutputConfig
from nmtflex.errors import OptionError

if TYPE_CHECKING:
    from nmtflex.decoding.opening import Opened
    from nmtflex.ranks import Ranks
    from nmtflex.text.glossary import Glossary


def translate_page(
    opened: Opened,
    lines: Iterable[str],
    output: Path | None,
    written: OutputConfig,
    glossary: Glossary | None,
    ranks: Ranks,
) -> None:
    """Translate a document, and write it when it is complete.

    Args:
        opened: Runs that split texts into sentences.
        lines: Of the document.
        output: File; None is standard output.
        written: Has ``html_attributes``.
        glossary: Terms that come out as given.
        ranks: The processes, of which there must be one.

    Raises:
        OptionError: There are several processes.
    """
    from nmtflex.corpus.writers import open_lines
    from nmtflex.decoding.html import translate_html

    if not ranks.alone:
        raise OptionError("--html cannot be combined with several processes; start one")
    html = "".join(f"{line}\n" for line in lines)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        found = translate_html(opened.translator, html, written.html_attributes, glossary)
    for warning in caught:
        note(f"warning: {warning.message}")
    with open_lines(output) as file:
        file.write(found.encode())
        if not found.endswith("\n"):
            file.write(b"\n")
