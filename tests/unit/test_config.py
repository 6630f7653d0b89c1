"""Options check themselves, wherever they come from, and survive being saved."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest

import nmtflex.config
from nmtflex.config import (
    AttentionConfig,
    BahdanauConfig,
    Config,
    DecoderConfig,
    DeviceConfig,
    EvalConfig,
    GlobalConfig,
    LuongConfig,
    MemoryConfig,
    ModelConfig,
    NoneConfig,
    Opt,
    PreprocessConfig,
    RecurrentEncoderConfig,
    SearchConfig,
    TrainConfig,
    Variant,
    default_of,
    flag_of,
    is_kind,
    nearest,
    options_of,
    upgraded,
)
from nmtflex.errors import OptionError

GOLDEN = Path(__file__).parents[1] / "golden"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Shape(Variant):
    """A family of two."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Square(Shape):
    """Options of the square."""

    kind: ClassVar[str] = "square"

    side: Annotated[float, Opt("Side.", gt=0)] = 1.0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Point(Shape):
    """Options of the point."""

    kind: ClassVar[str] = "point"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class DrawConfig(Config):
    """One field of each type that an option can have."""

    out: Annotated[Path, Opt("Where.")]
    shape: Annotated[Shape, Opt("What.")] = Point()
    count: Annotated[int, Opt("How many.", ge=1, le=9)] = 1
    share: Annotated[float, Opt("Share.", ge=0, lt=1)] = 0.0
    filled: Annotated[bool, Opt("Filled.")] = False
    title: Annotated[str, Opt("Title.")] = ""
    colour: Annotated[Literal["red", "blue"], Opt("Colour.")] = "red"
    edge: Annotated[Literal["thin", "thick"] | None, Opt("Edge.")] = None
    limit: Annotated[int | None, Opt("Limit.", gt=0)] = None
    masks: Annotated[list[Path], Opt("Masks.")] = dataclasses.field(default_factory=list)
    slots: Annotated[int, Opt("Slots.", ge=1, flag="--K")] = 1


def draw(**values: Any) -> DrawConfig:
    return DrawConfig(**{"out": Path("x"), **values})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"count": 0}, "--count must be at least 1, not 0"),
        ({"count": 10}, "--count must be at most 9, not 10"),
        ({"limit": 0}, "--limit must be greater than 0, not 0"),
        ({"share": 1.0}, "--share must be less than 1, not 1.0"),
        ({"share": float("nan")}, "--share must be at least 0, not nan"),
        ({"slots": -3}, "--K must be at least 1, not -3"),
        (
            {"count": 0, "share": 2.5},
            "--count must be at least 1, not 0; --share must be less than 1, not 2.5",
        ),
    ],
)
def test_bounds(values, message):
    with pytest.raises(OptionError) as caught:
        draw(**values)
    assert str(caught.value) == message


def test_values_on_the_bounds_are_allowed():
    lowest = draw(count=1, share=0.0, limit=1)
    assert (lowest.count, lowest.share, lowest.limit) == (1, 0.0, 1)
    assert draw(count=9, limit=None).limit is None


@pytest.mark.parametrize(
    "config",
    [
        draw(),
        draw(
            shape=Square(side=2.5),
            count=3,
            share=0.25,
            filled=True,
            title="a <unk> \u3000 b",
            colour="blue",
            edge="thick",
            limit=4,
            masks=[Path("a"), Path("b c")],
        ),
        ModelConfig.from_flat(),
        ModelConfig.from_flat(attention=NoneConfig(), decoder="luong", input_feeding=False),
        ModelConfig.from_flat(attention=GlobalConfig(score="general")),
        TrainConfig(data=Path("prepared"), run=Path("runs/a"), updates=5, validate_every="2.5m"),
        PreprocessConfig(out=Path("o"), source_lang="en", target_lang="ja", train=[Path("c/t")]),
    ],
)
def test_survives_json(config):
    text = json.dumps(config.to_dict())
    assert type(config).from_dict(json.loads(text)) == config


def test_variant_carries_its_kind():
    assert draw(shape=Square(side=2.0)).to_dict()["shape"] == {"kind": "square", "side": 2.0}
    assert draw().to_dict()["shape"] == {"kind": "point"}


def test_what_was_not_saved_takes_the_default():
    assert DrawConfig.from_dict({"out": "x"}) == draw()


def test_whole_number_where_a_number_is_asked():
    side = DrawConfig.from_dict({"out": "x", "shape": {"kind": "square", "side": 2}}).shape.side
    assert (side, type(side)) == (2.0, float)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"cuont": 1}, "unknown option 'cuont'; did you mean count?"),
        ({"qqq": 1}, "unknown option 'qqq'"),
        ({"count": 0}, "--count must be at least 1, not 0"),
        ({"count": "3"}, "option 'count' must be an integer, not '3'"),
        ({"count": 3.0}, "option 'count' must be an integer, not 3.0"),
        ({"count": True}, "option 'count' must be an integer, not True"),
        ({"count": None}, "option 'count' must be an integer, not None"),
        ({"share": "much"}, "option 'share' must be a number, not 'much'"),
        ({"share": False}, "option 'share' must be a number, not False"),
        ({"filled": 1}, "option 'filled' must be true or false, not 1"),
        ({"title": 1}, "option 'title' must be a string, not 1"),
        ({"out": 3}, "option 'out' must be a path, not 3"),
        ({"colour": "green"}, "option 'colour' must be one of red, blue, not 'green'"),
        ({"edge": ["thin"]}, "option 'edge' must be one of thin, thick, not ['thin']"),
        ({"limit": "4"}, "option 'limit' must be an integer, not '4'"),
        ({"masks": "a"}, "option 'masks' must be a list, not 'a'"),
        ({"masks": ["a", 2]}, "option 'masks' must be a path, not 2"),
        ({"shape": "square"}, "option 'shape' needs a kind (square, point), not 'square'"),
        ({"shape": {"side": 1}}, "option 'shape' needs a kind (square, point)"),
        ({"shape": {"kind": "cube"}}, "option 'shape' must be one of square, point, not 'cube'"),
        (
            {"shape": {"kind": "squ"}},
            "must be one of square, point, not 'squ'; did you mean square?",
        ),
        ({"shape": {"kind": []}}, "option 'shape' must be one of square, point, not []"),
        ({"shape": {"kind": "square", "sid": 1}}, "unknown option 'sid'; did you mean side?"),
        (
            {"shape": {"kind": "point", "side": 1}},
            "option 'side' belongs to shape square, not to point",
        ),
        ({"shape": {"kind": "square", "side": -1}}, "--side must be greater than 0, not -1.0"),
    ],
)
def test_what_cannot_be_reloaded(values, message):
    with pytest.raises(OptionError) as caught:
        DrawConfig.from_dict({"out": "x", **values})
    assert message in str(caught.value)


def test_missing_value():
    with pytest.raises(OptionError, match=r"^option 'out' is missing$"):
        DrawConfig.from_dict({"count": 3})


def test_variants_are_the_classes_that_the_module_keeps():
    assert Shape.variants() == {"square": Square, "point": Point}
    assert AttentionConfig.variants()["global"] is GlobalConfig


def test_every_option_has_a_help_text_that_ends():
    for group in (ModelConfig, TrainConfig, PreprocessConfig, SearchConfig, DeviceConfig):
        for name, (_, option) in options_of(group).items():
            assert option.help.endswith((".", ";", ")")), f"{group.__name__}.{name}"


def test_options_that_replace_others_name_them():
    groups = [group for group in vars(nmtflex.config).values() if is_kind(group, Config)]
    pairs = {
        (group, other)
        for group in groups
        for _, option in options_of(group).values()
        for other in option.replaces
    }
    assert [pair for pair in pairs if pair[1] not in options_of(pair[0])] == []
    assert (TrainConfig, "epochs") in pairs


def test_defaults():
    assert default_of(DrawConfig, "count") == 1
    assert default_of(DrawConfig, "masks") == []
    assert default_of(DrawConfig, "out") is dataclasses.MISSING


def test_owners_of_options():
    assert Shape.owners() == {"side": ["square"]}
    assert AttentionConfig.owners()["window"] == ["local-m", "local-p"]


def test_flag_spelling():
    assert flag_of("num_layers", Opt("Layers.")) == "--num-layers"
    assert flag_of("num_slots", Opt("Slots.", flag="--K")) == "--K"


def test_nearest():
    assert nearest("--bem", ["--beam", "--seed"]) == "; did you mean --beam?"
    assert nearest("qqq", ["beam", "seed"]) == ""


@pytest.mark.parametrize("device", ["auto", "cpu", "cuda", "cuda:1"])
def test_devices(device):
    assert DeviceConfig(device=device).device == device


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", "cpu0", ""])
def test_wrong_devices(device):
    with pytest.raises(OptionError, match=f"^--device must be .* not {device!r}$"):
        DeviceConfig(device=device)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"attention": GlobalConfig(score="dot"), "decoder_size": 300}, "--score dot .*512.*300"),
        ({"input_feeding": False}, "--input-feeding .*--decoder luong, not to bahdanau"),
        ({"attentional": False}, "--attentional .*--decoder luong, not to bahdanau"),
        ({"decoder": "luong", "deep_output": True}, "--deep-output .*--decoder bahdanau, not to l"),
        ({"decoder": "lung"}, "'decoder' .* bahdanau, luong, .*'lung'; did you mean luong"),
        ({"encoder_sise": 3}, "'encoder_sise'"),
        (
            {"tie_embeddings": "target", "embedding_size": 128},
            "--tie-embeddings target needs .*128.*256; add --bottleneck 128",
        ),
    ],
)
def test_model_options_that_do_not_fit(values, message):
    with pytest.raises(OptionError, match=message):
        ModelConfig.from_flat(**values)


@pytest.mark.parametrize(
    ("attention", "message"),
    [
        (
            GlobalConfig(score="general"),
            "--attention-size 9 has no effect on --attention global --score general",
        ),
        (NoneConfig(), "--attention-size 9 has no effect on --attention none"),
    ],
)
def test_an_attention_size_where_nothing_has_one(attention, message):
    with pytest.raises(OptionError, match=message):
        ModelConfig.from_flat(attention=attention, attention_size=9)


def test_model_sizes():
    luong = {"decoder": "luong", "encoder_size": 3, "decoder_size": 5, "embedding_size": 7}
    assert ModelConfig.from_flat(**luong).output_size == 5
    assert ModelConfig.from_flat(**luong, attentional=False).output_size == 5 + 2 * 3
    assert ModelConfig.from_flat(**luong, attentional=False, bottleneck=4).output_size == 4
    assert ModelConfig.from_flat(encoder_size=3).encoder.states_size == 2 * 3
    assert ModelConfig.from_flat(decoder_size=5).key_size == 5
    assert ModelConfig.from_flat(decoder_size=5, attention_size=2).key_size == 2


def test_the_decoder_of_the_mechanisms_paper():
    sizes = DecoderConfig(decoder_size=5)
    assert ModelConfig(decoder=sizes).decoder == BahdanauConfig(decoder_size=5)
    assert ModelConfig(attention=MemoryConfig()).decoder == LuongConfig()
    flat = ModelConfig.from_flat(attention="memory", K=4, attentional=False, cell="gru")
    assert flat == ModelConfig(
        attention=MemoryConfig(K=4),
        encoder=RecurrentEncoderConfig(cell="gru"),
        decoder=LuongConfig(attentional=False, cell="gru"),
    )
    assert ModelConfig.from_dict(flat.to_dict()) == flat


@pytest.mark.parametrize("run", ["bahdanau-global", "luong-flexible", "luong-memory"])
def test_runs_of_format_1_are_upgraded(run):
    old = json.loads((GOLDEN / run / "config.json").read_text())
    config = ModelConfig.from_dict(upgraded(old)["model"])
    parts = [config.to_dict(), config.encoder.to_dict(), config.decoder.to_dict()]
    parts[0]["decoder"] = config.decoder.kind
    for name, value in old["model"].items():
        found = [part[name] for part in parts if name in part]
        if isinstance(value, dict):  # later options have their defaults
            found = [{key: part[key] for key in value} for part in found]
        assert found == [value] * len(found)
        assert found or name in ("input_feeding", "attentional")  # had no effect with bahdanau
    assert upgraded(upgraded(old)) == upgraded(old)


def test_ready_kinds_take_flat_options_too():
    flat = ModelConfig.from_flat(decoder=LuongConfig(attentional=False), decoder_size=9)
    assert flat.decoder == LuongConfig(attentional=False, decoder_size=9)


def train(**values: Any) -> TrainConfig:
    return TrainConfig(data=Path("d"), run=Path("r"), **values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"epochs": 2, "updates": 3}, "give --epochs or --updates, not both"),
        (
            {"batch_tokens": 2, "batch_sentences": 3},
            "give --batch-tokens or --batch-sentences, not both",
        ),
        ({"halve_from": 1}, "--halve-from 1 "),
        ({"seed": 2**63}, "--seed must be less than .* not 9223372036854775808"),
        ({"validate_every": "0"}, "--validate-every must be .* not '0'"),
        ({"validate_every": "0m"}, "--validate-every must be .* not '0m'"),
        ({"validate_every": "1.5"}, "--validate-every must be .* not '1.5'"),
        ({"validate_every": "soon"}, "--validate-every must be .* not 'soon'"),
    ],
)
def test_training_options_that_do_not_fit(values, message):
    with pytest.raises(OptionError, match=message):
        train(**values)


@pytest.mark.parametrize(
    ("every", "interval"),
    [(None, (None, None)), ("500", (500, None)), ("30m", (None, 1800)), ("0.5m", (None, 30))],
)
def test_validation_interval(every, interval):
    assert train(validate_every=every).interval() == interval


def test_how_long_to_train():
    assert (train().last_epoch, train(epochs=3).last_epoch) == (10, 3)
    assert train(updates=7).last_epoch is None
    assert (train().token_budget, train(batch_tokens=9).token_budget) == (4096, 9)


def test_resampling():
    files = {"hypothesis": [Path("h")], "reference": [Path("r")]}
    assert EvalConfig(**files).resampling is None
    assert EvalConfig(**files, significance="bootstrap").resampling == {
        "method": "bootstrap",
        "samples": 1000,
        "seed": 12345,
    }
    several = files | {"hypothesis": [Path("h"), Path("i")]}
    found = EvalConfig(**several, significance="randomisation", seed=7).resampling
    assert found == {"method": "randomisation", "samples": 10_000, "seed": 7}


@pytest.mark.parametrize("value", [2**63, -(10**400), 1 << 20_000], ids=["64", "1329", "20001"])
def test_a_number_that_no_option_takes(value):
    for name in ("dropout", "embedding_size"):
        with pytest.raises(OptionError, match=f"option '{name}' is too large"):
            ModelConfig.from_dict({name: value})
    with pytest.raises(OptionError, match="option 'dropout' must be a number, not "):
        ModelConfig.from_dict({"dropout": [value]})
    with pytest.raises(OptionError, match=r"option 'attention' needs a kind .*, not "):
        ModelConfig.from_dict({"attention": value})
