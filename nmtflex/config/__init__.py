"""Definitions of all nmtflex options: types, bounds and help texts. Does not import torch."""

from nmtflex.config.attention import (
    AbcConfig,
    AttentionConfig,
    FlexibleConfig,
    GlobalConfig,
    LocalMConfig,
    LocalPConfig,
    MemoryConfig,
    MochaConfig,
    MonotonicConfig,
    NoneConfig,
    RfaConfig,
    ScanningConfig,
)
from nmtflex.config.base import (
    FORMAT,
    RUN_FORMAT,
    Config,
    Opt,
    Variant,
    all_options_of,
    default_of,
    flag_of,
    flattened,
    is_kind,
    nearest,
    options_of,
    revive,
)
from nmtflex.config.bench import BenchConfig
from nmtflex.config.calibration import CalibrateConfig
from nmtflex.config.compare import CompareConfig
from nmtflex.config.concat import ConcatConfig
from nmtflex.config.corpus import PreprocessConfig
from nmtflex.config.decoder import (
    BahdanauConfig,
    DecoderConfig,
    LayeredDecoderConfig,
    LuongConfig,
    RecurrentDecoderConfig,
    SsruConfig,
    TransformerDecoderConfig,
)
from nmtflex.config.decoding import (
    BatchConfig,
    Decoding,
    DeviceConfig,
    ForcedConfig,
    OutputConfig,
    SearchConfig,
    ShownConfig,
    ThresholdConfig,
)
from nmtflex.config.encoder import EncoderConfig, RecurrentEncoderConfig, TransformerEncoderConfig
from nmtflex.config.finetuning import AverageConfig, ExportConfig, FinetuneConfig
from nmtflex.config.glossary import GlossaryConfig
from nmtflex.config.layers import layered
from nmtflex.config.model import ModelConfig
from nmtflex.config.old_runs import upgraded
from nmtflex.config.optimizer import AdamConfig, AdamWConfig, OptimizerConfig, SGDConfig
from nmtflex.config.paragraphs import ParagraphConfig
from nmtflex.config.plot import (
    AutoFigure,
    ByLengthFigure,
    EncodingFigure,
    FigureConfig,
    LearningFigure,
    LengthFigure,
    PlotConfig,
    SecondsFigure,
    SentenceFigure,
    TradeOffFigure,
)
from nmtflex.config.processes import ProcessConfig
from nmtflex.config.report import ReportConfig
from nmtflex.config.scoring import EvalConfig, ScoreConfig
from nmtflex.config.serving import AccessConfig, LimitConfig, ServeConfig
from nmtflex.config.sweep import SweepConfig
from nmtflex.config.synthetic import GenerateCopyConfig, GenerateToyConfig, GenerateZipfConfig
from nmtflex.config.text import DetokenizeConfig, TokenizeConfig, describe_tokenizer
from nmtflex.config.training import AUTO, LoopConfig, TrainConfig
