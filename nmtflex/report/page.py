"""The page: one HTML file that holds its style, its scripts and its data, and asks no network."""

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

# In the order in which they stand in the page: a later style wins, a script uses earlier ones.
STYLES = (
    "colours.css",
    "base.css",
    "tables.css",
    "controls.css",
    "explorer.css",
    "matrix.css",
    "print.css",
)
HEAD_SCRIPTS = ("namespace.js", "theme.js")  # before the first paint
SCRIPTS = (
    "dom.js",
    "text.js",
    "colours.js",
    "controls.js",
    "charts.js",
    "scores.js",
    "settings.js",
    "learning.js",
    "tradeoff.js",
    "lengths.js",
    "trace.js",
    "orders.js",
    "sentences.js",
    "hypotheses.js",
    "steps.js",
    "strip.js",
    "views.js",
    "sides.js",
    "sizes.js",
    "cells.js",
    "matrix.js",
    "stepinfo.js",
    "panel.js",
    "permalink.js",
    "explorer.js",
    "main.js",
)
PLACE = re.compile(r"{{(\w+)}}")

# What could end a script element, begin a comment in it, or end a line of JavaScript; in JSON these
# stand in strings alone. Surrogates come from file names that are no UTF-8; no file can hold them.
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
    """Write a page, piece by piece.

    Args:
        report: What the page shows, as ``collect`` returns it; numbers that are not finite become
            null.
        traces: What attention looked at: a JSON text a sentence of ``report``, read when its turn
            comes.

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
    r"""Return JSON that says the same and holds nothing that HTML or JavaScript would obey.

    >>> inert('"</script>"')
    '"\\u003c/script\\u003e"'
    """
    return UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _replaced(found: re.Match[str]) -> str:
    """Return U+FFFD for what no file can hold, and everything else as it is."""
    return "\ufffd" if "\ud800" <= found[0] <= "\udfff" else found[0]


def _lines(traces: Iterable[str]) -> Iterator[str]:
    """Return a line a trace; a line feed inside JSON is mere space."""
    for number, trace in enumerate(traces):
        yield ("\n" if number else "") + inert(trace).strip().replace("\n", " ")


def _finite(value: Any) -> Any:
    """Return a value with null for what JSON has no number for, as a loss that overflowed."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return value


def _policy(scripts: Iterable[str], style: str) -> str:
    """Return the page's content security policy: what it holds may run, and nothing else.

    The empty style is Plotly's, which makes an element without text and adds rules from its script.
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
    """Return what a policy calls an inline text by."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _asset(name: str) -> str:
    """Return an asset of the page."""
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def _joined(names: Iterable[str]) -> str:
    """Return several assets as one, each after its name."""
    return "".join(f"\n/* {name} */\n{_asset(name)}" for name in names)


def _plotly() -> str:
    """Return Plotly's script as an HTML parser will return it."""
    from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

    script: str = get_plotlyjs()
    return script.replace("\r\n", "\n").replace("\r", "\n")
