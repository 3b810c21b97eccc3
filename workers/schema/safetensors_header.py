"""The header of a safetensors file: names, types and shapes of its tensors, without torch and without the weights."""

import json
import struct
from pathlib import Path

from workers.errors import RewardError

_MOST_BYTES = 100_000_000  # as the format allows


def tensor_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """By name. Raises RewardError for a file that is none."""
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(min(length, _MOST_BYTES)))
        header.pop("__metadata__", None)
        return {name: tuple(int(size) for size in each["shape"]) for name, each in header.items()}
    except (OSError, struct.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RewardError(f"{path.name} is no safetensors file ({error}); copy it again.") from None
