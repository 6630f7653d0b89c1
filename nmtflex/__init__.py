"""Neural machine translation with cheap attention, from Python.

`nmtflex.load` opens a trained run and returns a `Translator`:

    import nmtflex

    translator = nmtflex.load("runs/deen", beam=5)
    translator.translate(["Ein Hund läuft durch den Schnee.", "Zwei Männer reden."])

    [[best, *others]] = translator.translate_batch(["Zwei Männer reden."], n_best=5, trace=True)
    print(best.text, best.score, best.trace.weights)

    with nmtflex.load(["runs/flex1", "runs/flex2"], tau=1.38) as ensemble:
        ensemble.translate(["Zwei Männer reden."], beam=10, tau=1.0)

docs/library.md shows more: streams, threads, asyncio, alignments.

Everything else (`preprocess`, `train`, `eval`, ...) is done on the command line. `load` and the
methods below raise `nmtflex.errors.OptionError` and `RunError` for errors that a user can cause;
both are `NmtflexError`, and their message is a single line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nmtflex.garbage import uncollected

if TYPE_CHECKING:
    from nmtflex.decoding.opening import load
    from nmtflex.decoding.options import CallOptions
    from nmtflex.decoding.translation import Translation
    from nmtflex.decoding.translator import Translator
    from nmtflex.text.glossary import Glossary

__version__ = "0.1.0"
__all__ = ["CallOptions", "Glossary", "Translation", "Translator", "__version__", "load"]


def __getattr__(name: str) -> object:
    """Import torch only when a model is asked for."""
    if name == "load":
        with uncollected():
            from nmtflex.decoding.opening import load

        return load
    if name == "Translator":
        from nmtflex.decoding.translator import Translator

        return Translator
    if name == "CallOptions":
        from nmtflex.decoding.options import CallOptions

        return CallOptions
    if name == "Translation":
        from nmtflex.decoding.translation import Translation

        return Translation
    if name == "Glossary":
        from nmtflex.text.glossary import Glossary

        return Glossary
    raise AttributeError(f"module 'nmtflex' has no attribute {name!r}")
