"""Stands in for `python -m workers.train RUN_DIR` where a test needs a child that fails in a certain way.

config.json's recipe says what to do: {"label_smoothing": N} picks a behaviour, so that the recipe stays a valid one.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

COMPLETE, REFUSE, CRASH, WAIT, DIE, STOP = 0.0, 0.1, 0.2, 0.3, 0.4, 0.45
REPORT = {
    "preference": {
        "accuracy": 0.9,
        "interval": [0.8, 0.95],
        "n": 40,
        "baselines": {"longer": {"accuracy": 0.6, "difference": 0.3, "interval": [0.2, 0.4]}},
        "loss": 0.3,
    }
}


def log(folder: Path, **event: object) -> None:
    with (folder / "events.jsonl").open("a", encoding="utf-8") as out:
        out.write(json.dumps(event) + "\n")


def cancelled(signum: int, frame: FrameType | None) -> None:
    (Path(sys.argv[1]) / "checkpoints").mkdir(exist_ok=True)
    (Path(sys.argv[1]) / "checkpoints" / "last").write_text("here", encoding="utf-8")
    sys.exit(3)


def main(folder: Path) -> None:
    signal.signal(signal.SIGTERM, cancelled)
    behaviour = json.loads((folder / "config.json").read_text(encoding="utf-8"))["recipe"]["label_smoothing"]
    (folder / "environment.json").write_text(json.dumps(dict(os.environ)), encoding="utf-8")
    (folder / "pid.part").write_text(str(os.getpid()), encoding="utf-8")
    (folder / "pid.part").rename(folder / "pid")  # whole, for whoever waits for it
    resumed = (folder / "checkpoints").exists()
    for step in range(1, 4):
        log(
            folder,
            step=step,
            loss=1 / step,
            progress={"done": step, "total": 3},
            pairs_per_second=20.0,
            validation={"accuracy": 0.5 + step / 10, "loss": 0.7 - step / 10},
        )
    print("three steps done")  # noqa: T201
    if behaviour == REFUSE:
        error = {"message": "The training split has one pair; freeze more.", "pointer": "/dataset"}
        (folder / "error.json").write_text(json.dumps(error), encoding="utf-8")
        sys.exit(2)
    if behaviour == CRASH:
        raise ZeroDivisionError("a bug")
    if behaviour == DIE:
        os.kill(os.getpid(), signal.SIGKILL)
    if behaviour == STOP:
        os.kill(os.getpid(), signal.SIGTERM)
    while behaviour == WAIT and not resumed:
        time.sleep(0.05)
    (folder / "model").mkdir(exist_ok=True)
    (folder / "model" / "touchstone.json").write_text(
        json.dumps({"schema_version": 1, "objective": "bradley_terry", "backbone": {"kind": "step-encoder"}}),
        encoding="utf-8",
    )
    (folder / "model" / "model.safetensors").write_bytes(b"weights")
    (folder / "report.json").write_text(json.dumps(REPORT), encoding="utf-8")
    (folder / "manifest.json").write_text("{}", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
