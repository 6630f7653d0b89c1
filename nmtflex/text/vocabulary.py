"""Tokens and their ids."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from nmtflex.errors import DataError

PAD_ID, UNK_ID, BOS_ID, EOS_ID = range(4)
_COUNT = re.compile("[0-9]{1,18}")
SPECIALS = ("<pad>", "<unk>", "<s>", "</s>")  # shown names; no text maps to these ids
UNK = SPECIALS[UNK_ID]


class Vocabulary:
    """The tokens of one side, most frequent first, after the four specials.

    A literal ``<unk>`` or ``</s>`` in the text is an ordinary token: it may have its own entry and
    never maps to a special.

    Args:
        tokens: Ordinary tokens; the first gets id 4.
        counts: Count of each in training.
    """

    def __init__(self, tokens: Sequence[str], counts: Sequence[int]) -> None:
        self.tokens = [*SPECIALS, *tokens]
        self.counts = list(counts)
        self._ids = {token: number for number, token in enumerate(tokens, len(SPECIALS))}

    @classmethod
    def build(cls, counts: Mapping[str, int], size: int = 0, min_frequency: int = 1) -> Vocabulary:
        """Keep the most frequent tokens, equally frequent ones in order of their text.

        Args:
            counts: Token counts.
            size: Maximum ordinary tokens; 0 keeps all.
            min_frequency: Minimum count of a token.
        """
        kept = sorted((-count, token) for token, count in counts.items() if count >= min_frequency)
        kept = kept[: size or None]
        return cls([token for _, token in kept], [-count for count, _ in kept])

    def __len__(self) -> int:
        return len(self.tokens)

    def ids(self, tokens: Iterable[str]) -> list[int]:
        """Return the ids of tokens, ``UNK_ID`` for unknown ones."""
        get = self._ids.get
        return [get(token, UNK_ID) for token in tokens]

    def token(self, id: int) -> str:  # noqa: A002
        """Return the text of an id; for a special, its name in angle brackets."""
        return self.tokens[id]

    def save(self, path: Path) -> None:
        """Write one ``token<TAB>count`` a line, from id 4 on."""
        entries = zip(self.tokens[len(SPECIALS) :], self.counts, strict=True)
        path.write_bytes("".join(f"{token}\t{count}\n" for token, count in entries).encode())

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        """Read what ``save`` wrote.

        Raises:
            DataError: The file is missing, or a line is not a new token and its count.
        """
        try:
            text = path.read_bytes().decode()
        except OSError as error:
            raise DataError(f"{path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: not valid UTF-8") from error
        entries: dict[str, int] = {}
        for number, line in enumerate(text.split("\n")[:-1], 1):
            token, tab, count = line.rpartition("\t")
            if not (token and tab and _COUNT.fullmatch(count)) or token in entries:
                raise DataError(f"{path}:{number}: {line!r} is not a new token, a tab and a count")
            entries[token] = int(count)
        return cls(list(entries), list(entries.values()))
