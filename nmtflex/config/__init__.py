"""Every option of nmtflex, once: typed, bounded, documented. Imports no torch."""

from nmtflex.config.attention import (
    AttentionConfig,
    FlexibleConfig,
    GlobalConfig,
    LocalMConfig,
    LocalPConfig,
    MemoryConfig,
    NoneConfig,
)
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
from nmtflex.config.model import ModelConfig
from nmtflex.config.training import TrainConfig

__all__ = [
    "FORMAT",
    "AttentionConfig",
    "BatchConfig",
    "Config",
    "DeviceConfig",
    "EvalConfig",
    "FlexibleConfig",
    "GenerateCopyConfig",
    "GenerateToyConfig",
    "GlobalConfig",
    "LocalMConfig",
    "LocalPConfig",
    "MemoryConfig",
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
