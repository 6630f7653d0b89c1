"""Japanese words by KyTea models."""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
import threading
from pathlib import Path
from typing import Any

from nmtflex.errors import DataError
from nmtflex.text.tokenizers.japanese import JapaneseTokenizer, original_pieces
from nmtflex.text.tokenizers.kytea_model import characters_of, check_model, read_model

# A letter of KyTea's class "other" that no model knows.
_STAND_IN = "\U000f0000"
_REFUSED = "\0\ud800-\udfff"  # what vaporetto does not accept
# vaporetto counts these as kanji; KyTea, by an overflow, as "other", with any model.
_RARE_KANJI = "".join(
    f"{chr(page + 0x40)}-{chr(page + 0xFFF)}" for page in range(0x20000, 0x2C000, 0x1000)
) + "\U0002c000-\U0002fa1f"  # fmt: skip


class KyteaTokenizer(JapaneseTokenizer):
    """KyTea's words, by vaporetto, which reads KyTea models.

    Args:
        model: A binary KyTea model, plain or packed with gzip, xz or zstd.
        sha256: Hash that the unpacked model must have; None for any. A model with this hash skips
            the trial in a separate process, which takes as long as loading it.

    Raises:
        DataError: vaporetto is not installed, or the model is missing or unusable.
    """

    name = "kytea"
    needs_model = True

    def __init__(self, model: Path | None = None, sha256: str | None = None) -> None:
        try:
            import vaporetto
        except ImportError as error:
            raise DataError(
                "the kytea tokenizer needs vaporetto; run pip install vaporetto"
            ) from error
        if model is None:
            raise DataError(
                "the kytea tokenizer needs a model; give KyTea's file with --kytea-model"
            )
        self.model: Path = model
        data = read_model(model)
        self.sha256 = hashlib.sha256(data).hexdigest()
        if sha256 is None:
            check_model(data, model)
        elif sha256 != self.sha256:
            raise DataError(
                f"{model}: its SHA-256 begins with {self.sha256[:12]}, that of the model that was "
                f"used with {sha256[:12]}; copy the folder again"
            )
        self._alone = threading.Lock()  # it serves one thread at a time
        self._segmenter = vaporetto.Vaporetto.create_from_kytea_model(data)
        odd = re.compile(f"[{_RARE_KANJI}]")
        known = "".join(sorted(set(odd.findall(characters_of(data)))))
        self._odd = re.compile(f"(?![{known}])" * bool(known) + f"[{_REFUSED}{_RARE_KANJI}]")

    def pieces(self, line: str) -> list[str]:
        """Split as KyTea does; white space is split too, and nothing is dropped."""
        text = self._odd.sub(_STAND_IN, line)
        with self._alone:
            pieces = [token.surface() for token in self._segmenter.tokenize(text)]
        return pieces if text == line else original_pieces(pieces, line)

    def describe(self) -> dict[str, Any]:
        """Return name, the model's hash and the version of vaporetto."""
        version = importlib.metadata.version("vaporetto")
        return {"name": self.name, "sha256": self.sha256, "version": f"vaporetto {version}"}

    def save_model(self, path: Path) -> None:
        """Write the model, unpacked.

        Raises:
            DataError: The file has changed since it was opened.
        """
        data = read_model(self.model)
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise DataError(f"{self.model}: changed while it was in use; start again")
        path.write_bytes(data)
