"""Tensors on disk, as safetensors: written atomically, checked when read, never unpickled."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from nmtflex.errors import RunError
from nmtflex.files import atomic_file, file_hash
from nmtflex.runs.folder import RunFolder
from nmtflex.runs.rounding import SCALE, restored

CHECKSUM = "sha256"  # key in a file's metadata


def save_tensors(path: Path, tensors: dict[str, Tensor], about: dict[str, str]) -> None:
    """Write named tensors and metadata, with a checksum of both.

    Raises:
        OSError: The disk is full, say; an existing file stays as it was.
    """
    here = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    words = about | {CHECKSUM: _checksum(here, about)}
    with atomic_file(path) as file:
        file.write(safetensors.torch.save(here, metadata=words))


@contextlib.contextmanager
def open_tensors(path: Path) -> Iterator[Any]:
    """Open a safetensors file; its header is checked against the size of the file.

    Raises:
        RunError: The file is missing, truncated or not a safetensors file.
    """
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            yield file
    except OSError as error:
        raise RunError(f"{path}: {error.strerror or error}") from error
    except safetensors.SafetensorError as error:
        raise RunError(f"{path} is truncated or damaged ({error})") from error


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read what ``save_tensors`` wrote.

    Raises:
        RunError: The file is missing, truncated or not a safetensors file, or does not match
            its checksum. (Older files have none, and are accepted.)
    """
    with open_tensors(path) as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        about = dict(file.metadata() or {})
    written = about.pop(CHECKSUM, None)
    if written is not None and written != _checksum(tensors, about):
        raise RunError(f"{path} is damaged: its content does not match its checksum")
    return tensors, about


def digest_of(path: Path) -> str:
    """Return the checksum in a file's header; of an older file without one, its SHA-256.

    Raises:
        RunError: The file is missing, truncated or not a safetensors file.
    """
    with open_tensors(path) as file:
        about = file.metadata() or {}
    return about.get(CHECKSUM) or file_hash(path)


def _checksum(tensors: Mapping[str, Tensor], about: Mapping[str, str]) -> str:
    """Return the SHA-256 of names, formats, shapes and bytes; about 1.5 GB a second."""
    digest = hashlib.sha256(repr(sorted(about.items())).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(repr((name, str(tensor.dtype), tuple(tensor.shape))).encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Return a model's weights by name, a tied one once, and what it drew once for all."""
    own = itertools.chain(model.named_parameters(), model.named_buffers())
    return {name: tensor.detach() for name, tensor in own}


def load_weights(path: Path, model: nn.Module) -> dict[str, str]:
    """Load a model's weights from a file; return the metadata.

    Raises:
        RunError: The file cannot be read, or is of another model.
    """
    own = model_tensors(model)
    tensors, about = read_weights(path, own)
    for name, tensor in tensors.items():
        own[name].copy_(tensor)
    return about


def map_weights(path: Path, model: nn.Module) -> None:
    """Load a model's weights from a file for use without training.

    On the CPU, weights in the format of the file are not copied: they lie in the pages of the file,
    which all processes that have loaded it share. So the file may be replaced or deleted while it
    is in use, but must not be overwritten in place.

    Raises:
        RunError: The file cannot be read, or is of another model.
    """
    tensors, _ = read_weights(path, model_tensors(model))
    for name, own in itertools.chain(model.named_parameters(), model.named_buffers()):
        tensor = tensors[name]
        if (own.device, own.dtype) == (tensor.device, tensor.dtype):
            own.data = tensor
        else:
            own.data.copy_(tensor)


def read_weights(path: Path, own: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read the weights of a model and their metadata.

    Args:
        path: The file.
        own: ``model_tensors`` of that model.

    Raises:
        RunError: The file cannot be read, or is of another model.
    """
    check_weights(path, own)
    tensors, about = load_tensors(path)
    return restored(tensors), about


def check_weights(path: Path, own: Mapping[str, Tensor]) -> None:
    """Check that a file holds the weights of a model; only its header is read.

    Args:
        path: The file.
        own: ``model_tensors`` of that model, which may be on the meta device.

    Raises:
        RunError: The file cannot be read, or is of another model.
    """
    with open_tensors(path) as file:
        found = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
    shapes = {name: tuple(tensor.shape) for name, tensor in own.items()}
    in_8_bits = {name for name in own if name + SCALE in found}
    shapes |= {name + SCALE: shapes[name][:1] for name in in_8_bits}
    for name in sorted(shapes.keys() | found.keys()):
        here = shapes.get(name)
        there = tuple(found[name].get_shape()) if name in found else None
        if here != there:
            raise RunError(
                f"{path}: weight {name} has shape {there} in the file, {here} in the model; "
                f"the file is truncated, damaged or of another model"
            )
        kind, small = found[name].get_dtype(), name in in_8_bits
        if not (kind == "I8" if small else "F" in kind):  # of F64, F32, F16 and BF16
            wanted = "an 8-bit integer" if small else "a real number"
            raise RunError(f"{path}: weight {name} is {kind}, not {wanted}")


def best_update(folder: RunFolder) -> int:
    """Return the optimiser steps behind a run's best weights, from the header of their file.

    Raises:
        RunError: The file is damaged.
    """
    with open_tensors(folder.best) as file:
        update = (file.metadata() or {}).get("update", "0")
    if not re.fullmatch(r"\d{1,18}", update):
        raise RunError(f"{folder.best}: update is {update!r}, not a number; the file is damaged")
    return int(update)
