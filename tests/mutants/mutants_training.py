"""Mistakes in training: gradients, schedules, checkpoints, the data's integrity, batches."""

from __future__ import annotations

from mutant import Mutant

GRADIENTS, LOOP = "nmtflex/training/gradients.py", "nmtflex/training/loop.py"
CHECKPOINT, BATCHES = "nmtflex/training/checkpoint.py", "nmtflex/corpus/batches.py"
PIECES = "tests/unit/training/test_update_gradients.py"
KEPT = "tests/unit/training/test_checkpoint.py"
TRAIN = "tests/unit/training/test_loop.py"
RATES = "tests/unit/training/test_rates.py"
ORDER = "tests/unit/corpus/test_batches.py"
GUIDANCE, GUIDED = "nmtflex/training/guidance.py", "nmtflex/corpus/guided.py"
ALIGNED, LINKED = "tests/unit/training/test_guidance.py", "tests/unit/corpus/test_guided_links.py"

TRAINING = [
    Mutant(
        GRADIENTS,
        "autograd.backward(loss.objective / tokens)",
        "autograd.backward(loss.objective / batch.num_tokens)",
        "the gradients of an update's batches are means that are summed",
        PIECES,
    ),
    Mutant(
        GRADIENTS,
        "if limit and not norm < limit - ROUNDING:",
        "if limit and norm < limit - ROUNDING:",
        "small gradients are clipped, large ones are not",
        PIECES,
    ),
    Mutant(
        GRADIENTS,
        "pieces[failed : failed + 1] = np.array_split(pairs, 2)",
        "pieces[failed : failed + 1] = np.array_split(pairs, 2)[:1]",
        "half of a batch that memory does not hold is forgotten",
        PIECES,
    ),
    Mutant(
        GRADIENTS,
        "            self.model.zero_grad(set_to_none=True)\n",
        "",
        "the gradient of the update before stays",
        PIECES,
    ),
    Mutant(
        LOOP,
        "progress.position += len(chosen)",
        "progress.position += 1",
        "accumulated batches are seen again",
        f"{TRAIN} -k each_pair_once",
    ),
    Mutant(
        LOOP,
        "(score, -perplexity) <= (before, -known)",
        "(score, perplexity) <= (before, known)",
        "of equal BLEU, more perplexity is better",
        f"{TRAIN} -k the_best",
    ),
    Mutant(
        "nmtflex/training/schedule.py",
        "if self.halve_from and progress.epoch >= self.halve_from:",
        "if self.halve_from and progress.epoch > self.halve_from:",
        "the rate is halved an epoch late",
        "tests/unit/training/test_schedule.py",
    ),
    Mutant(
        "nmtflex/training/schedule.py",
        "return math.sqrt(self.warmup / update)",
        "return math.sqrt(1 / update)",
        "after the warm-up the rate falls at once to a fraction of its peak",
        "tests/unit/training/test_schedule.py",
    ),
    Mutant(
        LOOP,
        "self.schedule.factor(progress.update + 1)",
        "self.schedule.factor(max(1, progress.update))",
        "each update has the rate of the one before",
        RATES,
    ),
    Mutant(
        "nmtflex/training/optimizers/base.py",
        "self.weight_decay if weight.dim() > 1 else 0.0",
        "self.weight_decay",
        "biases decay too",
        "tests/unit/training/optimizers",
    ),
    Mutant(
        "nmtflex/training/moving_average.py",
        "        finally:\n            self._exchange()\n",
        "        finally:\n            pass\n",
        "after a validation the training goes on from the average",
        RATES,
    ),
    Mutant(
        CHECKPOINT,
        "        kept[trained[name]].copy_(average)\n",
        "        continue\n",
        "a resumed training begins a new average",
        RATES,
    ),
    Mutant(
        LOOP,
        "        self.model.train()\n",
        "",
        "after a validation, training goes on without dropout",
        f"{TRAIN} -k dropout",
    ),
    Mutant(
        CHECKPOINT,
        '    torch.set_rng_state(tensors["rng.cpu"])\n',
        "",
        "a resumed training draws other random numbers",
        KEPT,
    ),
    Mutant(
        CHECKPOINT,
        "    optimizer.state = restored\n",
        "",
        "a resumed training has a fresh optimiser",
        KEPT,
    ),
    Mutant(
        CHECKPOINT,
        "for outdated in folder.updates()[:-keep]:",
        "for outdated in folder.updates()[:-1]:",
        "only the last checkpoint is kept",
        KEPT,
    ),
    Mutant(
        CHECKPOINT,
        "if written is not None and written != _checksum(values):",
        "if written is None:",
        "damaged progress is taken as it is",
        KEPT,
    ),
    Mutant(
        "nmtflex/training/resume.py",
        "for checkpoint in reversed(folder.updates()):",
        "for checkpoint in folder.updates():",
        "a training goes on from its oldest checkpoint",
        KEPT,
    ),
    Mutant(
        "nmtflex/training/average.py",
        "return found[-count:]",
        "return found[:count]",
        "the first checkpoints are averaged, not the last",
        "tests/unit/training/test_average.py",
    ),
    Mutant(
        "nmtflex/training/finetune.py",
        '"beta": 0.1 if base.model.has_gate else 0.0',
        '"beta": 0.0',
        "finetuning does not open the gate unless told",
        "tests/unit/training/test_finetune.py",
    ),
    Mutant(
        "nmtflex/corpus/integrity.py",
        "fresh = name in self._seen or stamp[0] <= SMALL or stamp[1] > made",
        "fresh = name in self._seen or stamp[1] > made",
        "a small file that was changed before the manifest is taken",
        "tests/unit/corpus/test_integrity.py",
    ),
    Mutant(
        "nmtflex/corpus/integrity.py",
        "            if stamp == self._seen.get(name):",
        "            if name in self._seen:",
        "a file that is changed during a training is not looked at again",
        "tests/unit/corpus/test_integrity.py",
    ),
    Mutant(
        BATCHES,
        "self.target.lengths[pairs] + 1)",
        "self.target.lengths[pairs])",
        "a batch's size leaves end-of-sentence out",
        ORDER,
    ),
    Mutant(
        BATCHES,
        "            target_out[row, len(y)] = EOS_ID\n",
        "",
        "no translation ends",
        ORDER,
    ),
    Mutant(
        BATCHES,
        "np.random.default_rng([seed, epoch])",
        "np.random.default_rng([seed])",
        "every epoch has the same order",
        ORDER,
    ),
    Mutant(
        BATCHES,
        "return max(1, min(count, self.tokens // int(widths[last])))",
        "return count",
        "a batch is as large as its shortest pair lets it be",
        ORDER,
    ),
    Mutant(
        BATCHES,
        "sum(int(self.target.lengths[pairs].sum()) + len(pairs) for pairs in batches)",
        "sum(int(self.target.lengths[pairs].sum()) for pairs in batches)",
        "the tokens of an update leave end-of-sentence out",
        PIECES,
    ),
    Mutant(
        GUIDANCE,
        ".to(precise(weights.dtype)).clamp(min=0)",
        ".to(precise(weights.dtype))",
        "negative weights make the alignment loss fall without end",
        ALIGNED,
    ),
    Mutant(
        GUIDANCE,
        "shares = exact / exact.sum(2, keepdim=True).clamp(min=LEAST)",
        "shares = exact",
        "weights that do not sum to 1 are not divided by their sum",
        ALIGNED,
    ),
    Mutant(
        GUIDANCE,
        "links.shares.to(exact.dtype) * torch.log",
        "torch.log",
        "a target word with several links counts several times",
        ALIGNED,
    ),
    Mutant(
        BATCHES,
        "steps_of = rows * steps + target",
        "steps_of = rows * steps + target + 1",
        "attention is guided a step too late",
        f"{ALIGNED} {LINKED}",
    ),
    Mutant(
        GUIDED,
        "            if self._dropped(words, pieces):\n                continue\n",
        "",
        "links of dropped pairs go to the pairs after them",
        LINKED,
    ),
    Mutant(
        "nmtflex/model/inference.py",
        "copied = copy.deepcopy(model, shared).eval()",
        "copied = model.eval()",
        "a validation leaves a model that cannot be trained",
        "tests/unit/model/test_inference.py",
    ),
    Mutant(
        "nmtflex/training/finetune.py",
        "remainder=config.remainder)",
        "remainder=True)",
        "finetuning cannot turn the remainder off",
        "tests/unit/training/test_finetune.py",
    ),
]
