"""Pieces of words by SentencePiece models.

Kudo and Richardson (2018), https://aclanthology.org/D18-2012. Words are segmented one by one. Each
has ``▁`` before it, which stands for a space, so its first piece begins with ``▁``. So that words
of the text that contain ``▁`` survive, words are escaped first: ``▁`` becomes U+E000 U+E001, and
U+E000 becomes U+E000 U+E000. This is undone exactly.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from nmtflex.errors import DataError
from nmtflex.text.subwords.base import Draw, Subwords
from nmtflex.text.subwords.drawing import Edge, Lattice, draw_merges

SPACE = "▁"
BYTES = {f"<0x{value:02X}>": value for value in range(256)}  # pieces
UNKNOWN_PENALTY = 10.0  # SentencePiece's: how much worse an unknown character is than any piece
STEP = 10_000  # lines between two progress reports
LONGEST = 1 << 24  # bytes of a line to learn from
THREADS = 8  # sums of numbers, and so the model, depend on it
SILENT = 5  # no messages
_SPACES = re.compile("[ \t\n\r\v\f]")
_CLASH = re.compile(f"[{SPACE}\ue000]")
_ESCAPED = re.compile("\ue000([\ue000\ue001])")
_TYPES = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}
_NORMAL, _USER_DEFINED, _BYTE = 1, 4, 6  # types of pieces


def escape(word: str) -> str:
    """Replace ``▁``."""
    return _CLASH.sub(lambda found: "\ue000" + _codes[found[0]], word)


def unescape(word: str) -> str:
    """Undo ``escape``."""
    return _ESCAPED.sub(lambda found: _plain[found[1]], word) if "\ue000" in word else word


_codes = {SPACE: "\ue001", "\ue000": "\ue000"}
_plain = {code: character for character, code in _codes.items()}


def word_of(pieces: Iterable[str], values: Mapping[str, int]) -> str:
    """Join the pieces of a word, given the values of those that are bytes."""
    text = b"".join(_raw(piece, values) for piece in pieces).decode(errors="replace")
    return unescape(text.removeprefix(SPACE))


def _raw(piece: str, values: Mapping[str, int]) -> bytes:
    """Return the UTF-8 of a piece."""
    value = values.get(piece)
    return piece.encode() if value is None else bytes([value])


def _take_text_as_it_is(model: Any) -> None:
    """Remove the normalisation of a ModelProto, and its tests of that."""
    ours = {
        "name": "identity",
        "precompiled_charsmap": b"",
        "add_dummy_prefix": True,
        "remove_extra_whitespaces": False,
        "escape_whitespaces": True,
        "normalization_rule_tsv": "",
    }
    for field, value in ours.items():
        setattr(model.normalizer_spec, field, value)
    model.DiscardUnknownFields()


class SentencePiece(Subwords):
    """A model of SentencePiece.

    Its own normalisation is not applied: a file with one is stored without it.

    Args:
        data: The bytes of a ``.model`` file.
        name: The file, for messages.

    Raises:
        DataError: It is not such a file, or its pieces cannot segment words.
    """

    title = "SentencePiece"

    def __init__(self, data: bytes, name: Path | str = "the model") -> None:
        from google.protobuf.message import DecodeError
        from sentencepiece import SentencePieceProcessor, sentencepiece_model_pb2

        try:
            model = sentencepiece_model_pb2.ModelProto.FromString(data)  # type: ignore[attr-defined]
            _take_text_as_it_is(model)
            self.data = model.SerializeToString(deterministic=True)
            self._processor = SentencePieceProcessor(model_proto=self.data)
        except (DecodeError, RuntimeError) as error:
            raise DataError(f"{name}: not a SentencePiece model") from error
        self.kind = _TYPES[model.trainer_spec.model_type]
        self.sampled_by = "--subword-alpha" if self.kind == "unigram" else "--bpe-dropout"
        # Words have no white space, so pieces with it, or of several words, do not occur.
        usable = [
            piece
            for piece in model.pieces
            if not (_SPACES.search(piece.piece) or SPACE in piece.piece[1:])
        ]
        names = [piece.piece for piece in usable if piece.type == _BYTE]
        self._bytes = {name: BYTES[name] for name in names if name in BYTES}
        self._scores = {
            piece.piece: piece.score for piece in usable if piece.type in (_NORMAL, _USER_DEFINED)
        }
        self.pieces = [*self._bytes, *self._scores]
        self._check(name, model.trainer_spec.treat_whitespace_as_suffix)

    def _check(self, name: Path | str, suffix: bool) -> None:
        """Check that all words can be segmented; ``suffix``: whether spaces follow them."""
        if self.kind not in ("unigram", "bpe"):
            raise DataError(f"{name}: a model of type {self.kind}; give one of unigram or bpe")
        if suffix:
            raise DataError(
                f"{name}: {SPACE!r} ends its words instead of beginning them; train one without "
                f"--treat_whitespace_as_suffix"
            )
        if SPACE not in self._scores:
            raise DataError(
                f"{name}: has no piece {SPACE!r}, so it cannot begin every word; train one with "
                f"--required_chars={SPACE}"
            )
        if self._bytes and (missing := BYTES.keys() - self._bytes.keys()):
            raise DataError(f"{name}: has pieces of bytes, but not {min(missing)}")

    @property
    def called(self) -> str:
        """The library and the type."""
        return f"{self.title} {self.kind}"

    @property
    def byte_fallback(self) -> bool:
        """Whether no character is unknown."""
        return bool(self._bytes)

    def split(self, word: str) -> list[str]:
        """Split a word into pieces; an unknown character is a piece that no vocabulary has."""
        return self._processor.encode(escape(word), out_type=str)

    def join(self, pieces: Iterable[str]) -> list[str]:
        """Join pieces to words; bytes that are not UTF-8 become U+FFFD."""
        pieces = list(pieces)
        bounds = pairwise([*self.starts(pieces), len(pieces)])
        return [word_of(pieces[start:end], self._bytes) for start, end in bounds]

    def opens(self, piece: str) -> bool:
        """Whether a piece begins with ``▁``."""
        return piece.startswith(SPACE)

    def bounds(self, word: str) -> list[tuple[int, int]]:
        """Return each piece's characters: none for a single ``▁``, the same one for its bytes."""
        owners = [-1] * len(SPACE.encode())  # of each byte: a place in the word
        for place, character in enumerate(word):
            owners += [place] * len(escape(character).encode())
        found, start = [], 0
        for piece in self.split(word):
            stop = start + len(_raw(piece, self._bytes))
            found.append((max(0, owners[start]), owners[stop - 1] + 1))
            start = stop
        return found

    def drawing(self, word: str, alpha: float | None, dropout: float) -> Draw | None:
        """Draw from a unigram model with ``Lattice``, from merges with ``draw_merges``."""
        text = SPACE + escape(word)
        if self.kind == "unigram":
            return None if alpha is None else Lattice(self._edges(text), alpha).draw
        if not dropout:
            return None
        return lambda random: [
            piece
            for symbol in draw_merges(text, self._rank, dropout, random)
            for piece in self._known(symbol)
        ]

    def _rank(self, pair: tuple[str, str]) -> float | None:
        score = self._scores.get("".join(pair))
        return None if score is None else -score

    def _edges(self, text: str) -> list[Edge]:
        """Return the pieces that occur in a text, by their ends."""
        edges = []
        for end in range(1, len(text) + 1):
            for start in range(max(0, end - self._longest), end):
                piece = text[start:end]
                if (score := self._scores.get(piece)) is not None:
                    edges.append(Edge(start, end, score, (piece,)))
                elif start == end - 1:
                    edges.append(Edge(start, end, self._unknown_score, self._known(piece)))
        return edges

    def _known(self, piece: str) -> tuple[str, ...]:
        """Return a piece, or the bytes of an unknown character."""
        if piece in self._scores or not self.byte_fallback:
            return (piece,)
        return tuple(f"<0x{value:02X}>" for value in piece.encode())

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self._scores))

    @cached_property
    def _unknown_score(self) -> float:
        return min(self._scores.values()) - UNKNOWN_PENALTY

    def _key(self) -> Any:
        return self.data

    def describe(self) -> dict[str, Any]:
        """Return the type, the number of pieces, and the hash of the file."""
        return {
            "sentencepiece": {
                "type": self.kind,
                "pieces": self._processor.vocab_size(),
                "byte_fallback": self.byte_fallback,
                "sha256": hashlib.sha256(self.data).hexdigest(),
            }
        }

    def save(self, folder: Path, side: str) -> None:
        """Write the ``.model`` file."""
        (folder / f"{side}.model").write_bytes(self.data)

    @classmethod
    def load(cls, path: Path, sha256: str | None = None) -> SentencePiece:
        """Read a ``.model`` file.

        Args:
            path: The file.
            sha256: The hash that it must have; None for any.

        Raises:
            DataError: The file is missing, has another hash, or is not a usable model.
        """
        try:
            data = path.read_bytes()
        except OSError as error:
            raise DataError(f"{path}: {error.strerror}") from error
        found = hashlib.sha256(data).hexdigest()
        if sha256 not in (None, found):
            raise DataError(
                f"{path}: its SHA-256 begins with {found[:12]}, that of the model that was used "
                f"with {sha256[:12]}; copy the folder again"
            )
        return cls(data, path)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the file's bytes."""
        return SentencePiece, (self.data,)


def learn_sentencepiece(
    lines: Iterable[str],
    size: int,
    kind: str,
    byte_fallback: bool,
    name: str = "the text",
    read: Callable[[int], None] = lambda _lines: None,
) -> SentencePiece:
    """Learn a model from lines of words, separated by single spaces.

    Args:
        lines: Words before ``escape``.
        size: Pieces, including SentencePiece's own three special ones and those of bytes.
        kind: "unigram" or "bpe".
        byte_fallback: Whether unknown characters become bytes.
        name: The option and the text, for messages.
        read: Called now and then with the number of lines read.

    Raises:
        DataError: The text has too few different pieces, or too many characters, for this size.
    """
    from sentencepiece import SentencePieceTrainer

    model = io.BytesIO()
    try:
        SentencePieceTrainer.train(
            sentence_iterator=_counted(lines, read),
            model_writer=model,
            vocab_size=size,
            model_type=kind,
            byte_fallback=byte_fallback,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            required_chars=SPACE,
            max_sentence_length=LONGEST,
            num_threads=THREADS,
            minloglevel=SILENT,
        )
    except RuntimeError as error:
        raise DataError(f"{name} {_refusal(str(error))}") from error
    return SentencePiece(model.getvalue())


def _counted(lines: Iterable[str], read: Callable[[int], None]) -> Iterator[str]:
    """Yield the lines, escaped."""
    for number, line in enumerate(lines):
        if not number % STEP:
            read(number)
        yield escape(line)


def _refusal(message: str) -> str:
    """Say what SentencePiece could not learn; its messages name the limits."""
    if most := re.search(r"value <= (\d+)", message):
        return f"has at most {most[1]} pieces; give at most that"
    if least := re.search(r"required_chars\. \d+ vs (\d+)", message):
        return f"has so many characters that {least[1]} pieces are needed; give at least that"
    return f"has nothing that SentencePiece learns from ({message})"
