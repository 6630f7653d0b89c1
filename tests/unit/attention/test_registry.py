"""The registry of mechanisms."""

from __future__ import annotations

import pytest

from nmtflex.attention import ATTENTIONS, GlobalAttention
from nmtflex.attention.base import register
from nmtflex.config import AttentionConfig, GlobalConfig


def test_options_and_mechanisms_match():
    assert set(ATTENTIONS) == set(AttentionConfig.variants().values())
    assert {"global", "none"} <= set(AttentionConfig.variants())


def test_a_second_mechanism_for_the_same_options_is_refused():
    with pytest.raises(ValueError, match="GlobalConfig has GlobalAttention already"):
        register(GlobalConfig)(GlobalAttention)
