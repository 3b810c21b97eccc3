"""Weights & Biases, as WANDB_API_KEY, WANDB_BASE_URL, WANDB_ENTITY, WANDB_PROJECT and WANDB_MODE say."""

import os
from collections.abc import Sequence
from pathlib import Path

from workers.train.trackers.tracker import EndState, Point, RunDescription, Tracker, require_module

_EXIT_CODES: dict[EndState, int] = {"succeeded": 0, "failed": 1, "cancelled": 255, "interrupted": 1}
_INIT_SECONDS = 60.0


class WandbTracker(Tracker):
    def __init__(self, description: RunDescription, into: Path | None) -> None:
        self._wandb = require_module("wandb", "wandb")
        settings = self._wandb.Settings(
            console="off",
            disable_git=True,
            save_code=False,
            silent=True,
            init_timeout=_INIT_SECONDS,
            x_disable_stats=True,
        )
        self._run = self._wandb.init(
            project=description.project or os.environ.get("WANDB_PROJECT") or description.default_project,
            name=description.name,
            id=description.resume_id or None,
            resume="allow" if description.resume_id else None,
            config={**description.parameters, **description.tags},
            dir=None if into is None else str(into),
            settings=settings,
        )
        self.id, self.url = str(self._run.id), str(self._run.url or "")

    def log(self, points: Sequence[Point]) -> None:
        for step, numbers in points:
            self._run.log(numbers, step=step)

    def log_file(self, path: Path, name: str) -> None:
        label = f"{self._run.id}-{name}".replace("/", "-")
        artifact = self._wandb.Artifact(label, type=name.partition("/")[0].partition(".")[0])
        artifact.add_file(str(path), name=name)
        self._run.log_artifact(artifact)

    def end(self, state: EndState, error: str) -> None:
        self._run.summary.update({"touchstone/state": state, "touchstone/error": error})
        if state == "interrupted":
            self._run.mark_preempting()
        self._run.finish(exit_code=_EXIT_CODES[state])
