"""The subwords of a prepared folder as text, for toolkits that read text.

    prepared_text.py PREPARED OUT

Writes OUT/SPLIT.LANGUAGE, with subwords between spaces, for the splits train, valid and test, and
the joint vocabulary in other toolkits' formats: ``dict.txt`` of fairseq and ``vocabulary.yml`` of
Marian. So all toolkits train on the same subwords with the same vocabulary.
"""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SPECIALS = 4  # ids before the first subword


def sentences(prepared: Path, split: str, side: dict[str, Any], words: list[str]) -> Iterator[str]:
    """Return the sentences of one side of a split; see docs/formats.md."""
    ids, offsets = array("H" if side["dtype"] == "<u2" else "I"), array("q")
    ids.frombytes((prepared / f"{split}.{side['name']}.bin").read_bytes())
    offsets.frombytes((prepared / f"{split}.{side['name']}.offsets").read_bytes())
    for place in range(len(offsets) - 1):
        own = ids[offsets[place] : offsets[place + 1]]
        yield " ".join(
            words[number - SPECIALS] if number >= SPECIALS else "<unk>" for number in own
        )


def marian_vocabulary(words: list[str]) -> str:
    """Return Marian's file of a vocabulary, whose special symbols come first."""
    listed = enumerate(["</s>", "<unk>", *words])
    return "".join(f"{json.dumps(word)}: {number}\n" for number, word in listed)


def main() -> None:
    """Write text and vocabularies."""
    prepared, out = map(Path, sys.argv[1:])
    manifest = json.loads((prepared / "manifest.json").read_text(encoding="utf-8"))
    out.mkdir(parents=True, exist_ok=True)
    for name in ("source", "target"):
        lines = (prepared / "pipeline" / f"{name}.vocabulary").read_text(encoding="utf-8")
        counts = [line.split("\t") for line in lines.removesuffix("\n").split("\n")]
        words = [word for word, _ in counts]
        language = manifest["pipeline"][name]["language"]
        for split, facts in manifest["splits"].items():
            text = sentences(prepared, split, {"name": name, **facts[name]}, words)
            (out / f"{split}.{language}").write_text(
                "".join(f"{line}\n" for line in text), encoding="utf-8"
            )
    if not manifest["pipeline"]["joint"]:
        sys.exit(f"{prepared}: source and target have vocabularies of their own")
    fairseq = "".join(f"{word} {count}\n" for word, count in counts)
    (out / "dict.txt").write_text(fairseq, encoding="utf-8")
    (out / "vocabulary.yml").write_text(marian_vocabulary(words), encoding="utf-8")


if __name__ == "__main__":
    main()
