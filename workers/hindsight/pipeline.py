"""Tasks that trajectories fulfilled, proposed in a folder.

config.json             `HindsightConfig`
trajectories.jsonl.zst  with ids
answers.jsonl           cached answers of the language model (workers.llm.client)
found.jsonl             {"trajectory": id, "task", "evidence": [step]} or {"trajectory", "problem"}, as they end
result.json             {"usage", "prompts"}

Written backwards from what was done: after BAGEL (arXiv 2403.08140) and NNetNav (arXiv 2410.02907), whose labelling
models describe a trajectory as the instruction that it fulfils.
"""

import json
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec

from workers.errors import InvalidRecord
from workers.hindsight.relabelled import LONGEST_TASK, same_text
from workers.json_files import write_json
from workers.llm import LLMServer
from workers.llm.client import AnswersFile, LLMClient, NoAnswer
from workers.prompts.templates import prompt
from workers.prompts.trajectory_text import shown
from workers.schema import Trajectory, read_trajectories

NOTHING_DONE = "The language model finds no task that the trajectory fulfils."
AS_ASKED = "The language model finds that the trajectory fulfils the task that was asked for."


class HindsightConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    server: LLMServer


class TaskInHindsight(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """task: empty where the trajectory fulfils none. evidence: `step` indices that show that it was fulfilled."""

    evidence: list[int] = []
    task: Annotated[str, msgspec.Meta(max_length=LONGEST_TASK)]


def propose_tasks(folder: Path) -> dict[str, Any]:
    """Everything between config.json and result.json; the result. Raises RewardError where no call can succeed."""
    config = msgspec.json.decode((folder / "config.json").read_bytes(), type=HindsightConfig)
    model = LLMClient(config.server, AnswersFile(folder / "answers.jsonl"))
    runs = list(read_trajectories(folder / "trajectories.jsonl.zst"))
    with (folder / "found.jsonl").open("a", encoding="utf-8") as out:
        for run, found in model.each(runs, partial(task_in_hindsight, model)):
            out.write(json.dumps({"trajectory": run.id} | _line(run, found)) + "\n")
            out.flush()
    result = {"usage": asdict(model.usage), "prompts": sorted(model.asked)}
    write_json(folder / "result.json", result)
    return result


def task_in_hindsight(model: LLMClient, run: Trajectory) -> TaskInHindsight:
    """Raises NoAnswer, RewardError."""
    asked = prompt("task_in_hindsight", run=shown(run))
    about = {"trajectory": str(run.id)}
    return model.ask(asked, TaskInHindsight, partial(_check, run), about=about)


def _check(run: Trajectory, answer: TaskInHindsight) -> None:
    """Evidence has to name agent steps, so that a task is not made of what was only asked for or seen."""
    if not answer.task.strip():
        return
    wrong = [step for step in answer.evidence if step not in run.agent_steps]
    if wrong or not answer.evidence:
        what = f"step {wrong[0]} is no step of the agent" if wrong else "it is empty"
        raise InvalidRecord(f"name steps of the agent as evidence; {what}.", pointer="/evidence")


def _line(run: Trajectory, found: TaskInHindsight | NoAnswer) -> dict[str, Any]:
    if isinstance(found, NoAnswer):
        return {"problem": found.message}
    task = found.task.strip()
    if not task:
        return {"problem": NOTHING_DONE}
    if same_text(task, run.task.instruction):
        return {"problem": AS_ASKED}
    return {"task": task, "evidence": sorted(set(found.evidence))}
