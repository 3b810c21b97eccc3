"""The tensors of a checkpoint that are sharded: every process writes its own parts, and reads only those it needs.

They are safetensors files, written by torch.distributed.checkpoint with the place of each part. Any other number of
processes can read them, and one process the whole tensors.
"""

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from torch import Tensor
from torch.distributed.checkpoint import HuggingFaceStorageReader, HuggingFaceStorageWriter
from torch.distributed.checkpoint.metadata import TensorStorageMetadata
from torch.distributed.tensor import DTensor

_FILE_BYTES = 2**30  # of a file, about: what a process holds a copy of while it writes
_IN_SHARDS = "in the shards"  # in the place of a tensor


def take_shards(state: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The state with a mark for each sharded tensor, and these by their path, "weights/head.bias"."""
    shards: dict[str, Tensor] = {}

    def take(path: str, value: Any) -> Any:
        if not isinstance(value, DTensor):
            return value
        shards[path] = value
        return _IN_SHARDS

    return _replaced(state, take), shards


def write_shards(folder: Path, shards: Mapping[str, Tensor]) -> None:
    """All processes together."""
    writer = HuggingFaceStorageWriter(
        str(folder), fqn_to_index_mapping=_file_numbers(shards), save_distributed=True
    )
    dcp.save(dict(shards), storage_writer=writer)


def read_shards(
    folder: Path, state: dict[str, Any], empty: Callable[[torch.Size, torch.dtype], Tensor]
) -> dict[str, Any]:
    """The state with its tensors. empty: makes one of a (whole) size; a DTensor gets its own part only."""
    reader = HuggingFaceStorageReader(str(folder))
    stored = reader.read_metadata().state_dict_metadata
    tensors: dict[str, Tensor] = {}

    def make(path: str, value: Any) -> Any:
        if not (isinstance(value, str) and value == _IN_SHARDS):
            return value
        found = stored[path]
        assert isinstance(found, TensorStorageMetadata)
        tensors[path] = empty(found.size, found.properties.dtype)
        return tensors[path]

    complete = _replaced(state, make)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        dcp.load(dict(tensors), storage_reader=reader, no_dist=True)
    found_state: dict[str, Any] = complete
    return found_state


def _replaced(value: Any, replace: Callable[[str, Any], Any], path: str = "") -> Any:
    """A copy of nested dicts in which `replace` has seen each value."""
    if isinstance(value, dict):
        return {key: _replaced(item, replace, f"{path}/{key}") for key, item in value.items()}
    return replace(path.removeprefix("/"), value)


def _file_numbers(shards: Mapping[str, Tensor]) -> dict[str, int]:
    """Of the file that each goes into: the same in every process."""
    numbers, size = {}, 0
    for path, tensor in shards.items():
        assert isinstance(tensor, DTensor)
        numbers[path] = 1 + size // _FILE_BYTES
        size += tensor.numel() * tensor.element_size() // tensor.device_mesh.size()
    return numbers
