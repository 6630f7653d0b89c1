"""The text side of a run, from raw text to ids and back: tokenizer, BPE and vocabulary a side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from nmtflex.config import FORMAT
from nmtflex.errors import DataError
from nmtflex.files import check_plain, read_json, write_json
from nmtflex.text.bpe import BPE, MARKER
from nmtflex.text.spans import spans_of
from nmtflex.text.tokenizers import Tokenizer, build_tokenizer
from nmtflex.text.vocabulary import BOS_ID, EOS_ID, PAD_ID, UNK, UNK_ID, Vocabulary

DESCRIPTION = "pipeline.json"
CACHE_LIMIT = 1 << 18  # words; about 60 MB


class _WordCache(dict[str, tuple[int, ...]]):
    """Word to ids; emptied when full, so an endless stream needs constant memory."""

    def __init__(self, bpe: BPE | None, vocabulary: Vocabulary) -> None:
        super().__init__()
        self._bpe = bpe
        self._vocabulary = vocabulary

    def __missing__(self, word: str) -> tuple[int, ...]:
        if len(self) >= CACHE_LIMIT:
            self.clear()
        ids = tuple(self._vocabulary.ids(self._bpe.split(word) if self._bpe else (word,)))
        self[word] = ids
        return ids


class SidePipeline:
    """One language: from raw lines to ids and back.

    Args:
        language: Suffix of its files.
        tokenizer: Raw line to words.
        bpe: Words to subwords, or None.
        vocabulary: Subwords to ids.

    If ``longest`` is set, ``segment`` and ``encode`` return at most that many subwords of a line.
    """

    longest: int | None = None

    def __init__(
        self, language: str, tokenizer: Tokenizer, bpe: BPE | None, vocabulary: Vocabulary
    ) -> None:
        self.language = language
        self.tokenizer = tokenizer
        self.bpe = bpe
        self.vocabulary = vocabulary
        self._cache = _WordCache(bpe, vocabulary)

    def words(self, line: str) -> list[str]:
        """Split a raw line into words: the tokens before BPE."""
        return self.tokenizer.words(line)

    def segment(self, line: str) -> list[str]:
        """Split a raw line into subwords."""
        words = self.words(line)
        if self.bpe:
            words = [piece for word in words for piece in self.bpe.split(word)]
        return words[: self.longest]

    def encode(self, line: str) -> list[int]:
        """Turn a raw line into ids, without begin and end."""
        return self.encode_words(self.words(line))[: self.longest]

    def unread(self, line: str) -> int:
        """Return the number of subwords of a raw line beyond ``longest``."""
        if self.longest is None:
            return 0
        return max(0, len(self.encode_words(self.words(line))) - self.longest)

    def encode_words(self, words: Iterable[str]) -> list[int]:
        """Turn words into ids, by a C loop for cached words."""
        return list(chain.from_iterable(map(self._cache.__getitem__, words)))

    def decode_words(self, ids: Iterable[int], unknown: str = UNK) -> list[str]:
        """Turn ids into words; unknown ones become ``unknown``; drop padding, begin and end."""
        hidden = (PAD_ID, BOS_ID, EOS_ID)
        pieces = [
            unknown if number == UNK_ID else self.vocabulary.token(number)
            for number in ids
            if number not in hidden
        ]
        return self.bpe.join(pieces) if self.bpe else pieces

    def attended_words(self, line: str) -> list[str]:
        """Return for each subword of ``segment(line)`` the raw text of the whole word it is of."""
        return [line[start:end] for start, end in self.word_spans(line)]

    def word_spans(self, line: str) -> list[tuple[int, int]]:
        """Return for each subword of ``segment(line)`` where the whole word it is of stands."""
        spans = self.spans(line)
        found: list[tuple[int, int]] = []
        for word in self.words(line):
            count = len(self.bpe.split(word)) if self.bpe else 1
            first, last = spans[len(found)], spans[len(found) + count - 1]
            found += [(first[0], last[1])] * count
        return found

    def fill_unknown(
        self, ids: Sequence[int], replacements: Sequence[str], unknown: str = UNK
    ) -> list[list[str]]:
        """Turn ids into words as ``decode_words`` does, but replace unknown ones.

        Each word is a list of one, unless a replacement is split into several.

        Args:
            ids: Without begin and end.
            replacements: Raw text for each id, split as this side splits words; used where the id
                is that of unknown tokens and is a whole word.
            unknown: Text for an unknown token inside a word built by BPE.
        """
        words = [[word] for word in self.decode_words(ids, unknown)]
        starts = self.word_starts([self.vocabulary.token(number) for number in ids])
        offered = list(zip(ids, replacements, strict=True))
        for place, start in enumerate(starts):
            number, replacement = offered[start]
            if number == UNK_ID:
                # A space is a token only of "char"; other tokenizers keep the unknown word.
                words[place] = self.tokenizer.tokenize(replacement) or [unknown]
        return words

    def word_starts(self, pieces: Sequence[str]) -> list[int]:
        """Return where each word begins among its subwords."""
        if self.bpe is None:
            return list(range(len(pieces)))
        goes_on = [False, *(piece.endswith(MARKER) for piece in pieces)]
        return [place for place in range(len(pieces)) if not goes_on[place]]

    def decode(self, ids: Iterable[int]) -> str:
        """Turn ids into a raw line."""
        return self.tokenizer.detokenize(self.decode_words(ids))

    def spans(self, line: str) -> list[tuple[int, int]]:
        """Return for each subword of ``segment(line)`` its [start, end) in the raw line.

        In characters. Starts never decrease; where a tokenizer changed the text, a span is a nearby
        guess inside the line.
        """
        return spans_of(line, self.words(line), self.tokenizer, self.bpe)

    def describe(self) -> dict[str, Any]:
        """Return the manifest entry of this side; BPE as its number of merges, which may be 0."""
        return {
            "language": self.language,
            "tokenizer": self.tokenizer.describe(),
            "bpe": len(self.bpe.ranks) if self.bpe else None,
            "vocabulary": len(self.vocabulary),
        }

    def _save(self, folder: Path, side: str) -> None:
        self.tokenizer.save_model(_model_path(folder, side, self.tokenizer.name))
        self.vocabulary.save(folder / f"{side}.vocabulary")
        if self.bpe:
            self.bpe.save(folder / f"{side}.codes")

    @classmethod
    def _load(cls, folder: Path, side: str, description: dict[str, Any]) -> SidePipeline:
        bpe = None if description["bpe"] is None else BPE.load(folder / f"{side}.codes")
        vocabulary = Vocabulary.load(folder / f"{side}.vocabulary")
        if len(vocabulary) != description["vocabulary"]:
            raise DataError(
                f"{folder / f'{side}.vocabulary'}: {len(vocabulary)} entries with the specials, "
                f"but {DESCRIPTION} says {description['vocabulary']}; the folder is damaged"
            )
        about = description["tokenizer"]
        tokenizer = build_tokenizer(about, _model_path(folder, side, about["name"]))
        return cls(description["language"], tokenizer, bpe, vocabulary)


def _model_path(folder: Path, side: str, tokenizer: str) -> Path:
    """Return the path of a tokenizer's model in a pipeline, such as source.kytea."""
    return folder / f"{side}.{tokenizer}"


@dataclass(frozen=True)
class TextPipeline:
    """Both sides.

    Args:
        source: The language translated from.
        target: The language translated into.
        joint: The sides share BPE codes and vocabulary.
    """

    source: SidePipeline
    target: SidePipeline
    joint: bool = False

    def describe(self) -> dict[str, Any]:
        """Return the manifest entry of the pipeline."""
        return {
            "joint": self.joint,
            "source": self.source.describe(),
            "target": self.target.describe(),
        }

    def join_replaced(
        self, line: str, ids: Sequence[int], places: Sequence[int], filled: Sequence[Sequence[str]]
    ) -> str:
        """Return a translation with replaced unknown words as a raw line.

        Replaced words that are neighbours in the source too keep the space between them, which a
        target without spaces would lose: Pure Land.

        Args:
            line: The raw source.
            ids: The translation, without begin and end.
            places: The source subword that replaces each id.
            filled: Result of ``SidePipeline.fill_unknown``.
        """
        target, spans = self.target, self.source.word_spans(line)
        spaceless = target.tokenizer.name not in ("none", "moses")  # these insert spaces themselves
        joined: list[str] = []
        before = None  # source span of the last replaced word
        starts = target.word_starts([target.vocabulary.token(number) for number in ids])
        for start, parts in zip(starts, filled, strict=True):
            span = spans[places[start]] if ids[start] == UNK_ID else None
            if before and span and spaceless and line[before[1] : span[0]].isspace():
                joined.append(" ")
            joined += parts
            before = span
        return target.tokenizer.detokenize(joined)

    def difference(self, other: TextPipeline) -> str | None:
        """Name what gives the same ids another meaning in the other pipeline; None if nothing."""
        for name in ("source", "target"):
            one, two = getattr(self, name), getattr(other, name)
            if one.vocabulary.tokens != two.vocabulary.tokens:
                return f"{name} vocabulary"
            if one.language != two.language:
                return f"{name} language"
            if one.tokenizer.describe() != two.tokenizer.describe():
                return f"{name} tokenizer"
            if (one.bpe and one.bpe.ranks) != (two.bpe and two.bpe.ranks):
                return f"{name} BPE"
        return None

    def save(self, folder: Path) -> None:
        """Write the pipeline to a folder, which is created."""
        folder.mkdir(parents=True, exist_ok=True)
        self.source._save(folder, "source")
        self.target._save(folder, "target")
        write_json(folder / DESCRIPTION, {"format": FORMAT, **self.describe()})

    @classmethod
    def load(cls, folder: Path) -> TextPipeline:
        """Read what ``save`` wrote.

        Raises:
            DataError: The folder has no pipeline, one of a newer format, or a damaged one.
        """
        path = folder / DESCRIPTION
        check_plain(folder, DataError)
        description = read_json(path, DataError)
        number = description.get("format")
        if isinstance(number, int) and number > FORMAT:
            raise DataError(
                f"{path}: format {number} is newer than {FORMAT}, which this nmtflex reads; "
                f"install a newer nmtflex"
            )
        try:
            return cls(
                SidePipeline._load(folder, "source", description["source"]),
                SidePipeline._load(folder, "target", description["target"]),
                description["joint"],
            )
        except (AttributeError, KeyError, TypeError) as error:
            raise DataError(f"{path}: not the description of a pipeline: {error!r}") from error
