"""A report of four runs that never were: every mechanism, and sentences that are hard to show."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

TAU = 0.5
SLOTS = 8
SWEPT = (0.05, 0.2, 0.5, 1.2, 3.0, None)

PAIRS = [
    (
        "he made his son attend the meeting in his place .",
        "彼 は 息子 を 代わり に その 会合 に 出席 さ せ た 。",
    ),
    ("the dog that is barking belongs to her .", "吠え て いる その 犬 は 彼女 の もの です 。"),
    ("", "空 です 。"),
    ("<script>alert(1)</script> & </script><!-- is shown .", "<b> 太字 </b> で は ない 。"),
    ("der über@@ große Straßen@@ bahn@@ hof ▁Α θ ή ν α ς .", "アテネ の 大きな 停留@@ 所 。"),
    ("הכלב נובח בלילה .", "犬 が 夜 に 吠える 。"),
    (
        " ".join(f"word{place}" for place in range(150)),
        " ".join(f"語{place}" for place in range(149)),
    ),
]
NOUNS = [("dog", "犬"), ("cat", "猫"), ("student", "学生"), ("teacher", "先生"), ("book", "本")]
VERBS = [("sees", "見る"), ("finds", "見つける"), ("likes", "好む"), ("forgets", "忘れる")]
LIGHT = [("red", "赤い"), ("old", "古い"), ("small", "小さい"), ("quiet", "静かな")]


class Made(NamedTuple):
    """What ``render`` takes."""

    report: dict[str, Any]
    traces: list[str]


def make_report(pairs: Sequence[tuple[str, str]] = PAIRS) -> Made:
    """Make a report whose sentences are such pairs, tokens parted by spaces."""
    chance = random.Random(1)
    runs = [make(chance) for make in RUNS.values()]
    sentences = [_sentence(index, *pair, chance) for index, pair in enumerate(pairs)]
    traces = [
        [make(source.split(), [*target.split(), "</s>"]) if source else None for make in TRACES]
        for source, target in pairs
    ]
    report = {
        "title": "Flexible and memory attention, small_parallel_enja",
        "version": "0.4.0",
        "made": "2026-11-21",
        "command": "nmtflex report runs/global runs/flex-ft runs/memory runs/none --tau 0.5",
        "split": "test",
        "sentence_count": len(pairs),
        "split_sentences": max(500, len(pairs)),
        "settings": _settings(),
        "runs": runs,
        "sentences": sentences,
    }
    return Made(report, [json.dumps(line, ensure_ascii=False) for line in traces])


def many_pairs(count: int) -> list[tuple[str, str]]:
    """Make pairs of a small grammar, some of them long."""
    chance = random.Random(2)
    pairs = []
    for _ in range(count):
        clauses = [_clause(chance) for _ in range(chance.choice((1, 1, 2, 3, 5)))]
        english = " and ".join(source for source, _ in clauses)
        pairs.append((f"{english} .", " そして ".join(target for _, target in clauses) + " 。"))
    return pairs


def _clause(chance: random.Random) -> tuple[str, str]:
    (one, ichi), (two, ni) = chance.sample(NOUNS, 2)
    (does, suru), (kind, donna) = chance.choice(VERBS), chance.choice(LIGHT)
    return f"the {kind} {one} {does} the {two}", f"その {donna} {ichi} は {ni} を {suru}"


def _sentence(index: int, source: str, reference: str, chance: random.Random) -> dict[str, Any]:
    words = reference.split()
    hypotheses = []
    for quality in (0.95, 0.9, 0.8, 0.5):
        kept = [word for word in words if chance.random() < quality]
        share = len(kept) / len(words) if source else 0.0
        text = "".join(kept) if source else ""
        hypotheses.append({
            "text": text,
            "score": -0.2 - chance.random() if source else 0.0,
            "bleu": 100 * share**3,
            "chrf": 100 * share**2,
        })
    return {"index": index, "source": source, "reference": "".join(words), "hypotheses": hypotheses}


# What attention looked at.


def _rows(source: Sequence[str], target: Sequence[str], width: float) -> list[list[float]]:
    """Make weights that follow the diagonal, every fourth step back a little."""
    rows = []
    for step in range(len(target)):
        middle = len(source) * (step + 0.5) / len(target) - 0.5 - 2.5 * (step % 4 == 3)
        shares = [math.exp(-(((place - middle) / width) ** 2)) for place in range(len(source))]
        rows.append([share / (sum(shares) or 1) for share in shares])
    return rows


def _thousandths(rows: Sequence[Sequence[float]]) -> list[list[int]]:
    return [[round(1000 * share) for share in row] for row in rows]


def _trace(source: Sequence[str], target: Sequence[str], **parts: Any) -> dict[str, Any]:
    names = ("weights", "gate", "focus", "window_start", "window_stop", "beta", "alpha")
    return {"source": list(source), "target": list(target), **dict.fromkeys(names), **parts}


def _global_trace(source: list[str], target: list[str]) -> dict[str, Any]:
    weights = _thousandths(_rows(source, target, 1.1))
    return _trace(source, target, weights=weights, computed=[len(source)] * len(target))


def _flexible_trace(source: list[str], target: list[str]) -> dict[str, Any]:
    """Make windows by the paper's penalty, sigma 1.5, and weights inside them."""
    parts: dict[str, list[Any]] = {"gate": [], "focus": [], "window_start": [], "window_stop": []}
    weights, focus = [], 0.0
    for step, row in enumerate(_rows(source, target, 0.9)):
        gate = (0.12, 0.62, 0.35, 0.05)[step % 4]
        radius = 1.5 * math.sqrt(2 * TAU / gate)
        start = max(0, min(len(source) - 1, math.ceil(focus - radius)))
        stop = max(start + 1, min(len(source), math.floor(focus + radius) + 1))
        inside = [share + 1e-6 if start <= place < stop else 0.0 for place, share in enumerate(row)]
        inside = [share / sum(inside) for share in inside]
        focus = sum(place * share for place, share in enumerate(inside))
        weights.append(inside)
        for name, value in zip(parts, (gate, round(focus, 3), start, stop), strict=True):
            parts[name].append(value)
    computed = [
        stop - start
        for start, stop in zip(parts["window_start"], parts["window_stop"], strict=True)
    ]
    return _trace(source, target, weights=_thousandths(weights), computed=computed, **parts)


def _memory_trace(source: list[str], target: list[str]) -> dict[str, Any]:
    slots = [str(slot) for slot in range(SLOTS)]
    beta, by_slot = _rows(slots, target, 0.8), _rows(source, slots, 1.5)
    alpha = [list(column) for column in zip(*by_slot, strict=True)]
    weights = [
        [sum(b * a for b, a in zip(step, place, strict=True)) for place in alpha] for step in beta
    ]
    return _trace(
        source,
        target,
        weights=_thousandths(weights),
        beta=_thousandths(beta),
        alpha=_thousandths(alpha),
        computed=[SLOTS] * len(target),
    )


def _no_trace(source: list[str], target: list[str]) -> dict[str, Any]:
    return _trace(source, target, computed=[0] * len(target))


TRACES = (_global_trace, _flexible_trace, _memory_trace, _no_trace)


# The runs.


def _run(
    name: str,
    description: str,
    bleu: float,
    cps: float,
    chance: random.Random,
    *,
    gate: bool = False,
    encoding: float = 0.0,
    sweeps: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    seconds = 8 + cps / 2
    parts = {"encoder": 0.12, "attention": 0.02 * cps, "recurrent cell": 0.2}
    parts |= {"output layer": 0.3, "search": 0.2}
    return {
        "name": name,
        "description": f"{description} · luong decoder · beam 5 · update 4,692",
        "parameters": 6_400_000 + chance.randrange(10**6),
        "learning": _learning(bleu, gate, chance),
        "scores": [
            {
                "metric": metric,
                "value": value,
                "interval": [value * 0.94, value * 1.06],
                "signature": f"{signature}|nrefs:1|case:mixed|tok:none|version:2.6.0",
            }
            for metric, value, signature in (
                ("BLEU", bleu, "eff:no|smooth:exp"),
                ("chrF2", bleu + 8.4, "eff:yes|nc:6|nw:0"),
                ("RIBES", 0.55 + bleu / 140, "alpha:0.25|beta:0.10"),
            )
        ],
        "cost": {
            "cps": cps,
            "encoding_computations": encoding,
            "decoding_seconds": seconds,
            "source_tokens": 9.84,
            "sentences": 500,
        },
        "sweeps": list(sweeps),
        "lengths": [
            {"label": label, "sentences": n, "bleu": None if n == 0 else bleu + 3 - 2.5 * place}
            for place, (label, n) in enumerate([("1-5", 61), ("6-10", 248), ("11-15", 191)])
        ],
        "time": [{"part": part, "seconds": seconds * share} for part, share in parts.items()],
    }


def _learning(bleu: float, gate: bool, chance: random.Random) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for update in range(100, 4700, 100):
        loss = 1.6 + 5 * math.exp(-update / 700)
        row = {"update": update, "seconds": update * 0.13, "split": "train"}
        noisy = loss - 0.0001 * update + chance.gauss(0, 0.08)
        rows.append(row | {"loss": noisy, "perplexity": math.exp(noisy)})
        if update % 400 == 0:
            reached = bleu * (1 - math.exp(-update / 900))
            valid = row | {"split": "valid", "loss": loss, "perplexity": math.exp(loss)}
            valid["bleu"] = reached + chance.gauss(0, 0.3)
            if gate:
                valid |= {"gate_mean": 0.1 + update / 9000, "cps": 9.8 - update / 1000}
            rows.append(valid)
    rows[0]["loss"] = rows[0]["perplexity"] = math.inf  # as where a training begins badly
    return rows


def _sweep(split: str, best: float) -> dict[str, Any]:
    cps = (1.6, 2.4, 3.3, 4.9, 6.8, 9.84)
    return {
        "split": split,
        "beam": "beam 5",
        "points": [
            {
                "tau": tau,
                "bleu": best - 9 * math.exp(-one / 1.6),
                "ribes": 0.76 - 0.1 * math.exp(-one),
                "cps": one,
                "seconds": 8 + one / 2,
                "sentences": 500,
            }
            for tau, one in zip(SWEPT, cps, strict=True)
        ],
    }


RUNS: dict[str, Callable[[random.Random], dict[str, Any]]] = {
    "global": lambda chance: _run("global", "global attention", 31.2, 9.84, chance),
    "flex-ft": lambda chance: _run(
        "flex-ft",
        f"flexible attention, τ = {TAU}",
        30.98,
        3.31,
        chance,
        gate=True,
        sweeps=[_sweep("valid", 31.6), _sweep("test", 31.3)],
    ),
    "memory": lambda chance: _run(
        "memory", "memory attention, K = 8", 28.7, 8.0, chance, encoding=78.7
    ),
    "none": lambda chance: _run("none", "no attention", 14.9, 0.0, chance),
}


def _settings() -> list[dict[str, Any]]:
    """Make rows of settings: what parts the runs, and what they share."""
    rows = [
        ("model", "attention.kind", ["global", "flexible", "memory", "none"]),
        ("model", "attention.score", ["general", "general", "", ""]),
        ("model", "attention.sigma", ["", "1.5", "", ""]),
        ("model", "attention.memory_size", ["", "", "8", ""]),
        ("model", "decoder", ["luong"] * 4),
        ("model", "embedding_size", ["256"] * 4),
        ("train", "epochs", ["6", "7", "6", "6"]),
        ("train", "lr", ["0.001"] * 4),
        ("train", "dropout", ["0.2"] * 4),
        ("data", "prepared", ["/data/prepared/small_parallel_enja/with/a/rather/long/path"] * 4),
    ]
    return [{"group": group, "name": name, "values": values} for group, name, values in rows]
