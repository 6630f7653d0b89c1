"""Neural machine translation whose attention is cheap."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nmtflex.decoding.translator import load

__version__ = "0.1.0"
__all__ = ["__version__", "load"]


def __getattr__(name: str) -> object:
    """Import torch only when a model is asked for."""
    if name == "load":
        from nmtflex.decoding.translator import load

        return load
    raise AttributeError(f"module 'nmtflex' has no attribute {name!r}")
