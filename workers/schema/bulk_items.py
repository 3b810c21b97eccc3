"""What a worker and the process of its bulk job tell each other over two pipes. Importable without torch.

A message is four bytes of length, then so many bytes.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO, Literal

import msgspec

MOST_BYTES = 2**31 - 1


class BulkConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """folder: of an artifact, or of an induction (workers.induce.induction_files) whose metrics people decided on;
    none of the work `index`. with_steps: whether rewards of agent steps are kept too."""

    work: Literal["score", "embed", "induce", "index"]
    folder: str = ""
    device: str = "auto"
    precision: str = "float32"
    with_steps: bool = False


class EmbeddedPassage(msgspec.Struct, array_like=True):
    """Steps first to last, as `step` indices, and their embedding of unit length."""

    first: int
    last: int
    embedding: list[float]


class BulkItem(msgspec.Struct, kw_only=True, array_like=True):
    """What is kept of a trajectory, by its key. problem: why there is nothing else.

    reward: the model's own. std: over its ensemble. tokens: rendered. steps: rewards of agent steps, where asked for.
    embedding: the state that the reward is read at. verdicts: {metric, sign, value, step} of each metric.
    passages: of the work `index`.
    """

    trajectory: int
    reward: float | None = None
    std: float | None = None
    tokens: int = 0
    truncated: bool = False
    steps: list[float] | None = None
    embedding: list[float] | None = None
    problem: str = ""
    verdicts: list[dict[str, Any]] | None = None
    passages: list[EmbeddedPassage] | None = None


def write_message(out: BinaryIO, content: bytes) -> None:
    """Raises BrokenPipeError where the reader has ended."""
    if len(content) > MOST_BYTES:
        raise ValueError(f"a message of {len(content)} bytes; the limit is {MOST_BYTES}.")
    out.write(len(content).to_bytes(4, "big"))
    out.write(content)
    out.flush()


def read_messages(source: BinaryIO) -> Iterator[bytes]:
    """Until the writer closes its end; a message that it has not finished then is left out."""
    while len(head := source.read(4)) == 4:
        size = int.from_bytes(head, "big")
        content = source.read(size)
        if len(content) < size:
            return
        yield content
