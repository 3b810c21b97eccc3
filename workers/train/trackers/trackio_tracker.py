"""Trackio: local (TRACKIO_DIR), a server (TRACKIO_SERVER_URL) or a Hugging Face Space (TRACKIO_SPACE_ID, HF_TOKEN)."""

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from workers.errors import RewardError
from workers.train.trackers.tracker import EndState, Point, RunDescription, Tracker, require_module


class TrackioTracker(Tracker):
    """Trackio warns where other trackers raise: its warnings are raised at the next call."""

    def __init__(self, description: RunDescription, into: Path | None) -> None:
        if into is not None:
            os.environ["TRACKIO_DIR"] = str(into.resolve())
        self._warnings: list[str] = []
        trackio = require_module("trackio", "trackio")
        warnings.simplefilter("always")
        warnings.showwarning = self._warned
        self._run = trackio.init(
            project=description.project or os.environ.get("TRACKIO_PROJECT") or description.default_project,
            name=description.resume_id or description.name,
            resume="allow" if description.resume_id else "never",
            config={**description.parameters, **description.tags},
            embed=False,
            auto_log_gpu=False,
            auto_log_cpu=False,
        )
        self.id = str(self._run.name)
        space = os.environ.get("TRACKIO_SPACE_ID", "")
        server = os.environ.get("TRACKIO_SERVER_URL", "").partition("?")[0]  # the query may hold its token
        hub = require_module("huggingface_hub.constants", "trackio").ENDPOINT
        self.url = f"{hub}/spaces/{space}" if "/" in space else "" if space else server
        self._raise_warnings()

    def log(self, points: Sequence[Point]) -> None:
        for step, numbers in points:
            self._run.log(numbers, step=step)
        self._raise_warnings()

    def log_file(self, path: Path, name: str) -> None:
        label = f"{self._run.name}-{name}".replace("/", "-").removesuffix(".json")
        self._run.log_artifact(str(path), name=label, type=name.partition("/")[0].partition(".")[0])
        self._raise_warnings()

    def end(self, state: EndState, error: str) -> None:
        self._run.log({"touchstone/state": state, "touchstone/error": error})
        self._run.finish()
        self._raise_warnings()

    def _warned(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if "trackio" in filename or "trackio" in str(message).lower():
            self._warnings.append(str(message).strip())

    def _raise_warnings(self) -> None:
        if self._warnings:
            found, self._warnings = self._warnings, []
            raise RewardError(found[0])
