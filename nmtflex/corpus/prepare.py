"""Raw parallel text to a prepared folder.

Training text takes two streaming passes. The first tokenises and filters it and numbers its
distinct words; a subword model is learned from a sample of the pairs, pairs with too many
subwords are dropped, and vocabularies are built from the rest. The second turns the numbers into
ids. Valid and test, and everything under ``--like``, are encoded in one pass. Only the distinct
words are held in memory. ``--concat`` reads the training text once more (``corpus/concat.py``).
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

import nmtflex
from nmtflex.config import FORMAT, ConcatConfig, PreprocessConfig, describe_tokenizer
from nmtflex.corpus.concat import Concatenation, TrainingLines
from nmtflex.corpus.filters import Filter, build_filter
from nmtflex.corpus.guided import Spread, SpreadJoined, SpreadLinks, write_links
from nmtflex.corpus.inputs import Corpus, Lines, find_corpora, read_chunks
from nmtflex.corpus.learning import Learner, build_learners
from nmtflex.corpus.links import check_files, read_linked
from nmtflex.corpus.parallel import OnProgress
from nmtflex.corpus.passes import Encode, EncodedText, Tokenise, Tokenised
from nmtflex.corpus.readers import starts_with_mark
from nmtflex.corpus.splits import PairCount, SplitWriter
from nmtflex.corpus.store import (
    MANIFEST,
    SIDES,
    PreparedCorpus,
    TokenStore,
    id_type,
    links_path,
    open_prepared,
    raw_path,
)
from nmtflex.corpus.words import Pieces, WordStore, numbering
from nmtflex.errors import DataError, OptionError
from nmtflex.files import atomic_folder, file_hash, is_free, write_json
from nmtflex.text.pipeline import SidePipeline, TextPipeline
from nmtflex.text.subwords import Subwords
from nmtflex.text.tokenizers import Tokenizer, build_tokenizer
from nmtflex.text.vocabulary import Vocabulary
from nmtflex.workers import ordered_map


def prepare(
    config: PreprocessConfig,
    progress: OnProgress = lambda *_: None,
    concat: ConcatConfig | None = None,
) -> PreparedCorpus:
    """Make a prepared folder.

    Args:
        config: The input files and what to do with them.
        progress: Called now and then with the stage and the pairs done.
        concat: Which training sentences are joined; none by default.

    Returns:
        The folder, opened.

    Raises:
        OptionError: The output folder exists, ``--like`` has other languages, or it has no BPE to
            limit; or options of ``concat`` do not fit it.
        DataError: An input file is missing, damaged, empty or not parallel to its partner, or no
            training pair is left.
    """
    if not is_free(config.out):
        raise OptionError(f"--out {config.out} already exists; remove it or choose another folder")
    corpora = find_corpora(config)
    check_files(config.links)
    concat = concat or ConcatConfig()
    lines = None
    if concat.concat > 1:
        if not config.train:
            raise OptionError(f"--concat {concat.concat} has no effect without --train")
        lines = TrainingLines(corpora["train"], config.max_pairs or None, concat.concat_documents)
    with atomic_folder(config.out) as folder:
        _Preparation(config, concat, lines, folder, progress).run(corpora)
    return open_prepared(config.out)


class _Preparation:
    """One call of ``prepare``: the folder being written and what is known of it so far."""

    def __init__(
        self,
        config: PreprocessConfig,
        concat: ConcatConfig,
        lines: TrainingLines | None,
        folder: Path,
        progress: OnProgress,
    ) -> None:
        self.config = config
        self.concat = concat
        self.lines = lines  # to be joined, if any are
        self.folder = folder
        self.progress = progress
        self.splits: dict[str, Any] = {}
        # Pairs that subwords are learned from, and of how many.
        self.bpe_sample: dict[str, int] | None = None
        self.pipeline: TextPipeline
        self.rules: Filter

    def run(self, corpora: dict[str, list[Corpus]]) -> None:
        """Write everything."""
        if self.config.like:
            self.pipeline = _load_like(self.config.like, self.config)
            self.rules = self._filter_of_like()
            self.pipeline.save(self.folder / "pipeline")
        else:
            self._learn_from(corpora["train"])
        for split, pairs in corpora.items():
            if pairs and split not in self.splits:
                self._encode(split, pairs)
        guided = len(self.config.guided_alignment)
        files = {"train": self.config.links[:guided], "valid": self.config.links[guided:]}
        for split, paths in files.items():
            if paths:
                self._link(split, corpora[split], paths)
        self._write_manifest(corpora)

    def _filter_of_like(self) -> Filter:
        """Return the filter for training text under ``--like``."""
        sides = self.pipeline.source, self.pipeline.target
        split = [side.subwords is not None for side in sides]
        if self.config.max_subwords is not None and not any(split):
            raise OptionError(
                f"--max-subwords has no effect: --like {self.config.like} has no subwords"
            )
        return build_filter(self.config, [side.tokenizer.name for side in sides], split)

    def _learn_from(self, corpora: list[Corpus]) -> None:
        """Build the pipeline from the training text, and encode the text with it."""
        config = self.config
        languages = config.source_lang, config.target_lang
        names = config.source_tokenizer, config.target_tokenizer
        normalize = config.source_normalize, config.target_normalize
        tokenizers = [
            build_tokenizer(describe_tokenizer(*side, config), config.kytea_model)
            for side in zip(names, languages, normalize, strict=True)
        ]
        learners = build_learners(config)
        self.rules = build_filter(config, names, [learner is not None for learner in learners])
        temporary = self.folder / "words"
        temporary.mkdir()
        stores = [WordStore(temporary / side) for side in SIDES]
        pairs = self._read_words(corpora, tokenizers, stores)
        subwords = self._learn(stores, learners, pairs.kept)
        self.progress("making vocabularies", 0)
        numbers = [numbering()] * 2 if config.joint else [numbering(), numbering()]
        pieces = [Pieces(*side) for side in zip(stores, subwords, numbers, strict=True)]
        self._drop_long(pairs, stores, pieces)
        pairs.check(corpora, self.rules)
        vocabularies = self._make_vocabularies(pieces, subwords)
        parts = zip(languages, tokenizers, subwords, vocabularies, strict=True)
        source, target = (SidePipeline(*part) for part in parts)
        self.pipeline = TextPipeline(source, target, config.joint)
        self.pipeline.save(self.folder / "pipeline")
        self.splits["train"] = {**pairs.describe(), **self._write_train(stores, pieces)}
        shutil.rmtree(temporary)

    def _read_words(
        self, corpora: list[Corpus], tokenizers: list[Tokenizer], stores: list[WordStore]
    ) -> PairCount:
        """Write the words of the kept training pairs to the stores."""
        pairs = PairCount()
        setup = partial(Tokenise, tokenizers, self.rules)
        for chunk in ordered_map(setup, self._train_chunks(corpora), self.config.workers):
            self._add(chunk, pairs)
            for store, text, lengths in zip(stores, chunk.texts, chunk.lengths, strict=True):
                store.append(text, lengths)
            self.progress("reading train", pairs.read)
        for store in stores:
            store.close()
        pairs.check(corpora, self.rules)
        return pairs

    def _train_chunks(self, corpora: list[Corpus]) -> Iterator[Lines]:
        if self.lines is not None:
            return self.lines.read()
        return read_chunks(corpora, self.config.max_pairs or None)

    def _add(self, chunk: Tokenised | EncodedText, pairs: PairCount) -> None:
        """Count a chunk of training pairs."""
        pairs.add(chunk)
        if self.lines is not None:
            self.lines.keep(chunk.kept)

    def _learn(
        self, stores: list[WordStore], learners: list[Learner | None], kept: int
    ) -> list[Subwords | None]:
        """Make each side's subword model from a sample of the pairs; one model if joint."""
        size = min(self.config.bpe_sample or kept, kept)
        sample = np.arange(size) * kept // size

        def learn(learner: Learner | None, stores: list[WordStore]) -> Subwords | None:
            if learner is None:
                return None
            stage = f"learning {learner.title}"
            if learner.title:
                self.progress(stage, 0)
                self.bpe_sample = {"pairs": size, "of": kept}
            return learner(stores, sample, partial(self.progress, stage))

        if self.config.joint:
            return [learn(learners[0], stores)] * 2
        return [learn(learner, [store]) for learner, store in zip(learners, stores, strict=True)]

    def _drop_long(self, pairs: PairCount, stores: list[WordStore], pieces: list[Pieces]) -> None:
        """Drop pairs with too many subwords, before vocabularies are built from the others."""
        long = [
            store.longer_than(limit, side)
            for store, side, limit in zip(stores, pieces, self.rules.max_subwords, strict=True)
            if limit
        ]
        if not long or not len(dropped := np.unique(np.concatenate(long))):
            return
        pairs.drop("subwords", len(dropped))
        if self.lines is not None:
            self.lines.drop(dropped)
        for store in stores:
            store.drop(dropped)

    def _make_vocabularies(
        self, pieces: list[Pieces], subwords: list[Subwords | None]
    ) -> list[Vocabulary]:
        """Choose each side's vocabulary: all pieces of its model, or those of the text."""
        config = self.config
        counts = [side.counts() for side in pieces]
        if config.joint:
            # The target's numbers continue the source's.
            counts[0] = np.pad(counts[0], (0, len(counts[1]) - len(counts[0])))
            counts = [counts[0] + counts[1]] * 2
        sizes = config.source_vocabulary, config.target_vocabulary
        found = []
        for side, totals, size, model in zip(pieces, counts, sizes, subwords, strict=True):
            seen = dict(zip(side.numbers, totals.tolist(), strict=True))
            if model and model.pieces is not None:
                every = {piece: seen.get(piece, 0) for piece in model.pieces}
                found.append(Vocabulary.build(every, min_frequency=0))
            else:
                found.append(Vocabulary.build(seen, size, config.min_frequency))
        return found

    def _write_train(self, stores: list[WordStore], pieces: list[Pieces]) -> dict[str, Any]:
        """Turn the kept words into ids; return their manifest entry."""
        sides = self.pipeline.source, self.pipeline.target
        with SplitWriter(self.folder, "train", self.pipeline) as writer:
            for side, name in enumerate(SIDES):
                done = 0
                for ids, lengths in stores[side].convert(pieces[side], sides[side].vocabulary):
                    writer.append(side, ids, lengths)
                    done += len(lengths)
                    self.progress(f"encoding train, {name}", done)
            joined = self._write_joined(writer)
        return {**writer.describe(), **joined}

    def _write_joined(self, writer: SplitWriter) -> dict[str, Any]:
        """Add samples of several sentences after the kept pairs; return their manifest entry."""
        if self.lines is None:
            return {}
        concatenation = Concatenation(self.concat, self.pipeline, self.lines)
        setup = partial(Encode, self.folder / "pipeline", None)
        done = 0
        for chunk in ordered_map(setup, concatenation.join(writer.written()), self.config.workers):
            for side in range(2):
                writer.append(side, chunk.ids[side], chunk.lengths[side])
            done += len(chunk.kept)
            self.progress("joining train", done)
        return {"concat": concatenation.describe()}

    def _encode(self, split: str, corpora: list[Corpus]) -> None:
        """Encode a split with the finished pipeline; valid and test keep all pairs and raw text."""
        training = split == "train"
        chunks = self._train_chunks(corpora) if training else read_chunks(corpora)
        setup = partial(Encode, self.folder / "pipeline", self.rules if training else None)
        pairs = PairCount()
        with SplitWriter(self.folder, split, self.pipeline) as writer:
            lines = chunks if training else self._keep_raw(split, chunks)
            for chunk in ordered_map(setup, lines, self.config.workers):
                if training:
                    self._add(chunk, pairs)
                else:
                    pairs.add(chunk)
                for side in range(2):
                    writer.append(side, chunk.ids[side], chunk.lengths[side])
                self.progress(f"encoding {split}", pairs.read)
            pairs.check(corpora, self.rules)
            joined = self._write_joined(writer) if training else {}
        self.splits[split] = {**pairs.describe(), **writer.describe(), **joined}

    def _link(self, split: str, corpora: list[Corpus], files: list[Path]) -> None:
        """Write the links of a split's pairs, a file for each corpus."""
        training, about = split == "train", self.splits[split]
        setup = partial(Spread, self.folder / "pipeline", self.rules if training else None)
        lines = read_linked(corpora, files, (training and self.config.max_pairs) or None)
        chunks = ordered_map(setup, lines, self.config.workers)
        if training:
            chunks = chain(chunks, self._link_joined(files))
        dtype = id_type(max(about[side]["longest"] for side in SIDES))
        report = partial(self.progress, f"linking {split}")
        count = write_links(chunks, links_path(self.folder, split), dtype, report)
        about["links"] = {"dtype": dtype, **dataclasses.asdict(count)}

    def _link_joined(self, files: list[Path]) -> Iterator[SpreadLinks]:
        """Yield the links of the joined samples, which are drawn again."""
        if self.lines is None:
            return
        about = self.splits["train"]
        stores = [TokenStore(self.folder / f"train.{side}", about[side]["dtype"]) for side in SIDES]
        samples = Concatenation(self.concat, self.pipeline, self.lines).samples(stores, files)
        setup = partial(SpreadJoined, self.folder / "pipeline")
        yield from ordered_map(setup, samples, self.config.workers)

    def _keep_raw(self, split: str, chunks: Iterable[Lines]) -> Iterator[Lines]:
        """Write the raw lines, and pass them on."""
        paths = [raw_path(self.folder, split, side) for side in SIDES]
        paths[0].parent.mkdir(exist_ok=True)
        with paths[0].open("wb") as source, paths[1].open("wb") as target:
            for chunk in chunks:
                for file, lines in zip((source, target), chunk, strict=True):
                    file.write(("\n".join(lines) + "\n").encode())
                yield chunk

    def _write_manifest(self, corpora: dict[str, list[Corpus]]) -> None:
        options = self.config.to_dict() | self.concat.to_dict()
        del options["out"], options["workers"]  # neither changes the content
        manifest = {
            "format": FORMAT,
            "nmtflex": nmtflex.__version__,
            "options": options,
            "filter": dataclasses.asdict(self.rules),
            "pipeline": self.pipeline.describe(),
            "bpe_sample": self.bpe_sample,
            "splits": self.splits,
            "links": {str(path): _digest(path) for path in self.config.links},
            "inputs": {
                split: [_describe_input(path, each.read) for each in given for path in each.files]
                for split, given in corpora.items()
            }
            | self._documents(corpora["train"]),
            "files": {
                path.relative_to(self.folder).as_posix(): _digest(path)
                for path in sorted(self.folder.rglob("*"))
                if path.is_file()
            },
        }
        write_json(self.folder / MANIFEST, manifest)

    def _documents(self, corpora: list[Corpus]) -> dict[str, Any]:
        """Return the entry of the files that name documents, if there are any."""
        files = zip(self.concat.concat_documents, corpora, strict=False)
        entries = [_describe_input(path, corpus.read) for path, corpus in files]
        return {"documents": entries} if entries else {}


def _load_like(folder: Path, config: PreprocessConfig) -> TextPipeline:
    """Read the text pipeline of a run or a prepared folder."""
    if not folder.is_dir():
        raise DataError(f"--like {folder}: no such folder")
    if not (folder / "pipeline").is_dir():
        raise DataError(f"--like {folder}: neither a run nor a prepared folder: it has no pipeline")
    pipeline = TextPipeline.load(folder / "pipeline")
    asked = config.source_lang, config.target_lang
    known = pipeline.source.language, pipeline.target.language
    if asked != known:
        raise OptionError(
            f"--source-lang {asked[0]} and --target-lang {asked[1]}, but "
            f"--like {folder} translates {known[0]} to {known[1]}"
        )
    return pipeline


def _describe_input(path: Path, pairs: int) -> dict[str, Any]:
    """Return the manifest entry of a raw text file; ``pairs`` is the number read from it."""
    mark = starts_with_mark(path)
    return {"path": str(path), **_digest(path), "byte_order_mark": mark, "pairs": pairs}


def _digest(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "sha256": file_hash(path)}
