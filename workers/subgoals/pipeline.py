"""Subgoals of tasks in a folder.

config.json             `SubgoalConfig`
tasks.jsonl             {"task": key, "instruction", "trajectories": [id, ...]}, the latter of runs that succeeded
trajectories.jsonl.zst  those
answers.jsonl           cached answers of the language model (workers.llm.client)
found.jsonl             {"task", "subgoals": [...]} or {"task", "problem"}, in the order they end
result.json             {"usage", "prompts"}

Subgoals proposed by a language model: after Words as Beacons: Guiding RL Agents with High-Level Language Prompts.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from workers.json_files import write_json
from workers.llm import LLMServer
from workers.llm.client import AnswersFile, LLMClient, NoAnswer
from workers.prompts.templates import prompt, quoted
from workers.prompts.trajectory_text import shown
from workers.schema import Trajectory, read_trajectories
from workers.subgoals.subgoal_lists import MOST_RUNS, Subgoal, require_subgoals

_RUN_CHARACTERS = 8000


class SubgoalConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    server: LLMServer


class TaskToSplit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    task: int
    instruction: str
    trajectories: list[str] = []


class ProposedSubgoals(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    subgoals: list[Subgoal]


def propose_subgoals(folder: Path) -> dict[str, Any]:
    """Everything between config.json and result.json; the result. Raises RewardError where no call can succeed."""
    config = msgspec.json.decode((folder / "config.json").read_bytes(), type=SubgoalConfig)
    model = LLMClient(config.server, AnswersFile(folder / "answers.jsonl"))
    runs = {str(run.id): run for run in read_trajectories(folder / "trajectories.jsonl.zst")}
    lines = (folder / "tasks.jsonl").read_bytes().splitlines()
    tasks = [msgspec.json.decode(line, type=TaskToSplit) for line in lines]
    with (folder / "found.jsonl").open("a", encoding="utf-8") as out:
        for task, found in model.each(tasks, partial(propose_for_task, model, runs)):
            line = (
                {"problem": found.message}
                if isinstance(found, NoAnswer)
                else {"subgoals": msgspec.to_builtins(found)}
            )
            out.write(json.dumps({"task": task.task} | line) + "\n")
            out.flush()
    result = {"usage": asdict(model.usage), "prompts": sorted(model.asked)}
    write_json(folder / "result.json", result)
    return result


def propose_for_task(model: LLMClient, runs: Mapping[str, Trajectory], task: TaskToSplit) -> list[Subgoal]:
    """Raises NoAnswer, RewardError."""
    own = [runs[name] for name in task.trajectories[:MOST_RUNS] if name in runs]
    asked = prompt(
        "propose_subgoals",
        task=quoted(task.instruction),
        runs="\n\n".join(shown(run, characters=_RUN_CHARACTERS) for run in own) or "none",
    )
    about = dict(zip(("trajectory", "other"), (str(run.id) for run in own), strict=False))
    answer = model.ask(asked, ProposedSubgoals, partial(_check, own), about=about)
    return answer.subgoals


def _check(runs: Sequence[Trajectory], answer: ProposedSubgoals) -> None:
    require_subgoals(answer.subgoals, runs, least=2)
