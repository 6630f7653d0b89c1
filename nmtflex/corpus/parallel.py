"""Generated corpora on disk: DIR/train.LANG, DIR/valid.LANG and DIR/test.LANG, all or none."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from nmtflex.errors import DataError
from nmtflex.files import atomic_file
from nmtflex.text.visible import counted

Pair = tuple[str, str]  # source line and target line
Splits = dict[str, list[Pair]]  # split name to its pairs
OnProgress = Callable[[str, int], None]  # called with the stage and the pairs done

STEP = 1000  # pairs between two calls of OnProgress


def numbered(size: int, stage: str, progress: OnProgress) -> Iterator[int]:
    """Count the pairs of a stage from 0, and report progress every ``STEP`` pairs."""
    for number in range(size):
        if not number % STEP:
            progress(stage, number)
        yield number


def write_splits(out: Path, splits: Splits, languages: tuple[str, str]) -> None:
    """Write every split as two files with one sentence a line.

    Raises:
        DataError: ``out`` already contains one of the files, or is not a folder.
    """
    with open_splits(out, list(splits), languages) as files:
        for split, pairs in splits.items():
            for side, file in enumerate(files[split]):
                file.writelines(f"{pair[side]}\n".encode() for pair in pairs)


@contextlib.contextmanager
def open_splits(
    out: Path, splits: list[str], languages: tuple[str, str]
) -> Iterator[dict[str, tuple[BinaryIO, BinaryIO]]]:
    """Open the source and target file of every split.

    They get their names together when the block ends without an error: a full disk leaves none.

    Raises:
        DataError: ``out`` already contains one of the files, or is not a folder.
    """
    refuse_existing(out, splits, languages)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise DataError(f"{out}: not a folder; give another --out") from error
    with contextlib.ExitStack() as stack:
        files: dict[str, tuple[BinaryIO, BinaryIO]] = {}
        for split in splits:
            source, target = (
                stack.enter_context(atomic_file(out / f"{split}.{language}"))
                for language in languages
            )
            files[split] = source, target
        yield files


def refuse_existing(out: Path, splits: list[str], languages: tuple[str, str]) -> None:
    """Refuse to overwrite files, before anything is computed.

    Raises:
        DataError: A file exists; the message names the first.
    """
    for split in splits:
        for language in languages:
            path = out / f"{split}.{language}"
            if path.exists():
                raise DataError(f"{path} already exists; remove it or give another --out")


def describe(out: Path, splits: Splits, languages: tuple[str, str]) -> list[str]:
    """Describe what was written, a line a split: pairs, tokens a sentence, distinct words."""
    lines = []
    for split, pairs in splits.items():
        sides = []
        for side in range(len(languages)):
            sentences = [pair[side].split() for pair in pairs]
            words = {word for sentence in sentences for word in sentence}
            sides.append((sum(map(len, sentences)), len(words)))
        lines.append(describe_split(out / split, len(pairs), languages, sides))
    return lines


def describe_split(
    prefix: Path, pairs: int, languages: tuple[str, str], sides: Iterable[tuple[int, int]]
) -> str:
    """Describe what was written of a split.

    Args:
        prefix: Path of its files without the language.
        pairs: Number of pairs.
        languages: Source and target.
        sides: Tokens and distinct words of each.
    """
    described = [
        f".{language} {tokens / max(1, pairs):.1f} tokens a sentence, {words:,} distinct"
        for language, (tokens, words) in zip(languages, sides, strict=True)
    ]
    return f"{prefix}: {counted(pairs, 'pair')}; {'; '.join(described)}"
