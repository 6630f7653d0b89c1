"""The forms in which a program calls a translator: lists, streams, asyncio, a with block.

All of them come down to ``n_best`` of a translator with the options of the call.
"""

from __future__ import annotations

import asyncio
import contextlib
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from nmtflex.config import OutputConfig, options_of
from nmtflex.decoding.asked import Asked
from nmtflex.decoding.batching import buffers, checked
from nmtflex.decoding.cut_off import cut_off, looping
from nmtflex.decoding.lifetime import Lifetime
from nmtflex.decoding.options import CallOptions, Options, ReturnedConfig, alike
from nmtflex.decoding.tally import Tally
from nmtflex.decoding.translation import Translation
from nmtflex.decoding.turns import computing_with

Result = TypeVar("Result")


class Calls(ABC):
    """What a translator can do besides ``n_best``.

    Args:
        options: Of calls that give none.

    Attributes:
        threads: CPU threads of its computations; None for as many as PyTorch has.
    """

    threads: int | None = None

    def __init__(self, options: Options) -> None:
        self._options = options
        self._lifetime = Lifetime(self._free)
        self._background: ThreadPoolExecutor | None = None

    @abstractmethod
    def n_best(
        self,
        lines: Iterable[str],
        count: int,
        tally: Tally | None = None,
        **asked: Unpack[Asked],
    ) -> list[list[Translation]]:
        """Return the ``count`` best translations of each line."""

    @abstractmethod
    def _under(self, options: Options) -> Calls:
        """Return a translator with other options that shares all else.

        Raises:
            OptionError: The model cannot do what they ask.
        """

    @abstractmethod
    def _free(self) -> None:
        """Let go of the model."""

    def translate(self, lines: Iterable[str], **options: Unpack[CallOptions]) -> list[str]:
        """Return the best translation of each line, in order.

        A line without words gives an empty string. A line longer than ``max_source_length`` is
        truncated there, with a warning. Another warning counts the translations that reached the
        maximum length.

        Args:
            lines: Raw lines: a list, a generator, an open file. All are read first.
            **options: Of this call; see ``CallOptions``.

        Raises:
            TypeError: ``lines`` is a single string, or does not consist of strings.
            OptionError: An option is unknown, or has an invalid value for this run.
            RuntimeError: The translator is closed, or this process was forked after it was loaded.
        """
        best = self._best("translate", lines, options)
        self.warn_of_cuts(best)
        return [translation.text for translation in best]

    def translate_batch(
        self,
        lines: Iterable[str],
        n_best: int = 1,
        trace: bool = False,
        align: bool = False,
        each: Sequence[Mapping[str, Any] | None] | None = None,
        tally: Tally | None = None,
        **options: Unpack[CallOptions],
    ) -> list[list[Translation]]:
        """Return translations of each line with scores, the best first; see ``Translation``.

        Lines with the same options are decoded together, whatever their maximum lengths. What a
        line gives does not depend on the others. ``Translation.to_dict`` returns plain values.

        Args:
            lines: Raw lines; all are read first.
            n_best: Translations of each line. There may be fewer, and never are more than the beam
                size.
            trace: Whether the best translation of each line carries a ``trace``.
            align: Whether every translation carries its word alignment, ``attended``.
            each: Options of each line, which go before those of the call: ``n_best``, ``trace``,
                ``align`` and those of ``CallOptions``. None: those of the call.
            tally: If given, counts the score computations of attention (CPS).
            **options: Of all lines of this call; see ``CallOptions``.

        Raises:
            TypeError: ``lines`` is a single string, or does not consist of strings; or ``each``
                does not consist of dictionaries.
            OptionError: An option is unknown, or has an invalid value for this run; or lines are
                split into sentences, and ``n_best`` is more than 1, or ``trace`` or ``align`` is
                set.
            ValueError: It is to be aligned, and no model has weights over source positions; or
                ``each`` has not as many options as there are lines.
            RuntimeError: The translator is closed, or this process was forked after it was loaded.
        """
        lines = list(checked(lines))
        given = {"n_best": n_best, "trace": trace, "align": align, **options}
        common = self._options.changed("translate_batch", given)
        if each is None:
            return self._all_of(lines, common, tally)
        if len(each) != len(lines):
            raise ValueError(f"there are {len(lines)} lines, and options for {len(each)} in each")
        found: list[list[Translation]] = [[] for _ in lines]
        own_options = [common.changed("translate_batch", one) for one in _dictionaries(each)]
        for group in alike(own_options):
            texts = [lines[place] for place in group.places]
            own = group.limits, group.prefixes
            results = self._all_of(texts, group.options, tally, *own)
            for place, result in zip(group.places, results, strict=True):
                found[place] = result
        return found

    def stream(
        self,
        lines: Iterable[str],
        buffer: int = 256,
        trace: bool = False,
        align: bool = False,
        **options: Unpack[CallOptions],
    ) -> Iterator[Translation]:
        """Yield the best translation of each line, in order, while the lines are read.

        So lines may come from a generator that never ends, and memory stays constant. If reading a
        line fails, the translations of the lines before it come first.

        Args:
            lines: Raw lines.
            buffer: Lines that are read ahead and decoded together; with 1 each line is translated
                at once.
            trace: Whether a translation carries a ``trace``.
            align: Whether a translation carries its word alignment, ``attended``.
            **options: Of this call; see ``CallOptions``.

        Raises:
            TypeError: ``lines`` is a single string, or a line is not a string.
            OptionError: An option is unknown, or has an invalid value for this run.
            RuntimeError: The translator is closed, or this process was forked after it was loaded.
        """
        size = OutputConfig.from_dict({"buffer": buffer}).buffer
        given = {"trace": trace, "align": align, **options}
        chosen = self._options.changed("stream", given, ("n_best",))
        self._lifetime.check()
        ahead = buffers(checked(lines), size)
        return (best for buffer in ahead for (best,) in self._all_of(buffer, chosen))

    async def translate_async(
        self, lines: Iterable[str], **options: Unpack[CallOptions]
    ) -> list[str]:
        """Do what ``translate`` does in a thread, while the event loop goes on.

        Calls of one translator are answered one after another. A call that is cancelled before its
        turn costs nothing; after that its result is dropped.

        Args:
            lines: Raw lines, read in that thread.
            **options: Of this call; see ``CallOptions``.

        Raises:
            TypeError: As ``translate``, and so are the others.
            OptionError: An option is unknown, or has an invalid value for this run.
            RuntimeError: The translator is closed, or this process was forked after it was loaded.
        """
        best = await self._in_background(lambda: self._best("translate_async", lines, options))
        self.warn_of_cuts(best)
        return [translation.text for translation in best]

    async def translate_batch_async(
        self,
        lines: Iterable[str],
        n_best: int = 1,
        trace: bool = False,
        align: bool = False,
        each: Sequence[Mapping[str, Any] | None] | None = None,
        tally: Tally | None = None,
        **options: Unpack[CallOptions],
    ) -> list[list[Translation]]:
        """Do what ``translate_batch`` does in a thread; see ``translate_async``.

        Args:
            lines: Raw lines, read in that thread.
            n_best: Translations of each line.
            trace: Whether the best translation of each line carries a ``trace``.
            align: Whether every translation carries its word alignment.
            each: Options of each line.
            tally: If given, counts the score computations of attention (CPS).
            **options: Of all lines of this call; see ``CallOptions``.

        Raises:
            TypeError: As ``translate_batch``, and so are the others.
            OptionError: An option is unknown, or has an invalid value for this run.
            ValueError: Nothing to align by, or ``each`` has another length than ``lines``.
            RuntimeError: The translator is closed, or this process was forked after it was loaded.
        """
        return await self._in_background(
            lambda: self.translate_batch(lines, n_best, trace, align, each, tally, **options)
        )

    def close(self) -> None:
        """Free the model; a call after this raises RuntimeError.

        Calls that other threads have begun end first, and the model is freed after the last.
        A with block closes its translator at the end.
        """
        self._lifetime.close()
        if self._background is not None:
            self._background.shutdown(wait=False)

    def __enter__(self) -> Self:
        """Return the translator itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    @contextlib.contextmanager
    def _call(self) -> Iterator[None]:
        """Run a call in the block; calls may be nested.

        Raises:
            RuntimeError: The translator is closed, or this process was forked after it was loaded.
        """
        with self._lifetime.call(), computing_with(self.threads):
            yield

    def _best(
        self, caller: str, lines: Iterable[str], options: Mapping[str, Any]
    ) -> list[Translation]:
        """Return the best translation of each line."""
        chosen = self._options.changed(caller, options, tuple(options_of(ReturnedConfig)))
        return [best for (best,) in self._all_of(lines, chosen)]

    def _all_of(
        self,
        lines: Iterable[str],
        options: Options,
        tally: Tally | None = None,
        limits: Sequence[int] | None = None,
        prefixes: Sequence[str] | None = None,
    ) -> list[list[Translation]]:
        """Translate lines that have the same options: every form of a call comes here."""
        with self._call():
            view, returned = self._under(options), options.returned
            if prefixes is None and options.prefix:
                lines = list(checked(lines))
                prefixes = [options.prefix] * len(lines)
            return view.n_best(
                lines,
                returned.n_best,
                tally=tally,
                trace=returned.trace,
                align=returned.align,
                limits=limits,
                word_scores=returned.word_scores,
                glossary=options.glossary,
                prefixes=prefixes,
            )

    def warn_of_cuts(self, best: Sequence[Translation]) -> None:
        """Warn a method's caller of sources that were cut, and of outputs that may be.

        Args:
            best: The translation of each line.
        """
        for index, translation in enumerate(best):
            if translation.unread:
                limit = self._options.search.max_source_length
                warnings.warn(
                    f"line {index} (from 0) has {limit + translation.unread:,} tokens; the first "
                    f"{limit:,} were translated (max_source_length)",
                    stacklevel=3,
                )
        if truncated := [index for index, one in enumerate(best) if one.truncated]:
            subject = f"{len(truncated):,} of {len(best):,} translations"
            loops = sum(looping(best[index].tokens) for index in truncated)
            where = f", first that of line {truncated[0]} (from 0)"
            warnings.warn(cut_off(subject, loops, where, flags=False), stacklevel=3)

    async def _in_background(self, compute: Callable[[], Result]) -> Result:
        """Compute in a thread of this translator; see ``translate_async``."""
        self._lifetime.check()
        if self._background is None:
            self._background = ThreadPoolExecutor(1, thread_name_prefix="nmtflex")
        return await asyncio.get_running_loop().run_in_executor(self._background, compute)


def _dictionaries(each: Sequence[Mapping[str, Any] | None]) -> Iterator[Mapping[str, Any]]:
    """Return the options of each line.

    Raises:
        TypeError: Those of a line are no dictionary.
    """
    for index, options in enumerate(each):
        if not isinstance(options, Mapping | None):
            raise TypeError(
                "each takes a dictionary of options for each line, or None; that of line "
                f"{index} (from 0) is of {type(options).__name__}"
            )
        yield options or {}
