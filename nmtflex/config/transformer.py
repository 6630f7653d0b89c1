"""Options that transformer encoders and the decoders of their kind share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from nmtflex.config.base import Opt

AttentionDropout = Annotated[
    float,
    Opt("Dropout probability on the weights of self-attention.", ge=0, lt=1),
]

PreNorm = Annotated[
    bool,
    Opt(
        "Normalise the input of each sublayer, which deep stacks need, instead of the sum after it "
        "(Vaswani et al.; Marian)."
    ),
]

FfnDropout = Annotated[
    float,
    Opt("Dropout probability on the hidden units of feed-forward layers.", ge=0, lt=1),
]


def as_embedded(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the units of a stack of layers that are not given: those of an embedding."""
    return {name: values["embedding_size"]} if "embedding_size" in values else {}


def heads_fault(flag: str, heads: int, size_flag: str, size: int) -> list[str]:
    """Return a fault if heads do not divide the units of a layer."""
    if size % heads == 0:
        return []
    # Outwards from the number given, since a size may have nine digits.
    around = (count for away in range(heads) for count in (heads - away, heads + away))
    near = next(count for count in around if size % count == 0)
    return [f"{flag} {heads} must divide {size_flag} {size}; use {flag} {near}"]


def size_fault(what: str, size_flag: str, size: int, embedding_size: int) -> list[str]:
    """Return a fault if a stack of layers differs in units from the embeddings it reads."""
    if size == embedding_size:
        return []
    return [f"{what} needs --embedding-size {size}, the same as {size_flag}, not {embedding_size}"]
