"""Public preference data as records, read from the raw files of TOUCHSTONE_DATA."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workers.errors import RewardError
from workers.schema import Part, PreferenceRecord, Step, Task, Trajectory, from_messages
from workers.schema.records import Source

_FIRST_OF = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))  # the order of FineGrained's six comparisons


def data_folder() -> Path:
    folder = Path(os.environ.get("TOUCHSTONE_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not folder.is_dir():
        raise RewardError(
            f"there is no data in {folder}; set TOUCHSTONE_DATA to the folder of the data sets."
        )
    return folder


def hh(folder: Path) -> Iterator[PreferenceRecord]:
    """HH harmless: every pair is a task of its own. The chosen one is first in every other pair, so that a model
    that looks at the order gains nothing."""
    path = folder / "hh_rlhf" / "harmless-base-first-1800.jsonl"
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        pair, task = json.loads(line), Task(id=f"hh-{number}")
        chosen, rejected = (
            Trajectory(steps=_dialogue(pair[key]), task=task) for key in ("chosen", "rejected")
        )
        yield _preference(chosen, rejected, swap=number % 2 == 1)


def fine_grained(folder: Path) -> Iterator[PreferenceRecord]:
    """FineGrained QA feedback: four answers to a question, with the passages they are to be drawn from."""
    path = folder / "fine_grained_rlhf" / "qa_feedback_first_350.json"
    for number, row in enumerate(json.loads(path.read_text(encoding="utf-8"))):
        task = Task(id=f"fine-grained-{number}")
        passages = "\n".join(text for _, *rest in row["passages"] for text in rest)
        given = tuple(_said("user", text) for text in (passages, row["question"]))
        answers = [
            Trajectory(steps=(*given, _said("agent", row[f"prediction {place}"])), task=task)
            for place in (1, 2, 3, 4)
        ]
        for (first, second), choice in zip(_FIRST_OF, row["preference"], strict=True):
            yield PreferenceRecord(
                annotator="fine-grained",
                origin="imported",
                a=answers[first],
                b=answers[second],
                choice=("tie", "a", "b")[choice],  # type: ignore[arg-type]
            )


def tau_bench(folder: Path) -> Iterator[PreferenceRecord]:
    """tau-bench airline: a run that succeeded is preferred to one of the same task that failed."""
    path = folder / "tau_bench" / "gpt-4o-airline-tasks-0-34.json"
    by_task: dict[int, list[tuple[bool, Trajectory]]] = {}
    for row in json.loads(path.read_text(encoding="utf-8")):
        task = Task(id=f"tau-{row['task_id']}")
        run = Trajectory(steps=from_messages(row["traj"]), task=task)
        by_task.setdefault(row["task_id"], []).append((row["reward"] == 1, run))
    count = 0
    for runs in by_task.values():
        for good in (run for success, run in runs if success):
            for bad in (run for success, run in runs if not success):
                count += 1
                yield _preference(good, bad, swap=count % 2 == 1)


DATA = {"hh": hh, "fine_grained": fine_grained, "tau_bench": tau_bench}


def _preference(chosen: Trajectory, rejected: Trajectory, *, swap: bool) -> PreferenceRecord:
    a, b = (rejected, chosen) if swap else (chosen, rejected)
    kind: Any = "b" if swap else "a"
    return PreferenceRecord(annotator="imported", origin="imported", a=a, b=b, choice=kind)


def _said(source: Source, text: str) -> Step:
    return Step(source=source, message=(Part(text=text),))


def _dialogue(text: str) -> tuple[Step, ...]:
    """`\\n\\nHuman:` and `\\n\\nAssistant:` open turns; everything else belongs to the turn before it."""
    turns: list[tuple[Source, str]] = []
    for piece in text.split("\n\n"):
        if piece.startswith("Human:"):
            turns.append(("user", piece.removeprefix("Human:").strip()))
        elif piece.startswith("Assistant:"):
            turns.append(("agent", piece.removeprefix("Assistant:").strip()))
        elif turns:
            turns[-1] = (turns[-1][0], f"{turns[-1][1]}\n\n{piece}")
    return tuple(_said(source, said) for source, said in turns)
