"""The page: one HTML file with its style, scripts and data, which uses no network."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from typing import Any

from nmtflex.errors import OptionError

# In page order: a later style wins, a script uses earlier ones.
STYLES = (
    "colours.css", "base.css", "tables.css", "controls.css",
    "explorer.css", "matrix.css", "print.css",
)  # fmt: skip
HEAD_SCRIPTS = ("namespace.js", "theme.js")  # before the first paint
SCRIPTS = (
    "dom.js", "text.js", "colours.js", "controls.js", "charts.js",
    "scores.js", "settings.js", "learning.js", "tradeoff.js", "lengths.js",
    "trace.js", "orders.js", "sentences.js", "hypotheses.js", "steps.js", "strip.js",
    "views.js", "sides.js", "sizes.js", "cells.js", "matrix.js", "stepinfo.js", "panel.js",
    "permalink.js", "explorer.js", "main.js",
)  # fmt: skip
PLACE = re.compile(r"{{(\w+)}}")

# Characters that could end a script element, begin a comment in it, or end a line of JavaScript; in
# JSON they occur only in strings. Surrogates come from file names that are not UTF-8.
UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def check_plotly() -> None:
    """Check that a page's charts can be drawn.

    Raises:
        OptionError: plotly is not installed.
    """
    try:
        import plotly as _  # type: ignore[import-untyped]  # noqa: F401
    except ImportError as error:
        raise OptionError("reports need plotly; install it with: pip install plotly") from error


def render(report: Mapping[str, Any], traces: Iterable[str]) -> Iterator[str]:
    """Yield a page, piece by piece.

    Args:
        report: The data of the page, from ``collect``; numbers that are not finite become null.
        traces: What attention looked at: one JSON text a sentence of ``report``, read lazily.

    Raises:
        OptionError: plotly is not installed.
    """
    check_plotly()
    style, head_script, script = _joined(STYLES), _joined(HEAD_SCRIPTS), _joined(SCRIPTS)
    plotly = _plotly()
    parts: dict[str, Iterable[str]] = {
        "policy": [_policy(scripts=[head_script, script, plotly], style=style)],
        "title": [html.escape(UNSAFE.sub(_replaced, str(report["title"])))],
        "style": [style],
        "head_script": [head_script],
        "report": [inert(json.dumps(_finite(report), ensure_ascii=False))],
        "traces": _lines(traces),
        "plotly": [plotly],
        "script": [script],
    }
    for number, text in enumerate(PLACE.split(_asset("page.html"))):
        if number % 2:
            yield from parts[text]
        else:
            yield text


def inert(text: str) -> str:
    r"""Return equivalent JSON without anything that HTML or JavaScript would interpret.

    >>> inert('"</script>"')
    '"\\u003c/script\\u003e"'
    """
    return UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _replaced(found: re.Match[str]) -> str:
    """Return U+FFFD for a surrogate, and everything else unchanged."""
    return "\ufffd" if "\ud800" <= found[0] <= "\udfff" else found[0]


def _lines(traces: Iterable[str]) -> Iterator[str]:
    """Yield one line a trace; a line feed inside JSON is only white space."""
    for number, trace in enumerate(traces):
        yield ("\n" if number else "") + inert(trace).strip().replace("\n", " ")


def _finite(value: Any) -> Any:
    """Return a value with null for numbers that JSON lacks, such as a loss that overflowed."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return value


def _policy(scripts: Iterable[str], style: str) -> str:
    """Return the page's content security policy: only its own scripts and styles may run.

    The empty style is Plotly's, which adds rules to an empty element from its script.
    """
    return "; ".join([
        "default-src 'none'",
        f"script-src {' '.join(map(_source, scripts))}",
        f"style-src {_source(style)} {_source('')}",
        "img-src data: blob:",
        "connect-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
    ])


def _source(text: str) -> str:
    """Return a policy's source for an inline text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _asset(name: str) -> str:
    """Return an asset of the page."""
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def _joined(names: Iterable[str]) -> str:
    """Return several assets as one text, each after its name."""
    return "".join(f"\n/* {name} */\n{_asset(name)}" for name in names)


def _plotly() -> str:
    """Return Plotly's script with the line ends of an HTML parser."""
    from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

    script: str = get_plotlyjs()
    return script.replace("\r\n", "\n").replace("\r", "\n")
