"""The rules of Moses' tokenizer.perl as it is since November 2018, in its order.

sacremoses ports an older script: there a period at the end of the line can stay with its word, only
characters in its own lists count as letters (no Chinese character does), and Finnish, Swedish,
Tetun, Catalan, Irish and Somali have no rules of their own. Its lists of abbreviations are the
script's, and are used here. Where a Perl property has no name in Python, Perl's own definition is
written out: ``IsAlnum`` is alphabetic or a decimal digit.
"""

from __future__ import annotations

import re

import regex

ALPHA = r"\p{Alphabetic}"
ALNUM = ALPHA + r"\p{Nd}"
NUMBER = r"\p{N}"

Rule = tuple[regex.Pattern[str], str]

_SPACES = regex.compile(r"\s+")  # as Perl has it: without the separators 0x1C to 0x1F
_CONTROLS = re.compile("[\0-\x1f]+")
_BLANKS = re.compile("  +")
_DOTS = re.compile(r"\.{2,}")
_HIDDEN_DOTS = re.compile("(?<!DOT)((?:DOT)+)MULTI")
_LETTER = regex.compile(f"[{ALPHA}]")
_SMALL = regex.compile(r"\p{Lowercase}")
_DIGIT = re.compile("[0-9]")
_LAST_QUOTE = re.compile(r"\.' ?\Z")
_NUMERIC_ONLY = re.compile(r"(.*)\s+#NUMERIC_ONLY#")
# The script's lists have a space after these, so it never finds them.
_NEVER_FOUND = {
    "as": ("ভি",), "bn": ("ভি",), "es": ("Fil", "gr"), "it": ("Amn", "Arch", "a.c", "all", "es"),
    "ml": ("പി",), "mni": ("ভি",), "nl": ("Nrs",), "sk": ("Pf",), "sv": ("Ö",),
}  # fmt: skip

ESCAPES = {  # the script's, in its order: the ampersand first
    "&": "&amp;", "|": "&#124;", "<": "&lt;", ">": "&gt;",
    "'": "&apos;", '"': "&quot;", "[": "&#91;", "]": "&#93;",
}  # fmt: skip
_ESCAPES = str.maketrans(ESCAPES)


def _rule(pattern: str, replacement: str) -> Rule:
    return regex.compile(pattern), replacement


_SYMBOLS = rf"([^{ALNUM}\s.'`,\-%s])"  # %s: what else stays in a word
_COLON = _rule(r":(?!\p{Ll})", " : ")  # USA:n
_OWN_FIRST = {
    "fi": (_COLON,),
    "sv": (_COLON,),
    "tdt": (_rule(r"'(?!\p{Ll})", " ' "),),
    "ca": (_rule(r"Â·(?!\p{Ll})", " Â· "),),  # the middle dot's two bytes, each as a character
}
_HYPHEN = _rule(rf"([{ALNUM}])-(?=[{ALNUM}])", r"\1 @-@ ")
_COMMAS = (
    _rule(rf"([^{NUMBER}]),", r"\1 , "),
    _rule(rf",([^{NUMBER}])", r" , \1"),
    _rule(rf"([{NUMBER}]),\Z", r"\1 ,"),
)
_BETWEEN_OTHERS = _rule(rf"([^{ALPHA}])'([^{ALPHA}])", r"\1 ' \2")
_BEFORE_LETTER = _rule(rf"([^{ALPHA}])'([{ALPHA}])", r"\1 ' \2")
_BEFORE_LETTER_EN = _rule(rf"([^{ALPHA}{NUMBER}])'([{ALPHA}])", r"\1 ' \2")
_AFTER_LETTER = _rule(rf"([{ALPHA}])'([^{ALPHA}])", r"\1 ' \2")
_TO_THE_RIGHT = _rule(rf"([{ALPHA}])'([{ALPHA}])", r"\1 '\2")  # isn 't
_TO_THE_LEFT = _rule(rf"([{ALPHA}])'([{ALPHA}])", r"\1' \2")  # l' eau
_DECADE = _rule(rf"([{NUMBER}])'(s)", r"\1 '\2")  # 1990 's
_ANY_APOSTROPHE = _rule("'", " ' ")

_ENGLISH = (_BETWEEN_OTHERS, _BEFORE_LETTER_EN, _AFTER_LETTER, _TO_THE_RIGHT, _DECADE)
_ROMANCE = (_BETWEEN_OTHERS, _BEFORE_LETTER, _AFTER_LETTER, _TO_THE_LEFT)
_GLOTTAL = (_BETWEEN_OTHERS, _BEFORE_LETTER, _AFTER_LETTER)
_APOSTROPHES = {
    "en": _ENGLISH,
    **dict.fromkeys(("fr", "it", "ga", "ca"), _ROMANCE),
    **dict.fromkeys(("so", "tdt"), _GLOTTAL),
}


class MosesScript:
    """tokenizer.perl for one language; call it with a line.

    Args:
        language: Two-letter code, or three for Tetun (tdt); a language without abbreviations uses
            the English ones.
        aggressive: Split hyphens between letters, ``-a``.
        escape: Write Moses' special characters as entities; off with ``-no-escape``.
    """

    def __init__(self, language: str, aggressive: bool, escape: bool) -> None:
        inside = {"fi": ":", "sv": ":", "ca": "·"}.get(language, "")
        self._first = [_rule(_SYMBOLS % inside, r" \1 ")]
        self._first += _OWN_FIRST.get(language, ())
        if aggressive:
            self._first.append(_HYPHEN)
        self._apostrophes = _APOSTROPHES.get(language, (_ANY_APOSTROPHE,))
        self._abbreviations = _abbreviations(language)
        self._escape = escape

    def __call__(self, line: str) -> str:
        """Return the script's line of tokens, with the extra spaces that it leaves in some."""
        text = _CONTROLS.sub("", _SPACES.sub(" ", line))
        text = _BLANKS.sub(" ", text).strip(" ")
        text = _apply(self._first, text)
        text = _hide_dots(text) if "." in text else text
        if "," in text:
            text = _apply(_COMMAS, text)
        if "'" in text:
            text = _apply(self._apostrophes, text)
        text = " ".join(self._split_periods(text.split()))
        text = _LAST_QUOTE.sub(" . ' ", text)
        if "DOTMULTI" in text:
            text = _HIDDEN_DOTS.sub(lambda match: "." * (len(match[1]) // 3), text)
        return text.translate(_ESCAPES) if self._escape else text

    def _split_periods(self, words: list[str]) -> list[str]:
        """Split off periods that end a sentence: the last of the line, and others by their word."""
        last = len(words) - 1
        for place, word in enumerate(words):
            if word[-1] != "." or len(word) == 1:
                continue
            if place == last or not self._keeps_period(word[:-1], words[place + 1]):
                words[place] = word[:-1] + " ."
        return words

    def _keeps_period(self, word: str, following: str) -> bool:
        """Whether a period inside a line belongs to its word."""
        if ("." in word and _LETTER.search(word)) or _SMALL.match(following):
            return True
        numeric = self._abbreviations.get(word)
        return numeric is False or (numeric is True and bool(_DIGIT.match(following)))


def _apply(rules: list[Rule] | tuple[Rule, ...], text: str) -> str:
    for pattern, replacement in rules:
        text = pattern.sub(replacement, text)
    return text


def _hide_dots(text: str) -> str:
    """Replace runs of dots by the words with which the script protects them."""

    def hide(match: re.Match[str]) -> str:
        word = " " + "DOT" * len(match[0]) + "MULTI"
        return word if match.end() == len(text) else word + " "

    return _DOTS.sub(hide, text)


def _abbreviations(language: str) -> dict[str, bool]:
    """Map words that keep their period to whether they do only before a number."""
    from sacremoses.corpus import NonbreakingPrefixes

    found = {}
    for item in NonbreakingPrefixes().words(language):
        numeric = _NUMERIC_ONLY.match(item)
        found[numeric[1] if numeric else item] = bool(numeric)
    for item in _NEVER_FOUND.get(language, ()):
        found.pop(item, None)
    return found
