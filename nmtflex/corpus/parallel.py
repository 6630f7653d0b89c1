"""Made corpora on disk: DIR/train.LANG, DIR/valid.LANG and DIR/test.LANG, whole or not there."""

from __future__ import annotations

import contextlib
from pathlib import Path

from nmtflex.errors import DataError
from nmtflex.files import atomic_file

Pair = tuple[str, str]  # source line and target line
Splits = dict[str, list[Pair]]  # split name to its pairs


def write_splits(out: Path, splits: Splits, languages: tuple[str, str]) -> None:
    """Write every split as two files of one line a sentence.

    The files take their names together when all are written, so a full disk leaves none.

    Raises:
        DataError: ``out`` holds one of the files already, or is no folder.
    """
    refuse_existing(out, list(splits), languages)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise DataError(f"{out}: not a folder; give another --out") from error
    with contextlib.ExitStack() as stack:
        for split, pairs in splits.items():
            for side, language in enumerate(languages):
                file = stack.enter_context(atomic_file(out / f"{split}.{language}"))
                file.writelines(f"{pair[side]}\n".encode() for pair in pairs)


def refuse_existing(out: Path, splits: list[str], languages: tuple[str, str]) -> None:
    """Refuse to write over files, before anything has been computed.

    Raises:
        DataError: Names the first file that is there.
    """
    for split in splits:
        for language in languages:
            path = out / f"{split}.{language}"
            if path.exists():
                raise DataError(f"{path} exists already; remove it or give another --out")


def describe(out: Path, splits: Splits, languages: tuple[str, str]) -> list[str]:
    """Say what was written, a line a split: pairs, tokens a sentence, different words."""
    lines = []
    for split, pairs in splits.items():
        sides = []
        for side, language in enumerate(languages):
            sentences = [pair[side].split() for pair in pairs]
            tokens = sum(map(len, sentences))
            words = len({word for sentence in sentences for word in sentence})
            mean = tokens / len(pairs) if pairs else 0.0
            sides.append(f".{language} {mean:.1f} tokens a sentence, {words} different")
        lines.append(f"{out / split}: {len(pairs):,} pairs; {'; '.join(sides)}")
    return lines
