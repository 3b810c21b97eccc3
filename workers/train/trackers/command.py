"""Every tracker by its name, and the command that sends a run directory to one."""

import argparse
import sys
from pathlib import Path

from workers.errors import RewardError
from workers.schema.trackers import TRACKER_PACKAGES
from workers.train.trackers.mlflow_tracker import MLflowTracker
from workers.train.trackers.session import TrackingSession
from workers.train.trackers.tensorboard_tracker import TensorBoardTracker
from workers.train.trackers.tracker import Tracker
from workers.train.trackers.trackio_tracker import TrackioTracker
from workers.train.trackers.wandb_tracker import WandbTracker

TRACKERS: dict[str, type[Tracker]] = {
    "mlflow": MLflowTracker,
    "wandb": WandbTracker,
    "tensorboard": TensorBoardTracker,
    "trackio": TrackioTracker,
}
_DESCRIPTION = """A run's events, in an experiment tracker. It reads the run directory and nothing else, so that a run
that goes on elsewhere, or ended long ago, is shown as well. Where a tracker sends it is set as the tracker names it
(MLFLOW_TRACKING_URI, WANDB_PROJECT)."""


def track(run: Path, *, to: str, into: Path | None = None, follow: bool = False) -> int:
    """How many steps it has sent. Raises RewardError where there is no run, or the tracker does not take it."""
    session = TrackingSession(run, to, TRACKERS[to], into)
    return session.follow() if follow else session.send()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m workers.train.trackers", description=_DESCRIPTION)
    parser.add_argument("run", type=Path, help="a run directory")
    parser.add_argument("--to", required=True, choices=TRACKER_PACKAGES)
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
