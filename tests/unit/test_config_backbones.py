"""Options of transformer encoders and of decoders of layers that do not fit are told."""

from __future__ import annotations

from typing import Any

import pytest

from nmtflex.config import ModelConfig, SsruConfig, TransformerDecoderConfig
from nmtflex.errors import OptionError


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"encoder": "transformer", "encoder_heads": 7},
            "--encoder-heads 7 must divide --encoder-size 256; use --encoder-heads 8",
        ),
        (
            {"encoder": "transformer", "encoder_size": 128},
            "--encoder transformer needs --embedding-size 128, the same as --encoder-size, not 256",
        ),
        (
            {"decoder": "ssru", "decoder_heads": 5},
            "--decoder-heads 5 must divide --decoder-size 256; use --decoder-heads 4",
        ),
        (
            {"decoder": "transformer", "decoder_size": 512},
            "--decoder transformer needs --embedding-size 512, the same as --decoder-size, not 256",
        ),
        (
            {"decoder": "ssru", "decoder_size": 6, "embedding_size": 6, "decoder_heads": 4},
            "--decoder-heads 4 must divide --decoder-size 6; use --decoder-heads 3",
        ),
        (
            {"decoder": "ssru", "attention": "flexible", "attention_size": 100},
            "--decoder-heads 8 must divide --attention-size 100",
        ),
        (
            {"decoder": "ssru", "attending_layers": "3"},
            "--attending-layers 3: there is no layer 3 in a decoder of --decoder-layers 2",
        ),
        (
            {"decoder": "transformer", "attending_layers": "1,4", "decoder_layers": 3},
            "--attending-layers 1,4: there is no layer 4 in a decoder of --decoder-layers 3",
        ),
        *(
            (
                {"decoder": "ssru", "attending_layers": text},
                f"--attending-layers must be increasing integers of at least 1, not {text!r}",
            )
            for text in ("0", "2,1", "1,1", "one", "1,", "-1", "1-2")
        ),
        (
            {"attention": "none", "attend_every": "gate"},
            "--attend-every gate has no effect with --attention none",
        ),
        (
            {"decoder": "ssru", "attention": "none", "attending_layers": "1"},
            "--attending-layers 1 has no effect with --attention none",
        ),
        (
            {"decoder": "ssru", "decoder_ffn": 0, "ffn_dropout": 0.2},
            "--ffn-dropout 0.2 has no effect with --decoder-ffn 0",
        ),
        (
            {"encoder": "transformer", "decoder": "ssru", "cell": "gru"},
            "--cell belongs to --encoder recurrent, not to transformer",
        ),
        (
            {"decoder": "bahdanau", "decoder_heads": 4},
            "--decoder-heads belongs to --decoder ssru and transformer, not to bahdanau",
        ),
        (
            {"decoder": "ssru", "attentional": False},
            "belongs to --decoder luong, not to ssru",
        ),
        (
            {"encoder": "recurrent", "encoder_heads": 4},
            "--encoder-heads belongs to --encoder transformer, not to recurrent",
        ),
        (
            {"decoder": "ssru", "attention_dropout": 0.1},
            "--attention-dropout belongs to --encoder transformer, not to recurrent",
        ),
        ({"decoder": "ssru", "decoder_heads": 0}, "--decoder-heads must be at least 1, not 0"),
        ({"decoder": "ssru", "decoder_ffn": -1}, "--decoder-ffn must be at least 0, not -1"),
        ({"decoder": "ssru", "ffn_dropout": 1.0}, "--ffn-dropout must be less than 1, not 1.0"),
        ({"encoder": "transformer", "encoder_ffn": 0}, "--encoder-ffn must be at least 1, not 0"),
        ({"encoder": "transfomer"}, "recurrent, transformer, not 'transfomer'; did you mean trans"),
        ({"decoder": "sru"}, "transformer, not 'sru'; did you mean ssru?"),
        (
            {"decoder": "ssru", "attention": "global", "attention_size": 64},
            "--attention-size 64 has no effect on --attention global --score dot",
        ),
    ],
)
def test_options_that_do_not_fit(values: dict[str, Any], message: str):
    with pytest.raises(OptionError) as caught:
        ModelConfig.from_flat(**values)
    assert message in str(caught.value)


def test_all_faults_come_at_once():
    with pytest.raises(OptionError) as caught:
        ModelConfig.from_flat(
            encoder="transformer", encoder_heads=3, decoder="ssru", decoder_size=100
        )
    for part in ("--encoder-heads 3", "--decoder-heads 8", "--embedding-size 100"):
        assert part in str(caught.value)


def test_options_that_both_sides_have_reach_both():
    shared = {"pre_norm": True, "ffn_dropout": 0.1, "attention_dropout": 0.2}
    config = ModelConfig.from_flat(encoder="transformer", decoder="transformer", **shared)
    for side in (config.encoder, config.decoder):
        assert {name: getattr(side, name) for name in shared} == shared
    one = ModelConfig.from_flat(encoder="transformer", decoder="bahdanau", pre_norm=True)
    assert one.encoder.pre_norm
    both = ModelConfig.from_flat(encoder="transformer", decoder="bahdanau", cell="gru")
    assert both.decoder.cell == "gru"


@pytest.mark.parametrize("decoder", ["ssru", "transformer"])
def test_scores_are_dots_in_layers_unless_given(decoder):
    for attention in ("global", "local-m", "local-p", "flexible"):
        found = ModelConfig.from_flat(attention=attention, decoder=decoder)
        assert found.attention.score == "dot"
        assert ModelConfig.from_dict(found.to_dict()) == found
        found = ModelConfig.from_flat(attention=attention, decoder=decoder, score="additive")
        assert found.attention.score == "additive"
        assert ModelConfig.from_flat(attention=attention).attention.score == "additive"


def test_sizes_of_heads():
    config = ModelConfig.from_flat(attention="flexible", decoder="ssru", attention_size=64)
    assert (config.decoder.heads, config.key_size) == (8, 8)
    assert ModelConfig.from_flat(decoder="ssru").key_size == 256 // 8
    assert ModelConfig.from_flat(encoder="transformer").encoder.states_size == 256
    assert SsruConfig(decoder_layers=3).attending == [0, 1, 2]
    assert TransformerDecoderConfig(decoder_layers=4, attending_layers="2,4").attending == [1, 3]
