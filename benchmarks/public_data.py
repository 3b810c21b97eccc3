"""Public data as feedback records, read from the raw files of TOUCHSTONE_DATA."""

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workers.errors import RewardError
from workers.schema import (
    OutcomeRecord,
    Part,
    PreferenceRecord,
    ScoreRecord,
    Step,
    StepLabelRecord,
    Task,
    Trajectory,
    from_messages,
)
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


def pandalm(folder: Path) -> Iterator[PreferenceRecord]:
    """PandaLM's test set: what most of three annotators said. A task is an instruction with its input."""
    for row in json.loads((folder / "pandalm" / "testset-v1.json").read_text(encoding="utf-8")):
        said = Counter(str(row[f"annotator{number}"]) for number in (1, 2, 3))
        choice, votes = said.most_common(1)[0]
        given = "\n\n".join(text for text in (row["instruction"], row["input"]) if text)
        task = Task(id=f"pandalm-{given}")
        a, b = (
            Trajectory(steps=(_said("user", given), _said("agent", str(row[key]))), task=task)
            for key in ("response1", "response2")
        )
        kind: Any = {"0": "tie", "1": "a", "2": "b"}[choice] if votes > 1 else "tie"
        yield PreferenceRecord(
            annotator="majority", origin="imported", a=a, b=b, choice=kind, item=f"pandalm-{row['idx']}"
        )


def tau_bench(folder: Path) -> Iterator[PreferenceRecord]:
    """tau-bench airline: a run that succeeded is preferred to one of the same task that failed."""
    by_task: dict[str, list[OutcomeRecord]] = {}
    for outcome in tau_bench_outcomes(folder):
        by_task.setdefault(outcome.trajectory.task.id, []).append(outcome)
    count = 0
    for runs in by_task.values():
        for good in (run.trajectory for run in runs if run.success):
            for bad in (run.trajectory for run in runs if not run.success):
                count += 1
                yield _preference(good, bad, swap=count % 2 == 1)


def tau_bench_outcomes(folder: Path) -> Iterator[OutcomeRecord]:
    """tau-bench airline: 35 tasks, four runs of each, judged by the end state of a database."""
    path = folder / "tau_bench" / "gpt-4o-airline-tasks-0-34.json"
    for row in json.loads(path.read_text(encoding="utf-8")):
        run = Trajectory(steps=from_messages(row["traj"]), task=Task(id=f"tau-{row['task_id']}"))
        yield OutcomeRecord(trajectory=run, success=row["reward"] == 1)


def mint_hotpotqa(folder: Path) -> Iterator[OutcomeRecord]:
    """MINT's HotpotQA: four models on 43 questions. A run ends when its answer is right or its chances are over."""
    for path in sorted((folder / "mint" / "hotpotqa").glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            task = Task(id=f"hotpotqa-{row['task']['task_id']}")
            run = Trajectory(steps=from_messages(row["state"]["history"]), task=task)
            yield OutcomeRecord(trajectory=run, success=row["state"]["success"])


def word_sorting(folder: Path) -> Iterator[StepLabelRecord]:
    """BIG-Bench Mistake: where people saw the first mistake of a chain of thought."""
    return _big_bench_mistake(folder, "word_sorting")


def multistep_arithmetic(folder: Path) -> Iterator[StepLabelRecord]:
    return _big_bench_mistake(folder, "multistep_arithmetic")


def _big_bench_mistake(folder: Path, name: str) -> Iterator[StepLabelRecord]:
    path = folder / "big_bench_mistake" / f"{name}.jsonl"
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        row = json.loads(line)
        steps = (_said("user", row["input"]), *(_said("agent", text) for text in row["steps"]))
        run = Trajectory(steps=steps, task=Task(id=f"{name}-{number}"))
        yield _first_error(run, row["mistake_index"])


def agentrx(folder: Path) -> Iterator[StepLabelRecord]:
    """AgentRx on tau-bench retail: the first failure that a person marked, of the runs with any."""
    here = folder / "agentrx_tau"
    runs = {row["task_id"]: row for row in json.loads((here / "tau_dataset_full.json").read_text("utf-8"))}
    for row in json.loads((here / "tau_ground_truth.json").read_text("utf-8")):
        if row["trajectory_id"] not in runs:
            continue
        messages = runs[row["trajectory_id"]]["traj"]
        first = min(failure["step_number"] for failure in row["failures"])
        agents = [message["index"] for message in messages if message["role"] == "assistant"]
        if first not in agents:
            continue
        plain = [{key: value for key, value in message.items() if key != "index"} for message in messages]
        task = Task(id=f"agentrx-{row['trajectory_id']}")
        yield _first_error(Trajectory(steps=from_messages(plain), task=task), agents.index(first))


def who_and_when(folder: Path) -> Iterator[StepLabelRecord]:
    """Who & When, generated teams: the step that people say a failure comes from. The terminal is no agent."""
    for path in sorted((folder / "who_and_when" / "algorithm_generated").glob("*.json")):
        row = json.loads(path.read_text(encoding="utf-8"))
        sources: list[Source] = [
            "environment" if message.get("name") == "Computer_terminal" else "agent"
            for message in row["history"]
        ]
        wrong = int(row["mistake_step"])
        if sources[wrong] != "agent":
            continue
        said = zip(sources, row["history"], strict=True)
        steps = (
            _said("user", row["question"]),
            *(_said(source, f"{one.get('name', '')}: {one['content']}") for source, one in said),
        )
        task = Task(id=f"who-and-when-{row['question_ID']}")
        yield _first_error(Trajectory(steps=steps, task=task), sources[:wrong].count("agent"))


def failures(folder: Path) -> Iterator[StepLabelRecord]:
    """AgentRx and Who & When: failed runs only."""
    yield from agentrx(folder)
    yield from who_and_when(folder)


_SCALES = {
    "understandability": (0.0, 1.0),
    "naturalness": (1.0, 3.0),
    "coherence": (1.0, 3.0),
    "engagingness": (1.0, 3.0),
    "groundedness": (0.0, 1.0),
    "overall": (1.0, 5.0),
}
TOPICAL_CRITERIA = tuple(_SCALES)


def topical_chat(folder: Path) -> Iterator[ScoreRecord]:
    """Topical-Chat: six answers to each of 60 dialogues, the mean of three annotators by six criteria."""
    rows = json.loads((folder / "topical_chat_rubric" / "topical_chat.json").read_text(encoding="utf-8"))
    for row in rows:
        task = Task(id=f"topical-{row['source']}")
        said = (_said("user", row["context"]), _said("user", row["source"].strip()))
        run = Trajectory(steps=(*said, _said("agent", row["system_output"].strip())), task=task)
        for criterion, value in row["scores"].items():
            yield ScoreRecord(
                annotator="mean",
                origin="imported",
                trajectory=run,
                criterion=criterion,
                value=min(max(value, _SCALES[criterion][0]), _SCALES[criterion][1]),
                scale=_SCALES[criterion],
            )


PAIRS = {"hh": hh, "fine_grained": fine_grained, "tau_bench": tau_bench}
DATA = PAIRS | {
    "pandalm": pandalm,
    "tau_bench_outcomes": tau_bench_outcomes,
    "mint_hotpotqa": mint_hotpotqa,
    "word_sorting": word_sorting,
    "multistep_arithmetic": multistep_arithmetic,
    "failures": failures,
    "topical_chat": topical_chat,
}


def _first_error(run: Trajectory, place: int | None) -> StepLabelRecord:
    return StepLabelRecord(
        annotator="imported", origin="imported", trajectory=run, has_first_error=True, first_error=place
    )


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
