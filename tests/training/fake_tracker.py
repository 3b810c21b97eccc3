"""Stands in for `python -m workers.train.trackers RUN_DIR --to NAME --follow`: says what the run's experiment asks for.

The project at the tracker picks a behaviour: "fine", "broken", "silent" or "crash".
"""

import json
import os
import sys
import time
from pathlib import Path


def main(run: Path, name: str) -> None:
    folder = run / "tracking"
    description = json.loads((folder / "description.json").read_text())
    (folder / "seen.json").write_text(json.dumps({"environment": dict(os.environ), "arguments": sys.argv}))
    state = {"id": "first", "url": f"https://tracker.example/{name}", "problem": ""}
    if (folder / f"{name}.json").is_file():
        state["id"] = json.loads((folder / f"{name}.json").read_text())["id"] + ", continued"
    behaviour = description["project"]
    if behaviour == "broken":
        state["problem"] = "ConnectionError: connection\0 refused."
    write(folder / f"{name}.json", state)
    if behaviour == "crash":
        raise ZeroDivisionError
    while behaviour == "silent" or not (folder / "end.json").is_file():
        time.sleep(0.02)
    state["problem"] = state["problem"] or json.loads((folder / "end.json").read_text())["error"]
    write(folder / "ended-as.json", json.loads((folder / "end.json").read_text()))
    write(folder / f"{name}.json", state)


def write(path: Path, value: object) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps(value))
    part.replace(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[3])
