"""The two width mappings of WAT's evaluation (the Workshop on Asian Translation).

Neither equals NFKC or a plain offset, and they are not inverse to each other: half to full width
has four exceptions, and full to half width maps more signs, but no full-width tilde, hyphen,
quotation mark or apostrophe. Half-width katakana does not change.
"""

from __future__ import annotations

_OFFSET = ord("！") - ord("!")
_ASCII = [chr(code) for code in range(0x21, 0x7F)]

# 0x21 to 0x7E; the space does not change.
HALF_TO_FULL = {
    **{ord(char): chr(ord(char) + _OFFSET) for char in _ASCII},
    ord('"'): "\u201d",
    ord("'"): "\u2019",
    ord("-"): "\u2212",
    ord("~"): "\u301c",
}

_SIGNS = {
    " ": "\u3000",
    '"': "\u309b\u201c\u201d\u2033",
    "'": "\u00b4\u2018\u2019\u2032",
    "-": "\u2014\u2010\u2212",
    "~": "\u301c",
    "\\": "\u00a5",
    "[": "\u3014",
    "]": "\u3015",
    "<": "\u3008",
    ">": "\u3009",
}

FULL_TO_HALF = {
    **{ord(char) + _OFFSET: char for char in _ASCII if char not in "\"'-~"},
    **{ord(char): half for half, others in _SIGNS.items() for char in others},
}
