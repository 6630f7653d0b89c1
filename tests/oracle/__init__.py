"""The whole model once more, in plain loops over one sentence: what the package must equal.

Written from the papers, and where they are silent from the documented decisions: float64, one
sentence and one position at a time. Nothing here imports ``nmtflex``; the names of the options and
of the weights are all that the two have in common.
"""
