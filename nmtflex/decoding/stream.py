"""Translation of a stream of lines, in order and in constant memory."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable
from typing import BinaryIO

from nmtflex.config import OutputConfig, SearchConfig
from nmtflex.decoding.batching import buffers
from nmtflex.decoding.tally import Tally
from nmtflex.decoding.traces import attention_line
from nmtflex.decoding.translator import Translation, Translator
from nmtflex.errors import OptionError


def check_output(output: OutputConfig, search: SearchConfig) -> None:
    """Check what output and search options say together.

    Raises:
        OptionError: More hypotheses are asked for than the beam or the format holds.
    """
    if output.n_best > search.beam:
        raise OptionError(
            f"--n-best {output.n_best} is more than --beam {search.beam}; raise --beam"
        )
    if output.n_best > 1 and output.format == "text":
        raise OptionError(
            f"--n-best {output.n_best} needs --format moses or json; text is one line for each"
        )


def translate_stream(
    translator: Translator,
    lines: Iterable[str],
    out: BinaryIO,
    output: OutputConfig,
    report: Callable[[int, int], None] = lambda _sentences, _tokens: None,
    attention: BinaryIO | None = None,
    tally: Tally | None = None,
    show: Callable[[int, str, Translation], None] | None = None,
) -> None:
    """Translate lines as they come and write them in order, flushed after every buffer.

    Only ``output.buffer`` lines are held at a time; they are sorted by length for speed. Where
    reading fails, the lines before the fault are translated and written first.

    Args:
        translator: Does the work.
        lines: The source, without line ends.
        out: Takes UTF-8.
        output: Buffer, format and number of hypotheses.
        report: Called after every buffer with its number of lines and of target tokens.
        attention: Takes what attention looked at, an object a line; see ``attention_line``.
        tally: Takes the count of score computations.
        show: Called with the index, the source and the best translation of each line, with its
            trace, once the line is written.

    Raises:
        NmtflexError: What reading a line raises, or a broken model.
    """
    index = itertools.count()
    trace = attention is not None or show is not None
    for buffer in buffers(lines, output.buffer):
        found = translator.n_best(buffer, output.n_best, tally, trace)
        for source, translations in zip(buffer, found, strict=True):
            number = next(index)
            text = format_translations(number, source, translations, output.format)
            out.write(text.encode("utf-8"))
            if attention is not None:
                best, tokens = translations[0], translator.pipeline.source.segment(source)
                line = attention_line(tokens, best.tokens, best.score, best.trace)
                attention.write(line.encode("utf-8"))
            if show is not None:
                out.flush()
                show(number, source, translations[0])
        out.flush()
        report(len(buffer), sum(len(translations[0].tokens) for translations in found))


def format_translations(
    index: int, source: str, translations: list[Translation], style: str
) -> str:
    """Return the output lines of one source line, each ended by a line feed.

    In Moses' format, ``index ||| text ||| LogP= log-probability ||| score``, a ``|||`` inside a
    translation would part the fields: it is written as Moses' tokenizer escapes it,
    ``&#124;&#124;&#124;``. ``text`` and ``json`` write it as it is.
    """
    if style == "text":
        return translations[0].text + "\n"
    if style == "moses":
        return "".join(_moses(index, translation) for translation in translations)
    record = {
        "index": index,
        "source": source,
        "translations": [
            {
                "text": translation.text,
                "tokens": translation.tokens,
                "score": translation.score,
                "log_probability": translation.log_probability,
            }
            for translation in translations
        ],
    }
    return json.dumps(record, ensure_ascii=False) + "\n"


def _moses(index: int, translation: Translation) -> str:
    text = translation.text.replace("|||", "&#124;" * 3)
    return (
        f"{index} ||| {text} ||| LogP= {translation.log_probability:.6f} "
        f"||| {translation.score:.6f}\n"
    )
