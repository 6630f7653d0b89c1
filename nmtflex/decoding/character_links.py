"""Links between the characters of a raw line and of its translation."""

from __future__ import annotations

from nmtflex.decoding.translation import Translation
from nmtflex.text.pipeline import TextPipeline
from nmtflex.text.places import Span, source_places, target_places

Link = tuple[Span, Span]  # of a source word and a target word


def character_links(pipeline: TextPipeline, line: str, translation: Translation) -> list[Link]:
    """Return links between the characters of a raw line and of its translation.

    Spans are those of words. Of either side they do not overlap, and the links are in the order of
    the target. A word that its text does not show as it is has no link.

    Args:
        pipeline: The one that made the translation.
        line: The raw source.
        translation: From ``Translator.n_best`` with ``align``.
    """
    sources = source_places(pipeline.source, line)
    targets = target_places(pipeline.target, translation.text, translation.words)
    return [
        (one, other)
        for source, target in translation.links
        if (one := sources[source]) and (other := targets[target])
    ]
