"""No tokenizer: the text is already tokenised."""

from __future__ import annotations

from collections.abc import Sequence

from nmtflex.text.tokenizers.base import WORD, Tokenizer


class NoneTokenizer(Tokenizer):
    """Splits at ASCII white space; any other white space belongs to its word."""

    name = "none"

    def tokenize(self, line: str) -> list[str]:
        """Split at ASCII white space only."""
        return WORD.findall(line)

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Join by single spaces."""
        return " ".join(tokens)
