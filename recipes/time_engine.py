"""Seconds in which an engine translates lines of subwords, on one thread.

    time_engine.py ENGINE MODEL SOURCE OUTPUT BATCH BEAM

ENGINE is one of those at the end. MODEL is a run of nmtflex, or what to_marian.py or
to_ctranslate2.py made of one. Loading it, translating the first lines once and tokenization do not
count. Runs in the Python that has the engine.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable
from pathlib import Path

WARM_UP = 64  # lines
Lines = list[str]
Translate = Callable[[Lines], Lines]


def nmtflex(model: Path, batch: int, beam: int, int8: bool, as_marian: bool) -> Translate:
    """Return what translates lines with nmtflex."""
    import nmtflex as engine

    if as_marian:
        from as_marian import become_marian

        become_marian()
    opened = engine.load(
        model, device="cpu", threads=1, beam=beam, batch_sentences=batch, int8=int8
    )
    words, made = opened.pipeline.source.vocabulary, opened.pipeline.target.vocabulary

    def translate(lines: Lines) -> Lines:
        ids = [words.ids(line.split()) for line in lines]
        found = opened.translate_ids(ids, count=1)
        return [" ".join(made.token(number) for number in one[0].ids) for one in found]

    return translate


def marian(model: Path, batch: int, beam: int) -> Translate:
    """Return what translates lines with Marian; as nmtflex, it sorts them by length."""
    import pymarian

    vocabulary = model.parent / "vocabulary.yml"
    translator = pymarian.Translator(
        f"--models {model} --vocabs {vocabulary} {vocabulary} --beam-size {beam} --normalize 1 "
        f"--mini-batch {batch} --maxi-batch {1000 if batch > 1 else 1} --maxi-batch-sort src "
        "--max-length 1000 --cpu-threads 1 --quiet --quiet-translation"
    )
    return lambda lines: list(translator.translate(lines))


def ctranslate2(model: Path, batch: int, beam: int) -> Translate:
    """Return what translates lines with CTranslate2; it sorts them, too."""
    import ctranslate2 as engine

    translator = engine.Translator(str(model), device="cpu", intra_threads=1, inter_threads=1)

    def translate(lines: Lines) -> Lines:
        words = [line.split() for line in lines]
        longest = 3 * max(map(len, words)) + 20
        found = translator.translate_batch(
            words,
            max_batch_size=batch,
            beam_size=beam,
            length_penalty=1,
            max_decoding_length=longest,
        )
        return [" ".join(one.hypotheses[0]) for one in found]

    return translate


ENGINES: dict[str, Callable[[Path, int, int], Translate]] = {
    "nmtflex": functools.partial(nmtflex, int8=False, as_marian=False),
    "nmtflex-int8": functools.partial(nmtflex, int8=True, as_marian=False),
    "nmtflex-as-marian": functools.partial(nmtflex, int8=False, as_marian=True),
    "nmtflex-as-marian-int8": functools.partial(nmtflex, int8=True, as_marian=True),
    "marian": marian,
    "ctranslate2": ctranslate2,
}

if __name__ == "__main__":
    engine, model, source, output, *numbers = sys.argv[1:]
    batch, beam = map(int, numbers)
    lines = Path(source).read_text(encoding="utf-8").splitlines()
    translate = ENGINES[engine](Path(model).resolve(), batch, beam)
    translate(lines[:WARM_UP])
    start = time.perf_counter()
    found = translate(lines)
    seconds = time.perf_counter() - start
    Path(output).write_text("".join(f"{line}\n" for line in found), encoding="utf-8")
    sys.stdout.write(f"{seconds}\n")
