"""The text side of a run, from raw text to ids and back.

Each language has a tokenizer, a subword model or none, and a vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

from nmtflex.config import FORMAT
from nmtflex.errors import DataError
from nmtflex.files import check_plain, read_json, write_json
from nmtflex.text.sentences import usual_space
from nmtflex.text.spans import spans_of
from nmtflex.text.subwords import Subwords, load_subwords
from nmtflex.text.subwords.sentencepiece import SPACE, SentencePiece
from nmtflex.text.tokenizers import Tokenizer, build_tokenizer
from nmtflex.text.vocabulary import BOS_ID, EOS_ID, PAD_ID, UNK, UNK_ID, Vocabulary

DESCRIPTION = "pipeline.json"
CACHE_LIMIT = 1 << 18  # words; about 60 MB


class _WordCache(dict[str, tuple[int, ...]]):
    """Word to ids; emptied when full, so an endless stream needs constant memory."""

    def __init__(self, subwords: Subwords | None, vocabulary: Vocabulary) -> None:
        super().__init__()
        self._subwords = subwords
        self._vocabulary = vocabulary

    def __missing__(self, word: str) -> tuple[int, ...]:
        if len(self) >= CACHE_LIMIT:
            self.clear()
        pieces = (word,) if self._subwords is None else self._subwords.split(word)
        ids = tuple(self._vocabulary.ids(pieces))
        self[word] = ids
        return ids


class SidePipeline:
    """One language: from raw lines to ids and back.

    Args:
        language: Suffix of its files.
        tokenizer: Raw line to words.
        subwords: Words to subwords, or None.
        vocabulary: Subwords to ids.

    If ``longest`` is set, ``segment`` and ``encode`` return at most that many subwords of a line.
    """

    longest: int | None = None

    def __init__(
        self,
        language: str,
        tokenizer: Tokenizer,
        subwords: Subwords | None,
        vocabulary: Vocabulary,
    ) -> None:
        self.language = language
        self.tokenizer = tokenizer
        self.subwords = subwords
        self.vocabulary = vocabulary
        self._cache = _WordCache(subwords, vocabulary)

    def words(self, line: str) -> list[str]:
        """Split a raw line into words: the tokens before subwords."""
        return self.tokenizer.words(line)

    def num_words(self, line: str) -> int:
        """Return how many words alignments count in a raw line."""
        return 1 + max(self.word_numbers(self._pieces(line)), default=-1)

    def _split(self, word: str) -> Sequence[str]:
        return self.subwords.split(word) if self.subwords else (word,)

    def segment(self, line: str) -> list[str]:
        """Split a raw line into subwords."""
        return self._pieces(line)[: self.longest]

    def _pieces(self, line: str) -> list[str]:
        return self.split_words(self.words(line))

    def split_words(self, words: Iterable[str]) -> list[str]:
        """Split words into subwords."""
        return [piece for word in words for piece in self._split(word)]

    def word_numbers(self, pieces: list[str]) -> list[int]:
        """Return for each subword the number of its word as alignments count, or -1."""
        numbers = self.tokenizer.word_numbers(self.join(pieces))
        starts = [*self.word_starts(pieces), len(pieces)]
        sizes = (stop - start for start, stop in pairwise(starts))
        return [number for number, size in zip(numbers, sizes, strict=True) for _ in range(size)]

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
        return self.join(pieces)

    def join(self, pieces: list[str]) -> list[str]:
        """Join subwords to words; there is one for each of ``word_starts``."""
        return self.subwords.join(pieces) if self.subwords else pieces

    def plain(self, line: str) -> str:
        """Return a raw line as ``decode`` writes lines: without the marks of segmented text."""
        return self.subwords.plain(line) if self.subwords else line

    def usual_space(self, sentence: str) -> str:
        """Return the white space that joins a sentence of raw text and the next one."""
        if self.tokenizer.name == "none" and not isinstance(self.subwords, SentencePiece):
            return " "  # nothing else separates words
        return usual_space(sentence)

    def attended_words(self, line: str) -> list[str]:
        """Return for each subword of ``segment(line)`` the raw text of the whole word it is of."""
        return [self.plain(line[start:end]) for start, end in self.word_spans(line)]

    def word_spans(self, line: str) -> list[tuple[int, int]]:
        """Return for each subword of ``segment(line)`` where the whole word it is of stands."""
        spans = self.spans(line)
        pieces = self._pieces(line)
        found: list[tuple[int, int]] = []
        for start, stop in pairwise([*self.word_starts(pieces), len(pieces)]):
            found += [(spans[start][0], spans[stop - 1][1])] * (stop - start)
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
            unknown: Text for an unknown token inside a word of several subwords.
        """
        offered = [text for _, text in zip(ids, replacements, strict=True)]
        words = [[word] for word in self.decode_words(ids, unknown)]
        for word, place in enumerate(self.unknown_words(ids)):
            if place is not None:
                # A space is a token only of "char"; other tokenizers keep the unknown word.
                words[word] = self.tokenizer.tokenize(offered[place]) or [unknown]
        return words

    def join_filled(self, filled: Iterable[Sequence[str]]) -> str:
        """Join words, each of which became a list of words, to a raw line."""
        return self.tokenizer.detokenize([word for parts in filled for word in parts])

    def unknown_words(self, ids: Sequence[int]) -> list[int | None]:
        """Return for each word the place of its id of unknown tokens, if it is nothing else."""
        pieces = [self.vocabulary.token(number) for number in ids]
        found: list[int | None] = []
        for start, stop in pairwise([*self.word_starts(pieces), len(ids)]):
            # SentencePiece begins a word with a space, which may be a piece by itself.
            place = stop - 1 if stop - start == 2 and pieces[start] == SPACE else start
            whole = place == stop - 1 and ids[place] == UNK_ID
            found.append(place if whole else None)
        return found

    def word_starts(self, pieces: Sequence[str]) -> list[int]:
        """Return where each word begins among its subwords."""
        return self.subwords.starts(pieces) if self.subwords else list(range(len(pieces)))

    def decode(self, ids: Iterable[int]) -> str:
        """Turn ids into a raw line."""
        return self.tokenizer.detokenize(self.decode_words(ids))

    def spans(self, line: str) -> list[tuple[int, int]]:
        """Return for each subword of ``segment(line)`` its [start, end) in the raw line.

        In characters. Starts never decrease; where a tokenizer changed the text, a span is a nearby
        guess inside the line.
        """
        return spans_of(line, self.words(line), self.tokenizer, self.subwords)

    def describe(self) -> dict[str, Any]:
        """Return the manifest entry of this side."""
        return {
            "language": self.language,
            "tokenizer": self.tokenizer.describe(),
            **(self.subwords.describe() if self.subwords else {"bpe": None}),
            "vocabulary": len(self.vocabulary),
        }

    def _save(self, folder: Path, side: str) -> None:
        self.tokenizer.save_model(_model_path(folder, side, self.tokenizer.name))
        self.vocabulary.save(folder / f"{side}.vocabulary")
        if self.subwords:
            self.subwords.save(folder, side)

    @classmethod
    def _load(cls, folder: Path, side: str, description: dict[str, Any]) -> SidePipeline:
        subwords = load_subwords(folder, side, description)
        vocabulary = Vocabulary.load(folder / f"{side}.vocabulary")
        if len(vocabulary) != description["vocabulary"]:
            raise DataError(
                f"{folder / f'{side}.vocabulary'}: {len(vocabulary)} entries with the specials, "
                f"but {DESCRIPTION} says {description['vocabulary']}; the folder is damaged"
            )
        about = description["tokenizer"]
        tokenizer = build_tokenizer(about, _model_path(folder, side, about["name"]))
        return cls(description["language"], tokenizer, subwords, vocabulary)


def _model_path(folder: Path, side: str, tokenizer: str) -> Path:
    """Return the path of a tokenizer's model in a pipeline, such as source.kytea."""
    return folder / f"{side}.{tokenizer}"


@dataclass(frozen=True)
class TextPipeline:
    """Both sides.

    Args:
        source: The language translated from.
        target: The language translated into.
        joint: The sides share subword model and vocabulary.
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
        for place, parts in zip(target.unknown_words(ids), filled, strict=True):
            span = None if place is None else spans[places[place]]
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
            if one.subwords != two.subwords:
                model = one.subwords or two.subwords
                return f"{name} {model.title if model else ''}"
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
