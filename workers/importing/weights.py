"""Copies tensors from checkpoints to one safetensors file, a part at a time: memory does not grow with the model."""

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from safetensors import safe_open
from torch import Tensor

from workers.importing.checkpoint import TensorHeader

_PART = 2**24  # bytes
_ALIGNED = 8


class NamedTensor(NamedTuple):
    """A tensor of a checkpoint, and the name it is to have."""

    name: str
    tensor: TensorHeader


def copy_tensors(tensors: Sequence[NamedTensor], path: Path) -> None:
    """Write them, bytes unchanged, to a new safetensors file."""
    # Wider types first, as safetensors orders them: every tensor then begins at a multiple of its size.
    ordered = sorted(tensors, key=lambda named: (-_size(named.tensor), named.name))
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, tensor in ordered:
        begin, end = end, end + tensor.end - tensor.begin
        header[name] = {"dtype": tensor.dtype, "shape": [*tensor.shape], "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNED)
    with path.open("wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for _, tensor in ordered:
            with tensor.path.open("rb") as source:
                source.seek(tensor.begin)
                left = tensor.end - tensor.begin
                while left:
                    part = source.read(min(left, _PART))
                    if not part:
                        raise OSError(f"{tensor.path.name} ended while {tensor.name} was read")
                    out.write(part)
                    left -= len(part)


def read_tensor(tensor: TensorHeader) -> Tensor:
    with safe_open(tensor.path, framework="pt") as file:
        found: Tensor = file.get_tensor(tensor.name)
        return found


def _size(tensor: TensorHeader) -> int:
    return (tensor.end - tensor.begin) // max(1, tensor.parameters)
