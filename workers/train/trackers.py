"""`python -m workers.train.trackers RUN_DIR --to TRACKER`: a run's events, in an experiment tracker.

Reads events.jsonl and nothing else, so a run that goes on elsewhere, or ended long ago, is shown as well. Needs the
extra `trackers`. Where W&B and MLflow send it is set as they say it (WANDB_PROJECT, WANDB_MODE, MLFLOW_TRACKING_URI).
"""

import argparse
import json
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from workers.errors import RewardError

_EVERY = 1.0  # seconds between looks at a run that goes on
_DRAWN = ("loss", "learning_rate", "pairs_per_second")
_ENDED = ("manifest.json", "error.json")


def points(event: dict[str, Any]) -> tuple[int, dict[str, float]] | None:
    """The step, and what was measured at it by name; None for an event that has no number to draw."""
    numbers: dict[str, Any] = {name: event[name] for name in _DRAWN if name in event}
    numbers |= {f"validation/{name}": value for name, value in (event.get("validation") or {}).items()}
    known = {
        name.replace(" ", "_"): float(value)
        for name, value in numbers.items()
        if isinstance(value, int | float)
    }
    return (int(event["step"]), known) if known and event.get("step") is not None else None


def events(path: Path, *, follow: bool) -> Iterator[dict[str, Any]]:
    """Whole lines only: the last one may still be written. follow: until the run has ended."""
    place = 0
    while True:
        is_last = not follow or any((path.parent / name).exists() for name in _ENDED)
        if path.is_file():
            with path.open("rb") as source:
                source.seek(place)
                for line in source:
                    if not line.endswith(b"\n"):
                        break
                    place += len(line)
                    yield json.loads(line)
        if is_last:
            return
        time.sleep(_EVERY)


class Tracker(ABC):
    """recipe: every key of the run's, with its value."""

    @abstractmethod
    def __init__(self, name: str, into: Path | None, recipe: dict[str, Any]) -> None: ...

    @abstractmethod
    def log(self, step: int, numbers: dict[str, float]) -> None: ...

    @abstractmethod
    def close(self) -> None: ...


class TensorBoard(Tracker):
    def __init__(self, name: str, into: Path | None, recipe: dict[str, Any]) -> None:
        writer = _needed("torch.utils.tensorboard", "tensorboard").SummaryWriter
        self._writer = writer(str((into or Path("tensorboard")) / name))
        self._writer.add_text("recipe", "\n".join(f"    {key} = {value}" for key, value in recipe.items()))

    def log(self, step: int, numbers: dict[str, float]) -> None:
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        self._writer.close()


class WeightsAndBiases(Tracker):
    def __init__(self, name: str, into: Path | None, recipe: dict[str, Any]) -> None:
        wandb = _needed("wandb", "wandb")
        self._run = wandb.init(name=name, config=recipe, dir=None if into is None else str(into))

    def log(self, step: int, numbers: dict[str, float]) -> None:
        self._run.log(numbers, step=step)

    def close(self) -> None:
        self._run.finish()


class MLflow(Tracker):
    def __init__(self, name: str, into: Path | None, recipe: dict[str, Any]) -> None:
        self._mlflow = _needed("mlflow", "mlflow-skinny")
        if into is not None:
            self._mlflow.set_tracking_uri(into.resolve().as_uri())
        self._mlflow.start_run(run_name=name)
        self._mlflow.log_params({key: str(value)[:500] for key, value in recipe.items()})

    def log(self, step: int, numbers: dict[str, float]) -> None:
        self._mlflow.log_metrics(numbers, step=step)

    def close(self) -> None:
        self._mlflow.end_run()


TRACKERS: dict[str, type[Tracker]] = {
    "tensorboard": TensorBoard,
    "wandb": WeightsAndBiases,
    "mlflow": MLflow,
}


def _needed(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise RewardError(
            f"{package} is not installed for {sys.executable}. Run: pip install -c constraints.txt {package}"
        ) from error


def track(run: Path, *, to: str, into: Path | None = None, follow: bool = False) -> int:
    """Returns how many steps it has sent. Raises RewardError where there is no run, or no such tracker here."""
    if not (run / "config.json").is_file():
        raise RewardError(f"{run} is no run directory: it has no config.json.")
    config = json.loads((run / "config.json").read_text(encoding="utf-8"))
    tracker = TRACKERS[to](run.resolve().name, into, config["recipe"])
    sent = 0
    try:
        for event in events(run / "events.jsonl", follow=follow):
            if (found := points(event)) is not None:
                tracker.log(*found)
                sent += 1
    finally:
        tracker.close()
    return sent


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m workers.train.trackers", description=__doc__)
    parser.add_argument("run", type=Path, help="a run directory")
    parser.add_argument("--to", required=True, choices=TRACKERS)
    parser.add_argument("--into", type=Path, help="a folder; without it what the tracker's own settings say")
    parser.add_argument("--follow", action="store_true", help="go on until the run has ended")
    arguments = parser.parse_args()
    try:
        sent = track(arguments.run, to=arguments.to, into=arguments.into, follow=arguments.follow)
    except RewardError as error:
        sys.stderr.write(f"{error.message}\n")
        return 2
    sys.stdout.write(f"{sent} steps sent\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
