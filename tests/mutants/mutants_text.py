"""Mistakes on the way from text to ids and back, and in the scores of translations."""

from __future__ import annotations

from mutant import Mutant

BPE, VOCABULARY = "nmtflex/text/subwords/bpe.py", "nmtflex/text/vocabulary.py"
RIBES, SIGNIFICANCE = "nmtflex/scoring/ribes.py", "nmtflex/scoring/significance.py"

TEXT = [
    Mutant(
        BPE,
        "min(pairs, key=ranks.__getitem__)",
        "max(pairs, key=ranks.__getitem__)",
        "the merge learned last is applied first",
        "tests/unit/text/test_bpe.py",
    ),
    Mutant(
        BPE,
        "words.append(unescape(word + piece))",
        "words.append(word + piece)",
        "a literal @@ comes back with what parted it",
        "tests/unit/text/test_bpe.py",
    ),
    Mutant(
        BPE,
        "changed += [before[place], place]",
        "changed += [place]",
        "in long words, a merge does not look to its left",
        "tests/unit/text/test_bpe.py",
    ),
    Mutant(
        BPE,
        "key=lambda word: (-counts[word], word)",
        "key=lambda word: (counts[word], word)",
        "BPE is learned from the rarest words",
        "tests/unit/text/test_bpe.py tests/unit/corpus/test_bpe_sample.py",
    ),
    Mutant(
        VOCABULARY,
        "if count >= min_frequency)",
        "if count > min_frequency)",
        "words that were seen just often enough are left out",
        "tests/unit/text/test_vocabulary.py",
    ),
    Mutant(
        VOCABULARY,
        "{token: number for number, token in enumerate(tokens, len(SPECIALS))}",
        "{token: number for number, token in enumerate(self.tokens)}",
        "a literal </s> of the text ends a sentence",
        "tests/unit/text/test_vocabulary.py",
    ),
    Mutant(
        "nmtflex/text/normalize.py",
        'TableNormalizer("wat-width", HALF_TO_FULL)',
        'TableNormalizer("wat-width", FULL_TO_HALF)',
        "WAT's width is turned round",
        "tests/unit/text/test_normalize.py",
    ),
    Mutant(
        "nmtflex/text/normalize.py",
        '_nfkc = partial(unicodedata.normalize, "NFKC")',
        '_nfkc = partial(unicodedata.normalize, "NFC")',
        "compatibility characters stay",
        "tests/unit/text/test_normalize.py",
    ),
    Mutant(
        "nmtflex/text/pipeline.py",
        "found += [(spans[start][0], spans[stop - 1][1])] * (stop - start)",
        "found += [(spans[start][0], spans[start][1])] * (stop - start)",
        "an unknown word is replaced by the first piece of its source word",
        "tests/unit/text/test_unknown.py",
    ),
    Mutant(
        "nmtflex/text/pipeline.py",
        "hidden = (PAD_ID, BOS_ID, EOS_ID)",
        "hidden = (PAD_ID, BOS_ID, EOS_ID, UNK_ID)",
        "unknown words vanish",
        "tests/unit/text/test_pipeline.py",
    ),
    Mutant(
        RIBES,
        "place = bisect_left(before, rank)",
        "place = bisect_left(before, rank + 1)",
        "equal ranks count as increasing",
        "tests/unit/scoring/test_ribes.py",
    ),
    Mutant(
        RIBES,
        "math.exp(1 - len(reference) / len(hypothesis))",
        "math.exp(1 - len(hypothesis) / len(reference))",
        "long translations are punished",
        "tests/unit/scoring/test_ribes.py",
    ),
    Mutant(
        RIBES,
        "precision = len(ranks) / len(hypothesis)",
        "precision = len(ranks) / len(reference)",
        "recall in the place of precision",
        "tests/unit/scoring/test_ribes.py",
    ),
    Mutant(
        RIBES,
        "        left = _grow(left, -size, found, sentences)\n"
        "        right = _grow(right, size, found, sentences)\n",
        "        right = _grow(right, size, found, sentences)\n"
        "        left = _grow(left, -size, found, sentences)\n",
        "contexts grow to the right first",
        "tests/unit/scoring/test_ribes.py",
    ),
    Mutant(
        "nmtflex/scoring/bleu.py",
        'smooth = "none" if words and not by_sentence else "exp"',
        'smooth = "exp"',
        "BLEU of words is smoothed, as multi-bleu.perl's is not",
        "tests/unit/scoring/test_bleu.py",
    ),
    Mutant(
        "nmtflex/scoring/bleu.py",
        "effective_order=by_sentence",
        "effective_order=False",
        "a short sentence has no BLEU of its own",
        "tests/unit/scoring/test_bleu.py",
    ),
    Mutant(
        SIGNIFICANCE,
        "return (extreme + 1) / (len(statistics) + 1)",
        "return extreme / len(statistics)",
        "p may be 0",
        "tests/unit/scoring/test_significance.py",
    ),
    Mutant(
        SIGNIFICANCE,
        "_p_value(distances - distances.mean(), system, baseline)",
        "_p_value(distances, system, baseline)",
        "the bootstrap is not centred",
        "tests/unit/scoring/test_significance.py",
    ),
]
