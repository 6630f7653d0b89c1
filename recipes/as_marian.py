"""nmtflex with sentences as Marian has them: </s> ends a source, and zeros begin a translation.

    as_marian.py COMMAND OPTION...

A transformer that is trained or finetuned, and decoded, like this computes what Marian computes
with the same weights; see to_marian.py.
"""

from __future__ import annotations

import sys

import torch
from torch import Tensor
from torch.nn.functional import pad

from nmtflex.__main__ import main
from nmtflex.layers.embedding import Embedding
from nmtflex.model.encoders.base import Encoded
from nmtflex.model.encoders.transformer import TransformerEncoder
from nmtflex.text.vocabulary import BOS_ID, EOS_ID

look_up, read = Embedding.forward, TransformerEncoder.forward


def look_up_words(embedding: Embedding, tokens: Tensor) -> Tensor:
    """Return embeddings, zeros for the begin symbol."""
    return look_up(embedding, tokens) * (tokens != BOS_ID).unsqueeze(-1)


def read_to_the_end(encoder: TransformerEncoder, source: Tensor, lengths: Tensor) -> Encoded:
    """Read sentences and their ends."""
    longer = pad(source, (0, 1))
    longer[torch.arange(len(source), device=source.device), lengths.to(source.device)] = EOS_ID
    return read(encoder, longer, lengths + 1)


def become_marian() -> None:
    """Change all models of this process."""
    Embedding.forward = look_up_words  # type: ignore[assignment, method-assign]
    TransformerEncoder.forward = read_to_the_end  # type: ignore[assignment, method-assign]


if __name__ == "__main__":
    become_marian()
    sys.exit(main())
