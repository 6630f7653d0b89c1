"""Where the pairs of a prepared training split were in the raw text, if that is known."""

from __future__ import annotations

from collections.abc import Sequence

from nmtflex.corpus.store import SIDES, PreparedCorpus

SHOWN = 8  # maximum pairs named


def name_pairs(corpus: PreparedCorpus, pairs: Sequence[int]) -> str:
    """Name training pairs, with the lengths of their sides in tokens.

    If preprocessing dropped no pair, they are named as lines of the raw files; otherwise only their
    numbers among the kept pairs are known. Samples of several pairs are after these.

    Args:
        corpus: A corpus with training data.
        pairs: Numbers in its store, from 0.
    """
    shown = sorted(int(pair) for pair in pairs)
    stores = [corpus.store("train", side) for side in SIDES]
    lengths = [[len(store[pair]) for pair in shown] for store in stores]
    spans = [f"{min(side):,} to {max(side):,}" for side in lengths]
    if len(shown) == 1:
        spans = [f"{side[0]:,}" for side in lengths]
    return f"{_numbers(corpus, shown)} (source {spans[0]}, target {spans[1]} tokens)"


def _numbers(corpus: PreparedCorpus, pairs: list[int]) -> str:
    places = [_place(corpus, pair) for pair in pairs[:SHOWN]]
    files = list(dict.fromkeys(file for file, _ in places))
    named = [
        f"{'lines' if len(numbers) > 1 else 'line'} {', '.join(numbers)} of {file}"
        if file
        else f"{'samples' if len(numbers) > 1 else 'sample'} {', '.join(numbers)} of those joined "
        f"in {corpus.folder}"
        if file is None
        else f"training {'pairs' if len(numbers) > 1 else 'pair'} {', '.join(numbers)} of those "
        f"kept in {corpus.folder}"
        for file in files
        if (numbers := [f"{number:,}" for other, number in places if other == file])
    ]
    if len(pairs) > SHOWN:
        named.append(f"{len(pairs) - SHOWN:,} more")
    return " and ".join(named)


def _place(corpus: PreparedCorpus, pair: int) -> tuple[str | None, int]:
    """Return a raw file (the source side) and a line in it.

    If pairs were dropped, "" and a pair; None and a sample if several pairs were joined.
    """
    split = corpus.manifest["splits"]["train"]
    if "concat" in split and pair >= split["kept"]:
        return None, pair - split["kept"] + 1
    files = corpus.manifest.get("inputs", {}).get("train", [])
    if split.get("read") != split.get("kept") or not files:
        return "", pair + 1
    first = 0
    one_file = corpus.manifest.get("options", {}).get("format") == "aspec"  # for both sides
    corpora = files if one_file else files[::2]  # a file a side, the source's first
    for file in corpora:
        if pair < first + file["pairs"]:
            return str(file["path"]), pair - first + 1
        first += file["pairs"]
    return "", pair + 1
