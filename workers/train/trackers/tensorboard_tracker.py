"""TensorBoard: event files in a folder, read by `tensorboard --logdir FOLDER`."""

from collections.abc import Sequence
from pathlib import Path

from workers.train.trackers.tracker import EndState, Point, RunDescription, Tracker, require_module

_LONGEST_TEXT = 1_000_000  # characters


class TensorBoardTracker(Tracker):
    """It has no files and no states: texts take their place. Weights are never written."""

    def __init__(self, description: RunDescription, into: Path | None) -> None:
        require_module("tensorboard", "tensorboard")
        writer = require_module("torch.utils.tensorboard", "tensorboard").SummaryWriter
        self._writer = writer(str((into or Path("tensorboard")) / description.name))
        self.id = description.name
        if not description.resume_id:
            lines = {**description.tags, **description.text_parameters(500)}
            self._writer.add_text("recipe", "\n".join(f"    {key} = {value}" for key, value in lines.items()))

    def log(self, points: Sequence[Point]) -> None:
        for step, numbers in points:
            for name, value in numbers.items():
                self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def log_file(self, path: Path, name: str) -> None:
        if path.suffix == ".json":
            text = path.read_text(encoding="utf-8")[:_LONGEST_TEXT]
            self._writer.add_text(name, "\n".join(f"    {line}" for line in text.splitlines()))

    def end(self, state: EndState, error: str) -> None:
        self._writer.add_text("state", f"{state}: {error}" if error else state)
        self._writer.close()
