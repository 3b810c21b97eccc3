"""What every tracker is told of a run, and what it must be able to do."""

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from workers.errors import RewardError
from workers.schema.trackers import TRACKER_PACKAGES

EndState = Literal["succeeded", "failed", "cancelled", "interrupted"]
Point = tuple[int, dict[str, float]]  # a training step, and what was measured at it by name
_LOGGED = ("loss", "learning_rate", "pairs_per_second")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDescription:
    """A run before its first step.

    project: MLflow's experiment, W&B's and Trackio's project; empty: what the environment names, else default_project.
    parameters: the recipe and what it was applied to. resume_id: of the tracker's run that an earlier attempt began.
    """

    name: str
    project: str = ""
    default_project: str = "touchstone"
    parameters: dict[str, Any] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    resume_id: str = ""

    def text_parameters(self, longest: int) -> dict[str, str]:
        """As text: of tables and lists their JSON."""
        return {
            key: (json.dumps(value) if isinstance(value, dict | list) else str(value))[:longest]
            for key, value in self.parameters.items()
        }


class Tracker(ABC):
    """Its methods raise whatever the library raises. id: with which the run is continued. url: of the run's page."""

    id: str = ""
    url: str = ""

    @abstractmethod
    def __init__(self, description: RunDescription, into: Path | None) -> None:
        """into: a local folder to write to, in place of what the environment names."""

    @abstractmethod
    def log(self, points: Sequence[Point]) -> None: ...

    @abstractmethod
    def log_file(self, path: Path, name: str) -> None:
        """name: with folders, "model/touchstone.json"."""

    @abstractmethod
    def end(self, state: EndState, error: str) -> None:
        """Everything is sent when this returns. error: in words, where the run failed."""


def event_point(event: dict[str, Any]) -> Point | None:
    """What a line of events.jsonl measured; None where it has no number to plot."""
    numbers: dict[str, Any] = {name: event[name] for name in _LOGGED if name in event}
    numbers |= {f"validation/{name}": value for name, value in (event.get("validation") or {}).items()}
    known = numeric_values(numbers)
    return (int(event["step"]), known) if known and event.get("step") is not None else None


def numeric_values(numbers: dict[str, Any]) -> dict[str, float]:
    """Those that are numbers, by names that every tracker takes."""
    return {
        name.replace(" ", "_"): float(value)
        for name, value in numbers.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def require_module(module: str, tracker: str) -> Any:
    """The module. Raises RewardError where it is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        package = TRACKER_PACKAGES[tracker]
        raise RewardError(
            f"{package.package} is not installed for {sys.executable}. Run: {package.how_to_install}"
        ) from error
