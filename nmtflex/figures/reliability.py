"""A reliability diagram: how often words of a probability are right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nmtflex.figures.style import BLUE, GREY, PALE, canvas, head, look
from nmtflex.scoring.reliability import Reliability

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@look()
def reliability(scores: Reliability, caption: str) -> Figure:
    """Draw the share of right words against the mean probability of each interval.

    Args:
        scores: Of at least one word.
        caption: Run, split and settings.
    """
    figure = canvas(4.6, 5.2)
    above, below = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": [4, 1]})
    above.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--")
    means = [one.mean for one in scores.bins]
    above.plot(means, [one.share for one in scores.bins], color=BLUE, marker="o")
    above.set_ylabel("share of right words")
    above.set_ylim(0, 1)
    above.grid(alpha=0.3)
    middles = [(one.least + one.most) / 2 for one in scores.bins]
    below.bar(middles, [one.size for one in scores.bins], width=0.09, color=PALE)
    below.set_xlim(0, 1)
    below.set_xlabel("probability that a word is right")
    below.set_ylabel("words")
    below.yaxis.set_major_formatter(lambda y, _: f"{y:,.0f}")
    facts = f"AUC {scores.auc:.3f} · Brier score {scores.brier:.3f} · ECE {scores.ece:.3f}"
    head(figure, "Reliability of word scores", f"{caption} · {facts}")
    return figure
