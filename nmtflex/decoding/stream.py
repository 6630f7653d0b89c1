"""Translation of a stream of lines, in order and in constant memory."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

from nmtflex.config import OutputConfig, SearchConfig
from nmtflex.corpus.writers import open_lines
from nmtflex.decoding.batching import buffers
from nmtflex.decoding.cut_off import cut_off, looping
from nmtflex.decoding.links import pharaoh_line
from nmtflex.decoding.tally import Tally
from nmtflex.decoding.traces import attention_line
from nmtflex.decoding.translation import Translation
from nmtflex.decoding.translator import Translator
from nmtflex.errors import OptionError
from nmtflex.text.glossary import Glossary
from nmtflex.text.pipeline import SidePipeline, TextPipeline
from nmtflex.text.spans import spans_of
from nmtflex.text.visible import counted
from nmtflex.workers import ordered_map

WORKER_LINES = 128  # a chunk for one of several workers
SHOWN = 5  # lines that a warning names


def check_output(output: OutputConfig, search: SearchConfig) -> None:
    """Check output and search options against each other.

    Raises:
        OptionError: ``n_best`` is more than the beam or the format allows.
    """
    if output.n_best > search.beam:
        raise OptionError(
            f"--n-best {output.n_best} is more than --beam {search.beam}; raise --beam"
        )
    if output.n_best > 1 and output.format == "text":
        raise OptionError(
            f"--n-best {output.n_best} needs --format moses or json; text is one line for each"
        )


class Chunk(NamedTuple):
    """Lines and their translations, made together."""

    lines: list[str]
    found: list[list[Translation]]  # of each line, the best first
    tally: Tally


@dataclass(frozen=True)
class ChunkTranslation:
    """Makes the function that translates chunks of lines, in this process or in a worker.

    Args:
        open_translator: Opens the model; it is pickled for a spawned worker.
        n_best: Hypotheses per line.
        trace: Whether to return traces of attention.
        counting: Whether to count score computations.
        align: Whether to align words.
        word_scores: Whether to score words.
        glossary: Terms that come out as given.
    """

    open_translator: Callable[[], Translator]
    n_best: int
    trace: bool
    counting: bool
    align: bool = False
    word_scores: bool = False
    glossary: Glossary | None = None

    def __call__(self) -> Callable[[list[str]], Chunk]:
        """Open the model, and return a function that translates a chunk."""
        translator = self.open_translator()

        def translate(lines: list[str]) -> Chunk:
            tally = Tally()
            counted = tally if self.counting else None
            found = translator.n_best(
                lines,
                self.n_best,
                counted,
                trace=self.trace,
                align=self.align,
                word_scores=self.word_scores,
                glossary=self.glossary,
            )
            return Chunk(lines, found, tally)

        return translate


def translated(
    setup: ChunkTranslation, lines: Iterable[str], output: OutputConfig, spawn: bool = True
) -> Iterator[Chunk]:
    """Translate lines as they come, in order, in this process or in several workers.

    ``output.buffer`` lines at a time are sorted by length for speed; no more are held, and twice as
    many if there are workers. If reading fails, the lines before come first.

    Args:
        setup: Opens the model; called once, or once per worker.
        lines: The source, without line ends.
        output: Buffer and workers.
        spawn: Whether workers are spawned; otherwise they are forked and share what is loaded.

    Raises:
        NmtflexError: From reading a line, or the model is broken.
    """
    whole = buffers(lines, output.buffer)
    if output.workers == 1:
        return ordered_map(setup, whole)
    return _shared(setup, whole, output.workers, spawn)


def _shared(
    setup: ChunkTranslation, whole: Iterable[list[str]], workers: int, spawn: bool
) -> Iterator[Chunk]:
    """Yield buffers of lines, translated by several workers: each chunk is of similar lengths."""
    orders = deque[list[int]]()

    def chunks() -> Iterator[list[str]]:
        for buffer in whole:
            order = sorted(range(len(buffer)), key=lambda place: -len(buffer[place]))
            orders.append(order)
            for at in range(0, len(order), WORKER_LINES):
                yield [buffer[place] for place in order[at : at + WORKER_LINES]]

    made, lines, tally = list[list[Translation]](), list[str](), Tally()
    for chunk in ordered_map(setup, chunks(), workers, spawn):
        lines += chunk.lines
        made += chunk.found
        tally.merge(chunk.tally)
        if len(lines) == len(orders[0]):
            order = orders.popleft()
            places = sorted(range(len(order)), key=order.__getitem__)
            yield Chunk([lines[x] for x in places], [made[x] for x in places], tally)
            made, lines, tally = [], [], Tally()


def write_chunks(
    chunks: Iterable[Chunk],
    out: BinaryIO,
    style: str,
    report: Callable[[int, int], None] = lambda _sentences, _tokens: None,
    besides: Besides | None = None,
    tally: Tally | None = None,
    show: Callable[[int, str, Translation], None] | None = None,
) -> None:
    """Write translated lines in order, flushed after every chunk.

    Args:
        chunks: The lines with their translations.
        out: Takes UTF-8.
        style: Format of ``format_translations``.
        report: Called after every chunk with its number of lines and of target tokens.
        besides: Receives what attention looked at, if given.
        tally: Receives the count of score computations, if given.
        show: Called with the index, the source and the best translation of each line, with its
            trace, once the line is written.
    """
    index = itertools.count()
    for chunk in chunks:
        for source, translations in zip(chunk.lines, chunk.found, strict=True):
            number = next(index)
            text = format_translations(number, source, translations, style)
            out.write(text.encode("utf-8"))
            if besides is not None:
                besides.write(source, translations)
            if show is not None:
                out.flush()
                show(number, source, translations[0])
        out.flush()
        if tally is not None:
            tally.merge(chunk.tally)
        report(len(chunk.lines), sum(len(best.tokens) for best, *_ in chunk.found))


def watch_cut(chunks: Iterable[Chunk], tell: Callable[[str], None]) -> Iterator[Chunk]:
    """Pass chunks on; tell at the end which sources were cut, and which outputs may be."""
    lines = loops = 0
    unread, truncated = _Noted(), _Noted()
    for chunk in chunks:
        for number, (best, *_) in enumerate(chunk.found, start=lines + 1):
            if best.unread:
                unread.add(number)
            if best.truncated:
                truncated.add(number)
                loops += looping(best.tokens)
        lines += len(chunk.found)
        yield chunk
    if unread.count:
        tell(
            f"warning: --max-source-length cut {counted(unread.count, 'line')}, whose rest was not "
            f"translated ({unread})"
        )
    if truncated.count:
        subject = counted(truncated.count, "translation")
        tell(f"warning: {cut_off(subject, loops, f' ({truncated})', flags=True)}")


class _Noted:
    """Counts lines, and keeps the numbers of the first ones."""

    def __init__(self) -> None:
        self.count = 0
        self._first: list[str] = []

    def add(self, number: int) -> None:
        """Count a line."""
        self.count += 1
        if len(self._first) < SHOWN:
            self._first.append(f"{number:,}")

    def __str__(self) -> str:
        more = f" and {self.count - SHOWN:,} more" if self.count > SHOWN else ""
        return f"line {', '.join(self._first)}{more}"


@dataclass(frozen=True)
class Besides:
    """Files about attention and words, beside the translations.

    Args:
        attention: Traces of the best translations, one object per line; see ``attention_line``.
        alignment: Word alignments of all translations, one per line; see ``pharaoh_line``.
        word_scores: Scores of all translations, one object per line; see ``scores_line``.
        pipeline: The run's, which segments raw lines.
    """

    attention: BinaryIO | None
    alignment: BinaryIO | None
    word_scores: BinaryIO | None
    pipeline: TextPipeline

    def write(self, line: str, translations: Sequence[Translation]) -> None:
        """Write what belongs to a raw source and its translations."""
        if self.attention is not None:
            best, tokens = translations[0], self.pipeline.source.segment(line)
            record = attention_line(tokens, best.tokens, best.score, best.trace)
            self.attention.write(record.encode())
        if self.alignment is not None:
            links = "".join(pharaoh_line(one.attended) for one in translations)
            self.alignment.write(links.encode())
        if self.word_scores is not None:
            lines = (scores_line(self.pipeline.target, one) for one in translations)
            self.word_scores.write("".join(lines).encode())


@contextlib.contextmanager
def open_besides(output: OutputConfig, pipeline: TextPipeline) -> Iterator[Besides]:
    """Open the files that the options name; see ``Besides``."""
    with contextlib.ExitStack() as files:
        attention, alignment, scores = (
            files.enter_context(open_lines(path)) if path else None
            for path in (output.attention_output, output.alignment, output.word_scores)
        )
        yield Besides(attention, alignment, scores, pipeline)


def format_translations(
    index: int, source: str, translations: list[Translation], style: str
) -> str:
    """Return the output lines of one source line, each ended by a line feed.

    In Moses' format, ``index ||| text ||| LogP= log-probability ||| score``, a ``|||`` inside a
    translation is escaped as by Moses' tokenizer: ``&#124;&#124;&#124;``.
    """
    if style == "text":
        return translations[0].text + "\n"
    if style == "moses":
        return "".join(_moses(index, translation) for translation in translations)
    record: dict[str, Any] = {
        "index": index,
        "source": source,
        "translations": [
            {
                "text": translation.text,
                "tokens": translation.tokens,
                "score": translation.score,
                "log_probability": translation.log_probability,
                "truncated": translation.truncated,
            }
            for translation in translations
        ],
    }
    if (units := translations[0].units) is not None:
        record["units"] = [{"source": unit, "text": text} for unit, text in units]
    return json.dumps(record, ensure_ascii=False) + "\n"


def scores_line(target: SidePipeline, translation: Translation) -> str:
    """Return a line of the file of word scores: a JSON object, ended by a line feed."""
    text, words = translation.text, translation.words
    record = {
        "text": text,
        "words": words,
        "spans": spans_of(text, words, target.tokenizer, None),
        "scores": [round(score, 6) for score in translation.word_scores],
        "confidence": _rounded(translation.confidence),
        "unaligned": _rounded(translation.unaligned),
    }
    return json.dumps(record, ensure_ascii=False) + "\n"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _moses(index: int, translation: Translation) -> str:
    text = translation.text.replace("|||", "&#124;" * 3)
    return (
        f"{index} ||| {text} ||| LogP= {translation.log_probability:.6f} "
        f"||| {translation.score:.6f}\n"
    )
