"""Mistakes in the attention mechanisms, the search, ensembles and the count of computations."""

from __future__ import annotations

from mutant import Mutant

ORACLE = "tests/unit/model/test_oracle.py"
FLEXIBLE, LOCAL_M = "nmtflex/attention/flexible.py", "nmtflex/attention/local_m.py"
REMAINDER, REUSE = "nmtflex/attention/remainder.py", "nmtflex/attention/reuse.py"
LOCAL_P, MEMORY = "nmtflex/attention/local_p.py", "nmtflex/attention/memory.py"
MONOTONIC, MOCHA = "nmtflex/attention/monotonic.py", "nmtflex/attention/mocha.py"
SEARCH, ENSEMBLE = "nmtflex/decoding/search.py", "nmtflex/decoding/ensemble.py"
TALLY = "tests/unit/decoding/test_tally.py"

SCANS = "tests/unit/attention/test_monotonic.py tests/unit/attention/test_mocha.py"

ATTENTION = [
    Mutant(
        "nmtflex/layers/linear.py",
        "product.weight *= WIDENED",
        "product.weight *= 1",
        "fresh slots hold nearly the same",
        "tests/unit/attention/test_memory.py tests/unit/attention/test_abc.py",
    ),
    Mutant(
        MONOTONIC,
        "return Glimpse(read.context, (stops.position,), trace=seen)",
        "return Glimpse(read.context, state, trace=seen)",
        "every scan begins at the start of the source",
        f"{ORACLE} -k monotonic",
    ),
    Mutant(
        MONOTONIC,
        "if self.noise > 0:",
        "if False:",
        "training has no noise",
        SCANS,
    ),
    Mutant(
        MONOTONIC,
        "computed = end - before + read.computed",
        "computed = end - first + read.computed",
        "positions before the scan are counted as scanned",
        SCANS,
    ),
    Mutant(
        MOCHA,
        "first, end = (stop - self.width + 1).clamp(min=0), stop + 1",
        "first, end = (stop - self.width).clamp(min=0), stop + 1",
        "a chunk has a position too many",
        f"{ORACLE} -k mocha",
    ),
    Mutant(
        FLEXIBLE,
        "context, focus, weights, log_sum = attend(",
        "context, _, weights, log_sum = attend(",
        "the focus stays where it was",
        f"{ORACLE} -k flexible",
    ),
    Mutant(
        FLEXIBLE,
        "penalty = Penalty(g, focus, self.sigma)",
        "penalty = Penalty(1 - g, focus, self.sigma)",
        "an open gate punishes less",
        f"{ORACLE} -k flexible",
    ),
    Mutant(
        FLEXIBLE,
        "word = None if self.word is None else feedback",
        "word = None",
        "the gate does not see the previous word",
        f"{ORACLE} -k flexible",
    ),
    Mutant(
        FLEXIBLE,
        "if tau < math.inf:",
        "if False:",
        "a threshold leaves nothing out",
        f"{ORACLE} -k flexible",
    ),
    Mutant(
        FLEXIBLE,
        "return Reach(source, limits.tau, sum_up(source) if summed else None)",
        "return Reach(source, 1.0 if limits.tau else 0.0, sum_up(source) if summed else None)",
        "every threshold is 1",
        "tests/unit/attention/test_flexible.py",
    ),
    Mutant(
        REMAINDER,
        "score.flatten() + some.log() - mean",
        "score.flatten() - mean",
        "the remainder weighs as one position",
        "tests/unit/attention/test_remainder.py",
    ),
    Mutant(
        REMAINDER,
        "tau + REACH, penalty",
        "tau + 2 * REACH, penalty",
        "the remainder reaches further",
        "tests/unit/attention/test_remainder.py",
    ),
    Mutant(
        REUSE,
        "self._some(u >= memory.below,",
        "self._some(u >= 0,",
        "every step of reuse attends",
        "tests/unit/attention/test_reuse.py",
    ),
    Mutant(
        REUSE,
        "return 1 - u if gate is None",
        "return u if gate is None",
        "finetuning opens the gate of reuse",
        "tests/unit/attention/test_reuse.py",
    ),
    Mutant(
        "nmtflex/attention/base.py",
        "        state = glimpse.state\n    return torch",
        "",
        "every step of a sequence sees the attention's first state",
        "tests/unit/attention/test_contract.py",
    ),
    Mutant(
        LOCAL_M,
        "state = (step + 1,)",
        "state = (step,)",
        "the monotonic centre does not move",
        f"{ORACLE} -k local-m",
    ),
    Mutant(
        LOCAL_M,
        "torch.minimum(centre + self.reach + 1, lengths)",
        "torch.minimum(centre + self.reach, lengths)",
        "the window lacks its last position",
        f"{ORACLE} -k local-m",
    ),
    Mutant(
        LOCAL_P,
        "Damping(centre, self.reach / 2)",
        "Damping(centre, float(self.reach))",
        "sigma is D, not D / 2",
        f"{ORACLE} -k local-p",
    ),
    Mutant(
        LOCAL_P,
        "centre = lengths * torch.sigmoid(",
        "centre = (lengths - 1) * torch.sigmoid(",
        "the predicted centre is in a sentence that is a word shorter",
        f"{ORACLE} -k local-p",
    ),
    Mutant(
        MEMORY,
        "(1 - slot) * (1 - place) + slot * place",
        "(1 - slot) * place + slot * (1 - place)",
        "early slots are drawn to the end",
        f"{ORACLE} -k memory",
    ),
    Mutant(
        MEMORY,
        "/ real.sum(1, keepdim=True)",
        "/ mask.shape[1]",
        "position encodings are normalised over padding",
        f"{ORACLE} -k memory",
    ),
    Mutant(
        MEMORY,
        "steps.clamp(max=source_length)",
        "steps",
        "positions beyond the longest source of the training are not clamped",
        f"{ORACLE} -k memory",
    ),
    Mutant(
        MEMORY,
        "beta = _scored(self.beta(query), self.config.decoder_scoring)",
        "beta = _scored(self.beta(query), self.config.encoder_scoring)",
        "the decoder scores slots as the encoder does",
        f"{ORACLE} -k memory",
    ),
    Mutant(
        MEMORY,
        "return self.config.K * lengths",
        "return lengths",
        "the scores of filling the memory are counted once, not K times",
        TALLY,
    ),
    Mutant(
        "nmtflex/attention/grouping.py",
        "            rows = torch.repeat_interleave(counts[present])\n",
        "",
        "a hypothesis reads another sentence's slots once one is done",
        "tests/unit/attention/test_memory.py",
    ),
    Mutant(
        SEARCH,
        "slots -= np.bincount(ended[-1].rows, minlength=len(slots))",
        "pass",
        "a finished hypothesis takes no slot of the beam",
        "tests/unit/decoding/test_search.py",
    ),
    Mutant(
        SEARCH,
        "list(map(config.longest_output, encoded.lengths.tolist()))",
        "[config.longest_output(int(encoded.lengths.max()))] * len(encoded.lengths)",
        "the longest output depends on the other sentences of the batch",
        "tests/unit/decoding/test_search.py",
    ),
    Mutant(
        SEARCH,
        "score = total / (length + 1) ** length_penalty",
        "score = total / max(1, length) ** length_penalty",
        "the length of a translation leaves EOS out",
        "tests/unit/decoding/test_search.py",
    ),
    Mutant(
        SEARCH,
        "hypotheses.sort(key=lambda hypothesis: -hypothesis.score)",
        "hypotheses.sort(key=lambda hypothesis: -hypothesis.log_probability)",
        "translations are ranked without the length penalty",
        "tests/unit/decoding/test_search.py",
    ),
    Mutant(
        "nmtflex/ops/beam/loops.py",
        "full = end - begin == slots[rows[n]]",
        "full = end - begin == slots.max()",
        "each sentence has as many slots as the one that has most",
        "tests/unit/ops/test_beam.py",
    ),
    Mutant(
        "nmtflex/ops/beam/loops.py",
        "(total == sums[place - 1] and word < chosen[place - 1])",
        "False",
        "of equal continuations the first hypothesis's is taken, not the lowest word",
        "tests/unit/ops/test_beam.py",
    ),
    Mutant(
        ENSEMBLE,
        "torch.stack(log_probs).logsumexp(0) - math.log(len(log_probs))",
        "torch.stack(log_probs).mean(0)",
        "an ensemble averages logarithms, not probabilities",
        "tests/unit/decoding/test_ensemble.py",
    ),
    Mutant(
        ENSEMBLE,
        "[_chosen(state, chosen) for state in self._states]",
        "[_chosen(self._states[0], chosen), *self._states[1:]]",
        "only the first model's states follow the beam",
        "tests/unit/decoding/test_ensemble.py",
    ),
    Mutant(
        ENSEMBLE,
        "self.pairs.index_add_(0, rows, torch.ones_like(rows))",
        "self.pairs[rows] += 1",
        "the hypotheses of a sentence count as one pair a step",
        TALLY,
    ),
    Mutant(
        ENSEMBLE,
        "self.computed.index_add_(0, rows, found.double() / model.attending)",
        "self.computed[rows] += found.double() / model.attending",
        "the scores of one hypothesis a sentence are counted",
        TALLY,
    ),
    Mutant(
        "nmtflex/decoding/tally.py",
        "self._ratios += (computed.double() / pairs).tolist()",
        "self._ratios += [float(computed.sum() / pairs.sum())] * len(pairs)",
        "CPS is a mean over steps, not over sentences",
        TALLY,
    ),
    Mutant(
        "nmtflex/decoding/forced.py",
        "found = [0.0 if not target else -torch.inf for _, target in pairs]",
        "found = [0.0 for _ in pairs]",
        "an empty source may become anything",
        "tests/unit/decoding/test_forced.py",
    ),
    Mutant(
        "nmtflex/decoding/batching.py",
        "MAX_POSITIONS // (beam * lengths[order[start]])",
        "MAX_POSITIONS // lengths[order[start]]",
        "a wide beam makes batches beyond the limit",
        "tests/unit/decoding/test_batching.py",
    ),
]
