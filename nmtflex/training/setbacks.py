"""Setbacks that a training survives, and the error messages of those that end it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence

from nmtflex.config import LoopConfig
from nmtflex.corpus.batches import Pairs
from nmtflex.corpus.places import name_pairs
from nmtflex.corpus.store import PreparedCorpus
from nmtflex.errors import RunError
from nmtflex.files import is_full
from nmtflex.runs.folder import RunFolder, update_of
from nmtflex.training.gradients import Sums
from nmtflex.training.memory import is_out_of_memory
from nmtflex.training.progress import Progress


class Setbacks:
    """Counts skipped updates, and batches and pairs that did not fit into memory.

    Args:
        corpus: To name pairs.
        config: The loop's options.
        progress: Holds the counts.
    """

    def __init__(self, corpus: PreparedCorpus, config: LoopConfig, progress: Progress) -> None:
        self.corpus = corpus
        self.config = config
        self.progress = progress

    def count(
        self, chosen: Sequence[Pairs], left_out: Sequence[int], sums: Sums, norm: float
    ) -> Iterator[str]:
        """Count the setbacks of the update just made or skipped; yield a line for each.

        Args:
            chosen: The pairs of its batches.
            left_out: Those too large even alone.
            sums: Sums over the others.
            norm: The gradient's norm.
        """
        progress = self.progress
        pairs = [int(pair) for batch in chosen for pair in batch]
        where = f"update {progress.update:,}"
        if sums.splits:
            progress.batches_split += sums.splits
            yield (
                f"{where}: not enough memory for a batch of {name_pairs(self.corpus, pairs)}: "
                f"halved {_times(sums.splits)} ({progress.batches_split:,} so far); a lower "
                f"--batch-tokens avoids it"
            )
        if sums.left_out:
            progress.pairs_left_out += sums.left_out
            yield (
                f"{where}: not enough memory for {name_pairs(self.corpus, left_out)} "
                f"even alone: left out ({progress.pairs_left_out:,} so far); preprocess with a "
                f"lower --max-length or --max-subwords"
            )
        if is_sound(sums, norm):
            progress.skipped_in_row = 0
            return
        progress.skipped += 1
        progress.skipped_in_row += 1
        if sums.sentences:
            yield (
                f"{where}: the loss is {sums.objective / sums.tokens:.4g} and the gradient's norm "
                f"{norm:.4g}: skipped, weights stay as they were ({progress.skipped:,} so far); "
                f"its batch is {name_pairs(self.corpus, pairs)}"
            )
            if progress.skipped == 1:
                yield f"if this happens often, train with {cures(self.config, progress)}"


def is_sound(sums: Sums, norm: float) -> bool:
    """Whether there is a gradient, and it and its loss are numbers."""
    return sums.sentences > 0 and math.isfinite(sums.objective) and math.isfinite(norm)


def cures(config: LoopConfig, progress: Progress) -> str:
    """Return what usually keeps a loss finite, with the present values."""
    rate = f"{progress.rate * progress.factor:.3g}"
    clip = f"a lower --clip (now {config.clip:g})" if config.clip else "--clip 3 (now none)"
    return f"a lower --lr (now {rate}), a longer --warmup (now {config.warmup}) or {clip}"


def stopped(folder: RunFolder, config: LoopConfig, progress: Progress) -> RunError:
    """Return the error for too many skipped updates in a row."""
    limit = config.bad_updates
    return RunError(
        f"update {progress.update:,} was the last of {limit} in a row that were skipped "
        f"(--bad-updates {limit}); the state is saved in {folder.path}, with the weights before "
        f"them: look at the pairs named above, or train with {cures(config, progress)}, with "
        f"--dtype float32 or fewer --batch-tokens in another --run; the same command tries {limit} "
        f"more"
    )


@contextlib.contextmanager
def explained(folder: RunFolder, progress: Progress) -> Iterator[None]:
    """Turn errors of a full disk or exhausted memory into messages with progress and remedy.

    Raises:
        RunError: Instead of such an error; others pass.
    """
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of the output is gone
    except OSError as error:
        what = f"{error.filename}: " if error.filename else f"{folder.path}: "
        remedy = "make room" if is_full(error) else "fix that"
        raise RunError(
            f"{what}{error.strerror or error}; {_standing(folder, progress)}: {remedy} and give "
            f"the same command again"
        ) from error
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise RunError(
            f"not enough memory outside a batch's gradient ({str(error).splitlines()[0][:200]}); "
            f"{_standing(folder, progress)}: free some memory, or in another --run lower "
            f"--batch-tokens or --valid-beam, and give the command again"
        ) from error


def _standing(folder: RunFolder, progress: Progress) -> str:
    """Return how far the training was and what is saved."""
    kept = folder.updates()
    last = (
        f"the last checkpoint, of update {update_of(kept[-1]):,}, is intact"
        if kept
        else "no checkpoint was written yet"
    )
    return f"the training stopped at update {progress.update:,}, and {last}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"
