"""When a training has to stop from outside, and where it writes checkpoints."""

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import torch

from workers.json_files import write_json
from workers.train.events import Report

LOG_SECONDS = 1.0


class TrainingStopped(Exception):
    """The training was asked to stop; it has written a checkpoint."""


class MemoryHalved(Exception):
    """Memory ran out in one of the processes of a sharded model. All have to start again, with the micro batches it
    wrote down."""


def is_out_of_memory(error: RuntimeError | MemoryError) -> bool:
    """Of a GPU, or of a CPU, where torch's allocator says so by its words only."""
    has_type = isinstance(error, torch.OutOfMemoryError | MemoryError)
    return has_type or "can't allocate memory" in str(error)


@dataclass
class TrainingBudget:
    """seconds: what all trainings of a run together have left; None: no limit."""

    seconds: float | None

    def share(self, share: float) -> float | None:
        return None if self.seconds is None else self.seconds * share

    def spend(self, seconds: float) -> None:
        if self.seconds is not None:
            self.seconds = max(0.0, self.seconds - seconds)


@dataclass(frozen=True)
class TrainingLimits:
    """stop: polled after every step. seconds: of training, over all attempts. checkpoints: None writes none."""

    stop: Callable[[], bool] = lambda: False
    seconds: float | None = None
    checkpoints: Path | None = None

    def micro_tokens(self, most: int) -> int:
        """At most `most`, and what a process wrote down when memory ran out."""
        path = self._micro_tokens_path
        return most if path is None or not path.is_file() else min(most, json.loads(path.read_bytes()))

    def write_micro_tokens(self, tokens: int) -> None:
        if self._micro_tokens_path is not None:
            self._micro_tokens_path.parent.mkdir(parents=True, exist_ok=True)
            write_json(self._micro_tokens_path, tokens)

    @property
    def _micro_tokens_path(self) -> Path | None:
        return None if self.checkpoints is None else self.checkpoints / "micro-tokens.json"

    def run_encoding(self, progress: Iterable[int], report: Report) -> None:
        """Run `encode_ahead`, which yields the number of chunks done. Raises TrainingStopped."""
        logged = time.monotonic()
        for done in progress:
            if self.stop():
                raise TrainingStopped
            if time.monotonic() - logged >= LOG_SECONDS:
                report(message=f"encoded {done} chunks")
                logged = time.monotonic()
