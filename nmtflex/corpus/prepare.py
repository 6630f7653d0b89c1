"""Raw parallel text to a prepared folder.

Two streaming passes over the training text: the first tokenises it, filters it and numbers its
distinct words; BPE and vocabularies come from their counts; the second turns the numbers into ids.
Valid and test, and everything under ``--like``, are encoded in one pass. Only the distinct words
are held in memory.
"""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import nmtflex
from nmtflex.config import FORMAT, PreprocessConfig
from nmtflex.corpus.passes import Encode, Filter, Lines, Tokenise, read_chunks
from nmtflex.corpus.readers import find_text, starts_with_mark
from nmtflex.corpus.splits import PairCount, SplitWriter
from nmtflex.corpus.store import MANIFEST, SIDES, PreparedCorpus, open_prepared, raw_path
from nmtflex.corpus.words import Pieces, WordStore, numbering
from nmtflex.corpus.workers import ordered_map
from nmtflex.errors import DataError, OptionError
from nmtflex.files import atomic_folder, write_json
from nmtflex.text.bpe import BPE, learn_bpe, worth_learning_from
from nmtflex.text.pipeline import SidePipeline, TextPipeline
from nmtflex.text.tokenizers import Tokenizer, build_tokenizer
from nmtflex.text.vocabulary import Vocabulary

Progress = Callable[[str, int], None]
Corpus = tuple[Path, Path]  # source and target file


def prepare(config: PreprocessConfig, progress: Progress = lambda *_: None) -> PreparedCorpus:
    """Make a prepared folder.

    Args:
        config: What to make of which files.
        progress: Called now and then with what is being done and how many pairs are done.

    Returns:
        The folder, opened.

    Raises:
        OptionError: The output folder exists, or ``--like`` has other languages.
        DataError: An input file is missing, damaged, not parallel to its partner or empty, or no
            training pair is left.
    """
    if config.out.exists():
        raise OptionError(f"--out {config.out} exists already; remove it or choose another folder")
    prefixes = {
        "train": config.train,
        "valid": [config.valid] if config.valid else [],
        "test": [config.test] if config.test else [],
    }
    corpora = {
        split: [
            (find_text(prefix, config.source_lang), find_text(prefix, config.target_lang))
            for prefix in given
        ]
        for split, given in prefixes.items()
    }
    with atomic_folder(config.out) as folder:
        _Preparation(config, folder, progress).run(corpora)
    return open_prepared(config.out)


def describe_reasons(max_length: Collection[int], max_ratio: float) -> dict[str, str]:
    """Say for a person why pairs may be dropped; a rule that is off is no reason."""
    source, target = (limit or "any number of" for limit in max_length)
    limit = f"{source}" if source == target else f"{source} (source) or {target} (target)"
    reasons = {"empty": "with an empty side"}
    if any(max_length):
        reasons["too_long"] = f"longer than {limit} tokens"
    if max_ratio:
        reasons["ratio"] = f"with a length ratio above {max_ratio:g}"
    return reasons


class _Preparation:
    """One call of ``prepare``: the folder being made and what is known of it so far."""

    def __init__(self, config: PreprocessConfig, folder: Path, progress: Progress) -> None:
        self.config = config
        self.folder = folder
        self.progress = progress
        self.splits: dict[str, Any] = {}
        self.pipeline: TextPipeline
        self.rules: Filter

    def run(self, corpora: dict[str, list[Corpus]]) -> None:
        """Write everything."""
        if self.config.like:
            self.pipeline = _load_like(self.config.like, self.config)
            sides = self.pipeline.source, self.pipeline.target
            self.rules = self._filter(*(side.tokenizer for side in sides))
            self.pipeline.save(self.folder / "pipeline")
        else:
            self._learn_from(corpora["train"])
        for split, pairs in corpora.items():
            if pairs and split not in self.splits:
                self._encode(split, pairs)
        self._write_manifest(corpora)

    def _filter(self, *tokenizers: Tokenizer) -> Filter:
        limit = self.config.max_length
        source, target = (
            limit if limit is not None else 500 if tokenizer.name == "char" else 100
            for tokenizer in tokenizers
        )
        return Filter((source, target), self.config.max_ratio)

    def _learn_from(self, corpora: list[Corpus]) -> None:
        """Make the pipeline of the training text, and encode that text by it."""
        config = self.config
        languages = config.source_lang, config.target_lang
        names = config.source_tokenizer, config.target_tokenizer
        tokenizers = [
            build_tokenizer(_describe_tokenizer(config, name, language))
            for name, language in zip(names, languages, strict=True)
        ]
        self.rules = self._filter(*tokenizers)
        temporary = self.folder / "words"
        temporary.mkdir()
        stores = [WordStore(temporary / side) for side in SIDES]
        pairs = self._read_words(corpora, tokenizers, stores)
        merges = self._learn_merges(stores, tokenizers)
        pieces, vocabularies = self._make_vocabularies(stores, merges)
        parts = zip(languages, tokenizers, merges, vocabularies, strict=True)
        source, target = (SidePipeline(*part) for part in parts)
        self.pipeline = TextPipeline(source, target, config.joint)
        self.pipeline.save(self.folder / "pipeline")
        with SplitWriter(self.folder, "train", self.pipeline) as writer:
            for side, name in enumerate(SIDES):
                done = 0
                for ids, lengths in stores[side].convert(pieces[side], vocabularies[side]):
                    writer.append(side, ids, lengths)
                    done += len(lengths)
                    self.progress(f"encoding train, {name}", done)
        self.splits["train"] = {**pairs.describe(), **writer.describe()}
        shutil.rmtree(temporary)

    def _read_words(
        self, corpora: list[Corpus], tokenizers: list[Tokenizer], stores: list[WordStore]
    ) -> PairCount:
        """Put the words of the kept training pairs into the stores."""
        pairs = PairCount()
        setup = partial(Tokenise, [each.describe() for each in tokenizers], self.rules)
        for chunk in ordered_map(setup, _chunks(corpora), self.config.workers):
            pairs.add(chunk)
            for store, text, lengths in zip(stores, chunk.texts, chunk.lengths, strict=True):
                store.append(text, lengths)
            self.progress("reading train", pairs.read)
        for store in stores:
            store.close()
        self._need_some(pairs, corpora)
        return pairs

    def _learn_merges(
        self, stores: list[WordStore], tokenizers: list[Tokenizer]
    ) -> list[BPE | None]:
        """Learn each side's BPE; characters have none."""
        if not self.config.bpe:
            return [None, None]
        self.progress("learning BPE", 0)
        if self.config.joint:
            return [self._learn_from_words(*stores)] * 2
        return [
            None if tokenizer.name == "char" else self._learn_from_words(store)
            for store, tokenizer in zip(stores, tokenizers, strict=True)
        ]

    def _learn_from_words(self, *stores: WordStore) -> BPE:
        counts = Counter[str]()
        for store in stores:
            counts.update(store.counts())
        words = worth_learning_from(counts)
        del counts  # as large as the corpus has words, and of no more use
        return learn_bpe(words, self.config.bpe)

    def _make_vocabularies(
        self, stores: list[WordStore], merges: list[BPE | None]
    ) -> tuple[list[Pieces], list[Vocabulary]]:
        """Cut the training words and choose each side's vocabulary."""
        config = self.config
        self.progress("making vocabularies", 0)
        numbers = [numbering()] * 2 if config.joint else [numbering(), numbering()]
        pieces = [Pieces(*side) for side in zip(stores, merges, numbers, strict=True)]
        counts = [side.counts() for side in pieces]
        if config.joint:
            # The target's numbers go on where the source's end.
            counts[0] = np.pad(counts[0], (0, len(counts[1]) - len(counts[0])))
            counts = [counts[0] + counts[1]] * 2
        sizes = config.source_vocabulary, config.target_vocabulary
        vocabularies = [
            Vocabulary.build(
                dict(zip(names, side.tolist(), strict=True)), size, config.min_frequency
            )
            for names, side, size in zip(numbers, counts, sizes, strict=True)
        ]
        return pieces, vocabularies

    def _encode(self, split: str, corpora: list[Corpus]) -> None:
        """Encode a split by the finished pipeline; valid and test keep all pairs and raw text."""
        training = split == "train"
        chunks = _chunks(corpora)
        setup = partial(Encode, self.folder / "pipeline", self.rules if training else None)
        pairs = PairCount()
        with SplitWriter(self.folder, split, self.pipeline) as writer:
            lines = chunks if training else self._keep_raw(split, chunks)
            for chunk in ordered_map(setup, lines, self.config.workers):
                pairs.add(chunk)
                for side in range(2):
                    writer.append(side, chunk.ids[side], chunk.lengths[side])
                self.progress(f"encoding {split}", pairs.read)
        self._need_some(pairs, corpora)
        self.splits[split] = {**pairs.describe(), **writer.describe()}

    def _keep_raw(self, split: str, chunks: Iterable[Lines]) -> Iterator[Lines]:
        """Write the raw lines that pass through."""
        paths = [raw_path(self.folder, split, side) for side in SIDES]
        paths[0].parent.mkdir(exist_ok=True)
        with paths[0].open("wb") as source, paths[1].open("wb") as target:
            for chunk in chunks:
                for file, lines in zip((source, target), chunk, strict=True):
                    file.write(("\n".join(lines) + "\n").encode())
                yield chunk

    def _need_some(self, pairs: PairCount, corpora: list[Corpus]) -> None:
        """Refuse training text of which nothing is left."""
        if pairs.kept:
            return
        reasons = describe_reasons(self.rules.max_length, self.rules.max_ratio)
        counts = [
            f"{pairs.dropped[key]} {words}" for key, words in reasons.items() if pairs.dropped[key]
        ]
        files = ", ".join(str(path) for corpus in corpora for path in corpus)
        raise DataError(
            f"{files}: none of {pairs.read} training pairs is left: {', '.join(counts)}"
        )

    def _write_manifest(self, corpora: dict[str, list[Corpus]]) -> None:
        options = self.config.to_dict()
        del options["out"], options["workers"]  # neither changes the content
        manifest = {
            "format": FORMAT,
            "nmtflex": nmtflex.__version__,
            "options": options,
            "filter": {"max_length": self.rules.max_length, "max_ratio": self.rules.max_ratio},
            "pipeline": self.pipeline.describe(),
            "splits": self.splits,
            "inputs": {
                split: [
                    {"path": str(path), **_digest(path), "byte_order_mark": starts_with_mark(path)}
                    for corpus in pairs
                    for path in corpus
                ]
                for split, pairs in corpora.items()
            },
            "files": {
                path.relative_to(self.folder).as_posix(): _digest(path)
                for path in sorted(self.folder.rglob("*"))
                if path.is_file()
            },
        }
        write_json(self.folder / MANIFEST, manifest)


def _chunks(corpora: list[Corpus]) -> Iterator[Lines]:
    return (chunk for corpus in corpora for chunk in read_chunks(*corpus))


def _load_like(folder: Path, config: PreprocessConfig) -> TextPipeline:
    """Read the text pipeline of a run or a prepared folder."""
    if not folder.is_dir():
        raise DataError(f"--like {folder}: no such folder")
    if not (folder / "pipeline").is_dir():
        raise DataError(f"--like {folder}: no run and no prepared folder: it has no pipeline")
    pipeline = TextPipeline.load(folder / "pipeline")
    asked = config.source_lang, config.target_lang
    known = pipeline.source.language, pipeline.target.language
    if asked != known:
        raise OptionError(
            f"--source-lang {asked[0]} and --target-lang {asked[1]}: "
            f"--like {folder} translates {known[0]} to {known[1]}"
        )
    return pipeline


def _describe_tokenizer(config: PreprocessConfig, name: str, language: str) -> dict[str, str]:
    """Return what ``build_tokenizer`` needs, of the options that concern that tokenizer."""
    settings: dict[str, dict[str, str]] = {
        "moses": {"language": language},
        "mecab": {"dictionary": config.mecab_dictionary},
    }
    return {"name": name, **settings.get(name, {})}


def _digest(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": digest}
