"""Every option of nmtflex, once: typed, bounded, documented. Imports no torch."""

from nmtflex.config.base import (
    FORMAT,
    Config,
    Opt,
    Variant,
    flag_of,
    nearest,
    options_of,
    revive,
)
from nmtflex.config.corpus import GenerateCopyConfig, GenerateToyConfig, PreprocessConfig
from nmtflex.config.decoding import (
    BatchConfig,
    DeviceConfig,
    EvalConfig,
    OutputConfig,
    SearchConfig,
)
from nmtflex.config.model import AttentionConfig, GlobalConfig, ModelConfig, NoneConfig
from nmtflex.config.training import TrainConfig

__all__ = [
    "FORMAT",
    "AttentionConfig",
    "BatchConfig",
    "Config",
    "DeviceConfig",
    "EvalConfig",
    "GenerateCopyConfig",
    "GenerateToyConfig",
    "GlobalConfig",
    "ModelConfig",
    "NoneConfig",
    "Opt",
    "OutputConfig",
    "PreprocessConfig",
    "SearchConfig",
    "TrainConfig",
    "Variant",
    "flag_of",
    "nearest",
    "options_of",
    "revive",
]
