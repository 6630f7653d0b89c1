"""The training loop.

The loop's only state is ``Progress`` and tensors, so an interrupted training resumes bit for bit as
if it had never stopped.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from nmtflex.config import LoopConfig
from nmtflex.corpus.batches import Pairs
from nmtflex.corpus.integrity import Integrity
from nmtflex.errors import StoppedError
from nmtflex.model.seq2seq import Seq2Seq
from nmtflex.ops.heap import give_back, reuse_large_blocks
from nmtflex.ranks import Ranks
from nmtflex.runs.folder import RunFolder
from nmtflex.training.checkpoint import save_best, save_checkpoint
from nmtflex.training.display import Display
from nmtflex.training.gradients import Gradients, Sums, clip_gradient
from nmtflex.training.joining import random_states
from nmtflex.training.metrics import Metrics
from nmtflex.training.optimizers.base import Optimizer
from nmtflex.training.progress import Progress
from nmtflex.training.schedule import Schedule
from nmtflex.training.setbacks import Setbacks, explained, is_sound, stopped
from nmtflex.training.signals import StopSignals
from nmtflex.training.validation import Validation, Validator

TIDY_EVERY = 20  # updates between two calls of ``give_back``
Check = Callable[[], None]  # raises if training must stop


@dataclass(eq=False, kw_only=True, slots=True)
class Trainer:
    """Trains a model on a prepared corpus."""

    config: LoopConfig  # its batches are of all processes together
    folder: RunFolder  # where everything is written
    model: Seq2Seq
    optimizer: Optimizer  # over the weights that are trained
    gradients: Gradients
    validator: Validator | None  # None without validation data
    schedule: Schedule
    progress: Progress
    order: list[Pairs]  # the pairs of each batch of this epoch
    setbacks: Setbacks
    integrity: Integrity  # of the prepared folder
    ranks: Ranks  # processes that share the work; they hold the same weights and progress
    notes: list[str]  # for the user, before the training begins

    def total_updates(self) -> int:
        """Return the updates of the whole training."""
        return self.schedule.total

    def finished(self) -> bool:
        """Whether no update is left."""
        progress, config = self.progress, self.config
        if self.out_of_patience():
            return True
        if config.updates:
            return progress.update >= config.updates
        last = config.last_epoch or 0
        return progress.epoch > last or (progress.epoch == last and self._epoch_done())

    def out_of_patience(self) -> bool:
        """Whether too many validations brought no new best."""
        patience = self.config.patience
        return bool(patience) and self.progress.validations_since_best >= patience

    def done(self) -> bool:
        """Whether the training is finished and its last weights are validated."""
        progress = self.progress
        return self.finished() and progress.update == progress.validated_update

    def _epoch_done(self) -> bool:
        return self.progress.position >= len(self.order)

    def _validation_due(self) -> bool:
        """Whether the current weights must be validated first."""
        progress = self.progress
        if progress.validated_update < 0:
            return True
        if progress.update == progress.validated_update:
            return False
        updates, seconds = self.config.interval()
        if updates is not None and progress.update % updates == 0:
            return True
        if seconds is not None and progress.seconds - progress.validated_seconds >= seconds:
            return True
        at_epochs = updates is None and seconds is None
        return (at_epochs and self._epoch_done()) or self.finished()

    def train(self, display: Display, metrics: Metrics | None) -> None:
        """Train to the end; only the first process has metrics to write.

        Raises:
            StoppedError: A signal arrived; the state is saved.
            RunError: Too many updates in a row were skipped; the state is saved. Or the disk is
                full, or memory ran out; the last checkpoint stays.
            DataError: The prepared folder has changed.
        """
        progress = self.progress
        reuse_large_blocks()

        def show(done: int, pieces: int) -> None:
            words = f"{done} of {pieces} pieces of a batch"
            display.working(progress.epoch, progress.update, words)

        if self.gradients.largest is not None:
            self.gradients.show = show
        with StopSignals() as signals, explained(self.folder, progress), self._saved_if_stopped():

            def check() -> None:
                if received := self.ranks.agree(signals.received):
                    raise StoppedError(
                        f"stopped by {received.name} at update {progress.update}; "
                        f"the state is saved in {self.folder.path}; the same command resumes",
                        received,
                    )

            while True:
                if self._validation_due():
                    self._validate(display, metrics, check)
                if self.finished():
                    return
                began = time.monotonic()
                if self._epoch_done():
                    self._next_epoch()
                self._update(display, metrics, began)
                self._stop_if_stuck()
                if progress.seconds - progress.saved_seconds >= self.config.save_seconds:
                    self._save()
                check()

    @contextlib.contextmanager
    def _saved_if_stopped(self) -> Iterator[None]:
        """Save when a signal has stopped the training, outside whatever it has interrupted."""
        try:
            yield
        except StoppedError:
            self._save()
            raise

    def _next_epoch(self) -> None:
        progress = self.progress
        progress.epoch += 1
        progress.position = 0
        self.schedule.start_epoch(progress)
        self.order = self.gradients.batches.order(self.config.seed, progress.epoch)

    def _update(self, display: Display, metrics: Metrics | None, began: float) -> None:
        """Make one optimiser step from the next batches of the epoch."""
        progress, config = self.progress, self.config
        after = progress.position + config.accumulate
        chosen = self.order[progress.position : after]
        sums, norm = self._step(chosen, self.order[after : after + config.accumulate])
        progress.update += 1
        if progress.update % TIDY_EVERY == 0:
            give_back()
        progress.position += len(chosen)
        progress.seconds += self.ranks.clock(time.monotonic() - began)
        for line in self.setbacks.count(chosen, self.gradients.left_out, sums, norm):
            display.line(line)
        if is_sound(sums, norm):
            progress.target_tokens += sums.tokens
            loss = sums.objective / sums.tokens
            rate = progress.rate * progress.factor
            display.advance(progress.epoch, progress.update, sums.tokens, loss, norm, rate)
        if progress.update % config.log_every == 0 and progress.window_tokens:
            self._log_training(metrics, norm if math.isfinite(norm) else None)

    def _stop_if_stuck(self) -> None:
        """Save and raise ``RunError`` if too many updates in a row were skipped."""
        progress, limit = self.progress, self.config.bad_updates
        if progress.skipped_in_row >= limit:
            progress.skipped_in_row = 0  # the same command may try as many again
            self._save()
            raise stopped(self.folder, self.config, progress)

    def _step(self, chosen: list[Pairs], following: list[Pairs]) -> tuple[Sums, float]:
        """Update the weights by the mean gradient per token, if it and the loss are finite.

        ``following`` are the batches of the next update. Returns sums over the pairs, and the
        gradient's norm.
        """
        progress, config = self.progress, self.config
        self.model.train()
        progress.factor = self.schedule.factor(progress.update + 1)
        self.optimizer.rate = progress.rate * progress.factor
        sums = self.gradients.of(chosen, following)
        norm = clip_gradient(self.model, config.clip)
        if is_sound(sums, norm):
            self.optimizer.step()
            self.optimizer.average.follow(progress.update + 1)
            progress.window_loss += sums.objective
            progress.window_tokens += sums.tokens
            progress.window_cross_entropy += sums.cross_entropy
            progress.window_gate += sums.gate
            progress.window_sentences += sums.sentences
            progress.window_alignment += sums.alignment
            progress.window_linked += sums.linked
        return sums, norm

    def _log_training(self, metrics: Metrics | None, norm: float | None) -> None:
        progress = self.progress
        mean = progress.window_cross_entropy / progress.window_tokens
        gate = progress.window_gate / progress.window_sentences if self.model.has_gate else None
        linked = progress.window_linked
        self._log(
            metrics,
            "train",
            loss=progress.window_loss / progress.window_tokens,
            perplexity=math.exp(min(mean, 700.0)),
            gradient_norm=norm,
            gate_mean=gate,
            alignment_loss=progress.window_alignment / linked if linked else None,
        )
        progress.window_loss = progress.window_cross_entropy = progress.window_gate = 0.0
        progress.window_tokens = progress.window_sentences = progress.window_linked = 0
        progress.window_alignment = 0.0

    def _log(self, metrics: Metrics | None, split: str, **values: float | None) -> None:
        progress = self.progress
        common = {
            "update": progress.update,
            "epoch": progress.epoch,
            "seconds": round(progress.seconds, 3),
            "target_tokens": progress.target_tokens,
            "learning_rate": progress.rate * progress.factor,
        }
        if metrics is not None:
            metrics.write(split, {**common, **values})
        progress.metric_rows += 1

    def _validate(self, display: Display, metrics: Metrics | None, check: Check) -> None:
        """Score the weights, keep them if they are the best, adapt the rate, save."""
        progress = self.progress
        began = time.monotonic()

        def show(done: int, total: int) -> None:
            words = f"validating {done:,} of {total:,} sentences"
            display.working(progress.epoch, progress.update, words)

        with self.optimizer.average.in_place():
            result = self.validator(self.model, check, show) if self.validator else None
        spent = self.ranks.clock(time.monotonic() - began)
        progress.seconds += spent
        progress.validation_seconds += spent
        progress.validated_update = progress.update
        progress.validated_seconds = progress.seconds
        best = progress.update > 0 and self._judge(result)  # the initial weights do not count
        self.schedule.end_validation(progress)
        if result is not None:
            self._log(
                metrics,
                "valid",
                loss=result.loss,
                perplexity=result.perplexity,
                bleu=result.bleu,
                gate_mean=result.gate,
                cps=result.cps,
                alignment_loss=result.alignment,
            )
            display.validation(
                f"epoch {progress.epoch}  update {progress.update:,}  valid {result.in_words()}"
                f"{'  best' if best else ''}  ({spent:.0f} s)",
                result,
            )
        if best and self.ranks.first:
            about = {"update": str(progress.update)}
            if result is not None:
                about |= {"bleu": str(result.bleu), "signature": result.signature}
            with self.optimizer.average.in_place():
                save_best(self.folder, self.model, about)
        self._save()
        give_back()
        display.working(progress.epoch, progress.update)
        display.pause()

    def _judge(self, result: Validation | None) -> bool:
        """Whether these are the best weights so far; without validation data the last ones are.

        At equal BLEU, which is often 0 in the first epochs, lower perplexity is better.
        """
        progress = self.progress
        score = perplexity = None
        if result is not None:
            # NaN would win every comparison.
            perplexity = math.inf if math.isnan(result.perplexity) else result.perplexity
            score = result.bleu if self.config.best_by == "bleu" else -perplexity
            before = progress.best_score
            known = progress.best_perplexity or math.inf
            if before is not None and (score, -perplexity) <= (before, -known):
                progress.validations_since_best += 1
                return False
        progress.best_score, progress.best_perplexity = score, perplexity
        progress.best_update = progress.update
        progress.validations_since_best = 0
        return True

    def _save(self) -> None:
        self.integrity.check()  # weights learned from other data are not saved
        self.progress.saved_seconds = self.progress.seconds
        random = random_states(self.ranks, self.model.device)
        if self.ranks.first:
            save_checkpoint(
                self.folder, self.model, self.optimizer, self.progress, self.config.keep, random
            )
        self.ranks.from_first()  # all processes wait until it is saved
