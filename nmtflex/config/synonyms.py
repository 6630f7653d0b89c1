"""Names of our options in other toolkits: fairseq, Marian, OpenNMT, Sockeye, JoeyNMT and others."""

from __future__ import annotations

# Our option, and its names elsewhere; without leading dashes, and with - instead of _.
_CALLED = {
    "accumulate": (
        "update-freq", "accum-count", "optimizer-delay", "update-interval", "batch-multiplier",
        "gradient-accumulation-steps", "gradient-accumulation",
    ),
    "adam-beta1": ("beta1", "optimizer-beta1"),
    "adam-beta2": ("beta2", "optimizer-beta2"),
    "adam-eps": ("epsilon", "eps", "adam-epsilon", "optimizer-epsilon"),
    "attention": (
        "arch", "a", "type", "model", "model-type", "attention-type", "global-attention",
        "rnn-attention-type", "attention-mechanism",
    ),
    "batch-sentences": (
        "batch-size", "mini-batch", "max-sentences", "per-device-train-batch-size", "minibatch",
    ),
    "batch-tokens": ("max-tokens", "mini-batch-words", "tokens-per-batch"),
    "beam": ("beam-size", "num-beams", "beam-width"),
    "best-by": (
        "best-checkpoint-metric", "early-stopping-metric", "metric-for-best-model",
        "optimized-metric", "valid-metrics",
    ),
    "bottleneck": ("decoder-output-embed-dim", "decoder-out-embed-dim"),
    "bpe": ("num-merges", "merges", "bpe-operations", "num-operations", "bpe-size", "vocab-size"),
    "cell": ("rnn-type", "cell-type", "rnn-cell-type", "enc-cell", "dec-cell", "unit-type"),
    "clip": (
        "clip-norm", "max-grad-norm", "clip-grad-norm", "gradient-clipping-threshold",
        "gradient-clipping", "grad-clip",
    ),
    "decoder-layers": ("dec-layers", "dec-depth", "decoder-num-layers"),
    "decoder-size": ("decoder-hidden-size", "decoder-embed-dim", "dec-rnn-size"),
    "device": ("gpu", "gpus", "devices", "cpu", "cuda", "use-cuda", "use-cpu", "gpu-ranks"),
    "dropout": ("dropout-rnn", "rnn-dropout", "dropout-rate"),
    "dtype": ("fp16", "bf16", "precision", "amp", "model-dtype", "fp32"),
    "ema": ("exponential-smoothing", "ema-decay", "average-decay", "moving-average-decay"),
    "embedding-size": (
        "word-vec-size", "dim-emb", "emb-size", "embed-dim", "embedding-dim", "encoder-embed-dim",
        "num-embed", "word-embedding-size",
    ),
    "encoder-layers": ("enc-layers", "enc-depth", "encoder-num-layers"),
    "encoder-size": ("encoder-hidden-size", "enc-rnn-size"),
    "epochs": ("max-epoch", "max-epochs", "num-train-epochs", "after-epochs", "max-num-epochs"),
    "format": ("output-format", "output-type"),
    "freeze": ("freeze-encoder", "freeze-modules", "fixed-param-names", "fixed-param-strategy"),
    "halve-from": ("start-decay-at", "start-decay-steps", "lr-decay-start", "force-anneal"),
    "hypothesis": ("hyp", "hypotheses", "sys", "system", "candidate"),
    "joint": ("joined-dictionary", "share-vocab", "shared-vocab", "joint-vocab"),
    "keep": (
        "keep-last-epochs", "keep-checkpoint", "keep-last-params", "keep-interval-updates",
        "save-total-limit", "num-checkpoints", "keep-best-ckpts",
    ),
    "label-smoothing": ("label-smooth", "label-smoothing-factor"),
    "last": ("num-epoch-checkpoints", "num-update-checkpoints", "n", "num-checkpoints"),
    "length-penalty": (
        "lenpen", "normalize", "alpha", "length-penalty-alpha", "beam-alpha",
    ),
    "log-every": (
        "log-interval", "report-every", "disp-freq", "logging-steps", "logging-freq",
        "log-frequency",
    ),
    "lr": ("learning-rate", "learn-rate", "initial-learning-rate"),
    "max-length": (
        "max-len", "max-len-b", "max-output-length", "max-length-factor", "max-new-tokens",
        "max-sent-length", "max-seq-len", "src-seq-length",
    ),
    "max-source-length": ("max-input-length", "max-source-positions", "max-length-crop"),
    "min-frequency": (
        "thresholdsrc", "thresholdtgt", "word-min-count", "min-freq", "src-words-min-frequency",
    ),
    "n-best": ("nbest", "n-best-list", "num-return-sequences", "nbest-size"),
    "no-repeat-ngram": ("no-repeat-ngram-size", "block-ngram-repeat"),
    "optimizer": ("optim", "optimiser", "optimizer-type", "optimizer-name"),
    "out": ("destdir", "save-data", "output-prefix"),
    "patience": ("early-stopping", "max-num-checkpoint-not-improved", "early-stopping-patience"),
    "plateau": ("lr-patience", "learning-rate-reduce-num-not-improved"),
    "preset": ("task",),
    "print-config": ("dump-config",),
    "processes": ("nproc-per-node", "num-gpus", "world-size", "distributed-world-size", "nproc"),
    "reference": ("ref", "refs", "references", "tgt-file"),
    "replace-unk": ("unk-replace", "replace-unknown"),
    "run": (
        "save-dir", "model-dir", "output-dir", "run-dir", "save-model", "checkpoint-dir", "exp-dir",
    ),
    "save-every": (
        "save-interval-updates", "save-freq", "save-checkpoint-steps", "checkpoint-interval",
        "save-interval", "save-steps",
    ),
    "schedule": (
        "lr-scheduler", "lr-scheduler-type", "learning-rate-scheduler-type", "decay-method",
        "lr-decay-strategy", "scheduling", "scheduler", "lr-schedule",
    ),
    "source-lang": ("src-lang", "source-language", "src", "s", "src-language"),
    "source-vocabulary": ("nwordssrc", "src-vocab-size", "source-vocab-size", "num-words-source"),
    "split": ("gen-subset", "subset", "dataset"),
    "target-lang": (
        "tgt-lang", "trg-lang", "target-language", "tgt", "trg", "t", "tgt-language",
    ),
    "target-vocabulary": (
        "nwordstgt", "tgt-vocab-size", "trg-vocab-size", "target-vocab-size", "num-words-target",
    ),
    "threads": ("cpu-threads", "intra-threads", "num-threads", "omp-num-threads", "nthreads"),
    "tie-embeddings": (
        "share-all-embeddings", "share-embeddings", "tied-embeddings", "tied-embeddings-all",
        "share-decoder-input-output-embed", "share-decoder-embeddings", "weight-tying",
        "tie-weights",
    ),
    "train": ("trainpref", "train-src", "train-sets", "train-set", "training-data"),
    "updates": (
        "max-update", "max-updates", "max-steps", "train-steps", "after-batches", "num-train-steps",
        "training-steps",
    ),
    "valid": ("validpref", "valid-src", "valid-sets", "valid-set", "dev", "dev-set", "validation"),
    "test": ("testpref", "test-src", "test-sets", "test-set"),
    "valid-beam": ("eval-bleu-beam", "valid-beam-size"),
    "validate-every": (
        "validate-interval-updates", "valid-freq", "valid-steps", "eval-steps",
        "validation-freq", "validate-interval", "validation-interval",
    ),
    "warmup": (
        "warmup-updates", "warmup-steps", "num-warmup-steps", "lr-warmup", "learning-rate-warmup",
    ),
    "weight-decay": ("wd", "l2", "l2-reg"),
    "workers": ("num-workers", "num-processes", "inter-threads"),
}  # fmt: skip

# Names elsewhere that stand for two of our options.
_BOTH = {
    "adam-betas": ("adam-beta1", "adam-beta2"),
    "betas": ("adam-beta1", "adam-beta2"),
    "optimizer-betas": ("adam-beta1", "adam-beta2"),
    "layers": ("encoder-layers", "decoder-layers"),
    "num-layers": ("encoder-layers", "decoder-layers"),
    "hidden-size": ("encoder-size", "decoder-size"),
    "rnn-size": ("encoder-size", "decoder-size"),
    "dim-rnn": ("encoder-size", "decoder-size"),
    "rnn-num-hidden": ("encoder-size", "decoder-size"),
    "units": ("encoder-size", "decoder-size"),
    "lang-pair": ("source-lang", "target-lang"),
    "tokenizer": ("source-tokenizer", "target-tokenizer"),
    "language-pair": ("source-lang", "target-lang"),
}


def plain_name(name: str) -> str:
    """Return an option's name without leading dashes, and with - instead of _."""
    return name.lstrip("-").lower().replace("_", "-")


def synonyms(name: str) -> list[str]:
    """Return our names for an option with this name elsewhere, the likeliest first."""
    wanted = plain_name(name)
    found = [ours for ours, theirs in _CALLED.items() if wanted in theirs]
    return found + [ours for ours in _BOTH.get(wanted, ()) if ours not in found]
