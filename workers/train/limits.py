"""When a training has to stop from outside, and where it writes checkpoints."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from workers.train.events import Report

LOG_SECONDS = 1.0


class TrainingStopped(Exception):
    """The training was asked to stop; it has written a checkpoint."""


@dataclass(frozen=True)
class TrainingLimits:
    """stop: polled after every step. seconds: of training, over all attempts. checkpoints: None writes none."""

    stop: Callable[[], bool] = lambda: False
    seconds: float | None = None
    checkpoints: Path | None = None

    def run_encoding(self, progress: Iterable[int], report: Report) -> None:
        """Run `encode_ahead`, which yields the number of chunks done. Raises TrainingStopped."""
        logged = time.monotonic()
        for done in progress:
            if self.stop():
                raise TrainingStopped
            if time.monotonic() - logged >= LOG_SECONDS:
                report(message=f"encoded {done} chunks")
                logged = time.monotonic()
