"""A judge run in a folder: the input is in it, and each answer is written as it comes.

config.json             `JudgeRunConfig`
units.jsonl             a line for each: {"unit", "runs": [id] or [id, id]}
trajectories.jsonl.zst  the runs
answers.jsonl           cached answers of the language model (workers.llm.client)
judged.jsonl            {"unit", "answer": {...}} or {"unit", "problem": "..."}, in the order they end
result.json             {"usage", "prompts"}
"""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec

from workers.errors import RewardError
from workers.json_files import write_json
from workers.judge.rubric import COMPARE, SCORE, Criterion, RubricJudge
from workers.llm import LLMServer
from workers.llm.client import AnswersFile, LLMClient, NoAnswer
from workers.schema import Trajectory, read_trajectories


class JudgeRunConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """mode: SCORE or COMPARE. version: of the prompt. samples: answers that are averaged; one is not
    sampled."""

    server: LLMServer
    mode: str
    criteria: list[Criterion]
    version: int = 1
    samples: int = 1
    guidelines: str = ""


class JudgeUnit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    unit: int
    runs: tuple[str, ...]


def judge(folder: Path) -> dict[str, Any]:
    """Everything between config.json and result.json; the result. Raises RewardError where judging cannot go on:
    a refused key, a spent budget."""
    config = msgspec.json.decode((folder / "config.json").read_bytes(), type=JudgeRunConfig)
    runs = {
        str(trajectory.id): trajectory for trajectory in read_trajectories(folder / "trajectories.jsonl.zst")
    }
    model = LLMClient(config.server, AnswersFile(folder / "answers.jsonl"))
    judged = RubricJudge(
        model,
        config.criteria,
        version=config.version,
        samples=config.samples,
        guidelines=config.guidelines,
    )
    with (folder / "judged.jsonl").open("a", encoding="utf-8") as out:
        for unit, answer in model.each(
            _read_units(folder), lambda unit: _judge_unit(judged, config.mode, unit, runs)
        ):
            outcome = {"problem": answer.message} if isinstance(answer, NoAnswer) else {"answer": answer}
            out.write(json.dumps({"unit": unit.unit} | outcome) + "\n")
            out.flush()
    result = {"usage": asdict(model.usage), "prompts": sorted(model.asked)}
    write_json(folder / "result.json", result)
    return result


def _read_units(folder: Path) -> Iterator[JudgeUnit]:
    with (folder / "units.jsonl").open("rb") as lines:
        for line in lines:
            yield msgspec.json.decode(line, type=JudgeUnit)


def _judge_unit(
    judged: RubricJudge, mode: str, unit: JudgeUnit, runs: dict[str, Trajectory]
) -> list[dict[str, Any]]:
    """By criterion."""
    if any(run not in runs for run in unit.runs):
        raise NoAnswer("The run is gone.")
    about = {"trajectory": unit.runs[0]}
    if mode == SCORE:
        return [asdict(score) for score in judged.score(runs[unit.runs[0]], about=about)]
    if mode == COMPARE:
        a, b = (runs[run] for run in unit.runs)
        return [
            asdict(comparison) for comparison in judged.compare(a, b, about=about | {"other": unit.runs[1]})
        ]
    raise RewardError(f"mode = {mode!r}; {SCORE} and {COMPARE} are known.")
