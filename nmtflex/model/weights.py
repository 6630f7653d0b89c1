"""Tensors on disk, as safetensors: written atomically, checked when read, never unpickled."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import safetensors
import safetensors.torch
from torch import Tensor, nn

from nmtflex.errors import RunError
from nmtflex.files import atomic_file


def save_tensors(path: Path, tensors: dict[str, Tensor], about: dict[str, str]) -> None:
    """Write named tensors and a few words about them."""
    contiguous = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    with atomic_file(path) as file:
        file.write(safetensors.torch.save(contiguous, metadata=about))


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read what ``save_tensors`` wrote.

    Raises:
        RunError: The file is missing, truncated or no safetensors file.
    """
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except OSError as error:
        raise RunError(f"{path}: {error.strerror or error}") from error
    except safetensors.SafetensorError as error:
        raise RunError(f"{path} is truncated or damaged ({error})") from error


def model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Return a model's weights by name, a tied one once."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def load_weights(path: Path, model: nn.Module) -> dict[str, str]:
    """Fill a model from a file; return the words about it.

    Raises:
        RunError: The file cannot be read, or is of another model.
    """
    own = model_tensors(model)
    tensors, about = read_weights(path, own)
    for name, tensor in tensors.items():
        own[name].copy_(tensor)
    return about


def read_weights(path: Path, own: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read the weights of a model and the words about them.

    Args:
        path: The file.
        own: What ``model_tensors`` returns of that model.

    Raises:
        RunError: The file cannot be read, or is of another model.
    """
    tensors, about = load_tensors(path)
    for name in sorted(own.keys() | tensors.keys()):
        here = tuple(own[name].shape) if name in own else None
        there = tuple(tensors[name].shape) if name in tensors else None
        if here != there:
            raise RunError(
                f"{path}: weight {name} has shape {there} in the file, {here} in the model; "
                f"the file is of another model"
            )
        if not tensors[name].is_floating_point():
            raise RunError(f"{path}: weight {name} is {tensors[name].dtype}, not a real number")
    return tensors, about
