"""The folder of a selection, with the embedded encoder and with a model."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workers.active_learning.select import select_items
from workers.active_learning.selection_folder import write_features
from workers.errors import RewardError
from workers.schema import Step, Task, Trajectory, write_trajectories
from workers.schema.messages import from_prompt_response

TASKS = 12


def _run(task: int, place: int) -> Trajectory:
    said = ("I checked the booking, and it is moved.", "No.", "Perhaps later, who knows?")[place]
    steps: tuple[Step, ...] = tuple(from_prompt_response(f"Please move booking {task}.", said))
    return Trajectory(steps=steps, task=Task(id=f"task {task}"), id=f"{task}-{place}")


def _write(folder: Path, name: str, lines: list[dict[str, Any]]) -> None:
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def _folder(folder: Path, strategy: str = "information_gain", **config: Any) -> Path:
    folder.mkdir(exist_ok=True)
    runs = [_run(task, place) for task in range(TASKS) for place in range(3)]
    write_trajectories(folder / "new.jsonl.zst", runs)
    pairs = [(f"{task}-0", f"{task}-{other}") for task in range(TASKS) for other in (1, 2)]
    _write(folder, "items", [{"id": place, "sides": pair} for place, pair in enumerate(pairs)])
    _write(folder, "asked", [{"id": 100, "sides": pairs[0]}])
    said = [
        {"task": f"task {task}", "a": f"{task}-0", "b": f"{task}-1", "preferred": 1.0, "weight": 1.0}
        for task in range(TASKS)
    ]
    _write(folder, "comparisons", said)
    (folder / "traffic.json").write_text(json.dumps(["0-0", "1-0"]))
    (folder / "config.json").write_text(json.dumps({"strategy": strategy, "count": 5} | config))
    return folder


def test_from_the_folder_to_the_result(tmp_path: Path) -> None:
    folder = _folder(tmp_path / "first")
    found = select_items(folder)
    assert found["encoded"] == 3 * TASKS and found["items"] == 2 * TASKS and found["comparisons"] == TASKS
    assert found == json.loads((folder / "result.json").read_text())
    chosen = [json.loads(line) for line in (folder / "chosen.jsonl").read_text().splitlines()]
    assert [record["rank"] for record in chosen] == list(range(5))
    assert [record["score"] for record in chosen] == sorted(
        (record["score"] for record in chosen), reverse=True
    )
    # Whether the curt or the careful one is better was said for every task; the vague ones are what is not known.
    assert chosen[0]["id"] % 2 == 1 and chosen[0]["measures"]["information_gain"] == 1
    assert chosen[0]["measures"].keys() == {
        "uncertainty",
        "information_gain",
        "predictive_gain",
        "diversity",
        "representativeness",
    }

    again = _folder(tmp_path / "second")
    (again / "known").symlink_to(folder / "features")
    # What was encoded before is not encoded again, and torch is not even loaded.
    code = "import sys; from pathlib import Path; from workers.active_learning.select import select_items\n"
    code += f"print(select_items(Path({str(again)!r}))['encoded'], 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "False"]
    assert (again / "chosen.jsonl").read_text() == (folder / "chosen.jsonl").read_text()


@pytest.mark.parametrize(("seen", "withheld", "points"), [(0, 0, 4), (70, 70, 3), (None, 120, 0)])
def test_the_curve_is_of_tasks_the_model_was_not_trained_on(
    tmp_path: Path, seen: Any, withheld: int, points: int
) -> None:
    """Features that know the label of every seen task: with them, ten labels look like enough."""
    numbers = np.random.default_rng(0)
    folder = _folder(tmp_path / "seen")
    write_trajectories(folder / "new.jsonl.zst", [])
    preferred = numbers.integers(0, 2, 120).astype(float)
    known = {}
    for task in range(120):
        known[f"{task}-0"], known[f"{task}-1"] = numbers.normal(size=(2, 4))
        if seen is None or (seen and task < seen):
            known[f"{task}-0"][0], known[f"{task}-1"][0] = 5 * preferred[task], 5 * (1 - preferred[task])
    write_features(folder / "known", known)
    said = [
        {
            "task": f"task {task}",
            "a": f"{task}-0",
            "b": f"{task}-1",
            "preferred": preferred[task],
            "weight": 1.0,
        }
        for task in range(120)
    ]
    _write(folder, "comparisons", said)
    tasks = None if seen is None else [f"task {task}" for task in range(seen or 0)]
    (folder / "seen.json").write_text(json.dumps(tasks))
    found = select_items(folder)
    assert (found["withheld"], found["seen_unknown"]) == (withheld, seen is None)
    curve = found["curve"]
    assert len(curve["points"] if curve else []) == points
    if curve:
        assert all(point["accuracy"] < 0.75 for point in curve["points"])  # nothing but noise to learn from


def test_what_nobody_means_any_more_is_forgotten(tmp_path: Path) -> None:
    folder = _folder(tmp_path / "first")
    select_items(folder)
    again = _folder(tmp_path / "second")
    (again / "known").symlink_to(folder / "features")
    write_trajectories(again / "new.jsonl.zst", [])
    for name in ("asked", "comparisons"):
        _write(again, name, [])
    _write(again, "items", [{"id": 1, "sides": ["0-0", "0-2"]}])
    select_items(again)
    assert set(json.loads((again / "features" / "keys.json").read_text())) == {"0-0", "0-2", "1-0"}


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    _write(folder, "items", [{"id": 1, "sides": ["0-0", "gone"]}, {"id": 2, "sides": ["0-0", "0-2"]}])
    assert select_items(folder)["items"] == 1


def test_a_folder_without_its_configuration(tmp_path: Path) -> None:
    with pytest.raises(RewardError, match=r"no config\.json"):
        select_items(tmp_path)


def test_an_unknown_strategy_is_refused(tmp_path: Path) -> None:
    folder = _folder(tmp_path, strategy="tarot")
    done = subprocess.run(
        [sys.executable, "-m", "workers.active_learning", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and "tarot" in done.stderr and "Traceback" not in done.stderr
