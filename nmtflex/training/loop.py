"""The training loop.

The loop holds no state but ``Progress`` and tensors: what to do next follows from them alone, so a
training that was cut off goes on, bit for bit, as if it never had been.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import IO

import torch
from torch import nn

from nmtflex.config import LoopConfig
from nmtflex.corpus.batches import Batch, Batches
from nmtflex.corpus.store import PreparedCorpus
from nmtflex.errors import RunError, StoppedError
from nmtflex.model.run import RunFolder
from nmtflex.model.seq2seq import Seq2Seq
from nmtflex.ranks import Ranks
from nmtflex.training.checkpoint import save_best, save_checkpoint
from nmtflex.training.display import Display
from nmtflex.training.joining import random_states
from nmtflex.training.metrics import Metrics
from nmtflex.training.progress import Progress
from nmtflex.training.signals import StopSignals
from nmtflex.training.tensors import loss_of
from nmtflex.training.validation import Validation, Validator

Check = Callable[[], None]  # raises where training must stop


class Trainer:
    """Trains a model on a prepared corpus.

    Args:
        config: The loop's options.
        folder: The run, where everything is written.
        corpus: Training data, and validation data if there is any.
        model: On its device.
        optimizer: Over the model's weights.
        progress: How far it is.
        tau: Penalty threshold of the validations.
        ranks: Processes that share the work; they hold the same weights and progress.
    """

    lock: IO[str] | None = None  # kept open while the trainer lives; it keeps other trainings out

    def __init__(
        self,
        config: LoopConfig,
        folder: RunFolder,
        corpus: PreparedCorpus,
        model: Seq2Seq,
        optimizer: torch.optim.Optimizer,
        progress: Progress,
        tau: float = math.inf,
        ranks: Ranks | None = None,
    ) -> None:
        self.ranks = ranks or Ranks()
        self.config = config
        self.folder = folder
        self.model = model
        self.optimizer = optimizer
        self.progress = progress
        self.batches = Batches(
            corpus.store("train", "source"),
            corpus.store("train", "target"),
            config.token_budget,
            config.batch_sentences,
        )
        self.validator = None
        if "valid" in corpus.splits:
            self.validator = Validator(
                corpus, config.valid_beam, config.token_budget, tau, self.ranks
            )
        self.order = self.batches.order(config.seed, progress.epoch)

    def total_updates(self) -> int:
        """Estimate the updates of the whole training (exact where they are counted)."""
        if self.config.updates:
            return self.config.updates
        return (self.config.last_epoch or 0) * math.ceil(len(self.order) / self.config.accumulate)

    def finished(self) -> bool:
        """Whether no update is left to make."""
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
        """Whether the weights as they are must be validated before going on."""
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
        """Train to the end; processes that are not the first have no metrics to write.

        Raises:
            StoppedError: A signal came; the state is saved.
            RunError: The loss or the gradient is no longer a number.
        """
        with StopSignals() as signals:

            def check() -> None:
                if received := self.ranks.agree(signals.received):
                    self._save()
                    raise StoppedError(
                        f"stopped by {received.name} at update {self.progress.update}; "
                        f"the state is saved in {self.folder.path}; the same command goes on",
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
                if self.progress.seconds - self.progress.saved_seconds >= self.config.save_seconds:
                    self._save()
                check()

    def _next_epoch(self) -> None:
        progress = self.progress
        progress.epoch += 1
        progress.position = 0
        if self.config.halve_from and progress.epoch >= self.config.halve_from:
            progress.rate /= 2
        self.order = self.batches.order(self.config.seed, progress.epoch)

    def _update(self, display: Display, metrics: Metrics | None, began: float) -> None:
        """Make one optimiser step from the next batches of the epoch."""
        progress, config = self.progress, self.config
        chosen = self.order[progress.position : progress.position + config.accumulate]
        own = [pairs for pairs in map(self.ranks.share, chosen) if len(pairs)]
        batches = [self.batches.collate(pairs) for pairs in own]
        tokens = self.batches.target_tokens(chosen)  # of all processes
        loss, norm = self._step(batches, tokens)
        progress.update += 1
        progress.position += len(chosen)
        progress.target_tokens += tokens
        progress.seconds += self.ranks.clock(time.monotonic() - began)
        display.advance(progress.epoch, progress.update, tokens, loss / tokens, norm)
        if progress.update % config.log_every == 0:
            self._log_training(metrics, norm)

    def _step(self, batches: list[Batch], tokens: int) -> tuple[float, float]:
        """Descend along the mean gradient a token; return the loss and the gradient's norm."""
        progress, config = self.progress, self.config
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        for group in self.optimizer.param_groups:
            group["lr"] = progress.rate
        total = plain = gates = 0.0
        sentences = 0
        for batch in batches:
            loss = loss_of(self.model, batch, config.label_smoothing, config.gate_weight)
            torch.autograd.backward(loss.objective / tokens)
            total += float(loss.objective.detach())
            plain += float(loss.cross_entropy)
            sentences += loss.sentences
            if loss.gate is not None:
                gates += float(loss.gate)
        self.ranks.sum_gradients(self.model.parameters())
        total, plain, gates, count = self.ranks.sum([total, plain, gates, sentences])
        progress.window_loss += total
        progress.window_cross_entropy += plain
        progress.window_gate += gates
        progress.window_sentences += int(count)
        progress.window_tokens += tokens
        norm = float(nn.utils.clip_grad_norm_(self.model.parameters(), config.clip or math.inf))
        if not math.isfinite(norm):
            raise RunError(
                f"the gradient's norm is {norm} at update {progress.update + 1}; lower --lr "
                f"or --clip and train again; the last checkpoint stays as it was"
            )
        self.optimizer.step()
        return total, norm

    def _log_training(self, metrics: Metrics | None, norm: float) -> None:
        progress = self.progress
        mean = progress.window_cross_entropy / progress.window_tokens
        self._log(
            metrics,
            "train",
            loss=progress.window_loss / progress.window_tokens,
            perplexity=math.exp(min(mean, 700.0)),
            gradient_norm=norm,
            gate_mean=self._mean_gate(),
        )
        progress.window_loss = progress.window_cross_entropy = progress.window_gate = 0.0
        progress.window_tokens = progress.window_sentences = 0

    def _mean_gate(self) -> float | None:
        """Return the mean gate since the last row; None where attention has no gate."""
        if not self.model.decoder.attention.gated:
            return None
        return self.progress.window_gate / self.progress.window_sentences

    def _log(self, metrics: Metrics | None, split: str, **values: float | None) -> None:
        progress = self.progress
        common = {
            "update": progress.update,
            "epoch": progress.epoch,
            "seconds": round(progress.seconds, 3),
            "target_tokens": progress.target_tokens,
            "learning_rate": progress.rate,
        }
        if metrics is not None:
            metrics.write(split, {**common, **values})
        progress.metric_rows += 1

    def _validate(self, display: Display, metrics: Metrics | None, check: Check) -> None:
        """Score the weights, keep them if they are the best, adapt the rate, save."""
        progress = self.progress
        began = time.monotonic()
        result = self.validator(self.model, check) if self.validator else None
        spent = self.ranks.clock(time.monotonic() - began)
        progress.seconds += spent
        progress.validation_seconds += spent
        progress.validated_update = progress.update
        progress.validated_seconds = progress.seconds
        best = progress.update > 0 and self._judge(result)  # where it starts from is no result
        if result is not None:
            self._log(
                metrics,
                "valid",
                loss=result.loss,
                perplexity=result.perplexity,
                bleu=result.bleu,
                gate_mean=result.gate,
                cps=result.cps,
            )
            display.validation(
                f"epoch {progress.epoch}  update {progress.update:,}  valid {result.in_words()}"
                f"{'  best' if best else ''}  ({spent:.0f} s)",
                result.bleu,
                result.samples,
            )
        if best and self.ranks.first:
            about = {"update": str(progress.update)}
            if result is not None:
                about |= {"bleu": str(result.bleu), "signature": result.signature}
            save_best(self.folder, self.model, about)
        self._save()
        display.pause()

    def _judge(self, result: Validation | None) -> bool:
        """Tell whether these are the best weights so far; without validation data the last are."""
        progress = self.progress
        score = None
        if result is not None:
            score = result.bleu if self.config.best_by == "bleu" else -result.perplexity
            if progress.best_score is not None and score <= progress.best_score:
                progress.validations_since_best += 1
                if self.config.plateau and not (
                    progress.validations_since_best % self.config.plateau
                ):
                    progress.rate /= 2
                return False
        progress.best_score = score
        progress.best_update = progress.update
        progress.validations_since_best = 0
        return True

    def _save(self) -> None:
        self.progress.saved_seconds = self.progress.seconds
        random = random_states(self.ranks, self.model.device)
        if self.ranks.first:
            save_checkpoint(
                self.folder, self.model, self.optimizer, self.progress, self.config.keep, random
            )
        self.ranks.from_first()  # nobody goes on, or says that it is saved, before it is
