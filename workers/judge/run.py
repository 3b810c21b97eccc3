"""Judging in a folder: what is to be judged comes in it, and each answer is written down as it comes.

config.json             `Config`
units.jsonl             a line for each: {"unit", "runs": [id] or [id, id]}
trajectories.jsonl.zst  the runs
answers.jsonl           what the language model answered, for the next time (workers.llm.client)
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


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """mode: SCORE or COMPARE. version: of the prompt. samples: answers that are averaged, drawn where they are more
    than one."""

    server: LLMServer
    mode: str
    criteria: list[Criterion]
    version: int = 1
    samples: int = 1
    guidelines: str = ""


class Unit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    unit: int
    runs: tuple[str, ...]


def judge(folder: Path) -> dict[str, Any]:
    """Everything between config.json and result.json; the result. Raises RewardError where no one is judged any more:
    a refused key, money that is spent."""
    config = msgspec.json.decode((folder / "config.json").read_bytes(), type=Config)
    runs = {str(one.id): one for one in read_trajectories(folder / "trajectories.jsonl.zst")}
    model = LLMClient(config.server, AnswersFile(folder / "answers.jsonl"))
    judged = RubricJudge(
        model,
        config.criteria,
        version=config.version,
        samples=config.samples,
        guidelines=config.guidelines,
    )
    with (folder / "judged.jsonl").open("a", encoding="utf-8") as out:
        for unit, answer in model.each(_units(folder), lambda unit: _judged(judged, config.mode, unit, runs)):
            told = {"problem": answer.message} if isinstance(answer, NoAnswer) else {"answer": answer}
            out.write(json.dumps({"unit": unit.unit} | told) + "\n")
            out.flush()
    result = {"usage": asdict(model.usage), "prompts": sorted(model.asked)}
    write_json(folder / "result.json", result)
    return result


def _units(folder: Path) -> Iterator[Unit]:
    with (folder / "units.jsonl").open("rb") as lines:
        for line in lines:
            yield msgspec.json.decode(line, type=Unit)


def _judged(judged: RubricJudge, mode: str, unit: Unit, runs: dict[str, Trajectory]) -> list[dict[str, Any]]:
    """By criterion."""
    if any(one not in runs for one in unit.runs):
        raise NoAnswer("The run is gone.")
    about = {"trajectory": unit.runs[0]}
    if mode == SCORE:
        return [asdict(one) for one in judged.score(runs[unit.runs[0]], about=about)]
    if mode == COMPARE:
        a, b = (runs[one] for one in unit.runs)
        return [asdict(one) for one in judged.compare(a, b, about=about | {"other": unit.runs[1]})]
    raise RewardError(f"mode = {mode!r}; {SCORE} and {COMPARE} are known.")
