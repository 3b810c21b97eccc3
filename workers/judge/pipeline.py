"""A judge run in a folder: the input is in it, and each answer is written as it comes.

config.json             `JudgeRunConfig`
units.jsonl             a line for each: {"unit", "runs": [id] or [id, id]}
trajectories.jsonl.zst  the runs
answers.jsonl           cached answers of the language model (workers.llm.client)
judged.jsonl            {"unit", "answer": [...], "rubric"?: [{"item", "weight"}]},
                        or {"unit", "problem": "..."}, in the order they end; with "pictures", where the
                        trajectories have any: {"shown", "total"}
pictures.zip            the pictures of the runs, where the language model reads any
result.json             {"usage", "prompts", "pictures"}: the sums of those of the units
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from workers.errors import RewardError
from workers.json_files import write_json
from workers.judge.aggregation import CriterionComparison, CriterionScore
from workers.judge.debate import DEBATE, DebateJudge
from workers.judge.rubric import COMPARE, SCORE, Criterion, RubricJudge
from workers.judge.rubric_first import RUBRIC_FIRST, RubricFirstJudge
from workers.judge.steps import STEPS, StepJudge, StepVerdict
from workers.judge.windows import step_judge_of
from workers.llm import LLMServer
from workers.llm.client import AnswersFile, LLMClient, NoAnswer
from workers.prompts.pictures import list_pictures
from workers.schema import Trajectory, read_trajectories
from workers.text.pictures import use_pictures


class JudgeRunConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """mode: SCORE, COMPARE or STEPS. criteria: may be empty in the mode STEPS. version: of the prompt. samples: answers
    that are averaged; one is not sampled. approach: "", DEBATE (in the mode COMPARE) or RUBRIC_FIRST. window:
    in the mode STEPS, agent steps that are labelled together and seen alone; 0: each step, in its trajectory."""

    server: LLMServer
    mode: str
    criteria: list[Criterion]
    version: int = 1
    samples: int = 1
    guidelines: str = ""
    approach: str = ""
    window: int = 0


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
    use_pictures(folder)
    model = LLMClient(config.server, AnswersFile(folder / "answers.jsonl"))
    answer_unit = _answerer(config, model, runs)
    pictures = Counter[str]()
    with (folder / "judged.jsonl").open("a", encoding="utf-8") as out:
        for unit, answer in model.each(_read_units(folder), answer_unit):
            outcome: dict[str, Any] = {"problem": answer.message} if isinstance(answer, NoAnswer) else answer
            pictures.update(outcome.get("pictures", {}))
            out.write(json.dumps({"unit": unit.unit} | outcome) + "\n")
            out.flush()
    result = {
        "usage": asdict(model.usage),
        "prompts": sorted(model.asked),
        "pictures": dict(pictures),
    }
    write_json(folder / "result.json", result)
    return result


def _read_units(folder: Path) -> Iterator[JudgeUnit]:
    with (folder / "units.jsonl").open("rb") as lines:
        for line in lines:
            yield msgspec.json.decode(line, type=JudgeUnit)


def _answerer(
    config: JudgeRunConfig, model: LLMClient, runs: Mapping[str, Trajectory]
) -> Callable[[JudgeUnit], dict[str, Any]]:
    """Gives a unit its line: {"answer"}, by criterion, or in the mode STEPS by agent step; {"rubric"}, where the judge
    wrote one; and {"pictures"}, where there are any. Raises RewardError."""
    options: dict[str, Any] = {
        "version": config.version, "samples": config.samples, "guidelines": config.guidelines,
    }  # fmt: skip
    if config.mode not in (SCORE, COMPARE, STEPS):
        raise RewardError(f"mode = {config.mode!r}; {SCORE}, {COMPARE} and {STEPS} are known.")
    if config.mode == STEPS:
        step_judge = step_judge_of(model, config.criteria, window=config.window, **options)
        return partial(_by_steps, step_judge, runs)
    if config.approach == RUBRIC_FIRST:
        return partial(_by_own_rubric, RubricFirstJudge(model, config.criteria, **options), config.mode, runs)
    kind = DebateJudge if config.approach == DEBATE else RubricJudge
    return partial(_by_rubric, kind(model, config.criteria, **options), config.mode, runs)


def _by_steps(judge: StepJudge, runs: Mapping[str, Trajectory], unit: JudgeUnit) -> dict[str, Any]:
    (run,) = _runs_of(unit, runs)
    return {"answer": _as_dicts(judge.label(run, about=_about(unit)))} | _pictures(judge, [run])


def _by_rubric(
    judge: RubricJudge, mode: str, runs: Mapping[str, Trajectory], unit: JudgeUnit
) -> dict[str, Any]:
    judged = _runs_of(unit, runs)
    ask: Callable[..., Any] = judge.score if mode == SCORE else judge.compare
    return {"answer": _as_dicts(ask(*judged, about=_about(unit)))} | _pictures(judge, judged)


def _by_own_rubric(
    judge: RubricFirstJudge, mode: str, runs: Mapping[str, Trajectory], unit: JudgeUnit
) -> dict[str, Any]:
    judged, about = _runs_of(unit, runs), _about(unit)
    items = judge.write_items(judged[0], about=about)
    ask: Callable[..., Any] = judge.score if mode == SCORE else judge.compare
    answer = _as_dicts(ask(*judged, about=about, items=items))
    return {"answer": answer, "rubric": msgspec.to_builtins(items)} | _pictures(judge, judged)


def _pictures(judge: RubricJudge | StepJudge, runs: Sequence[Trajectory]) -> dict[str, Any]:
    total = sum(len(list_pictures(run)) for run in runs)
    return {"pictures": {"shown": judge.count_pictures(*runs), "total": total}} if total else {}


def _runs_of(unit: JudgeUnit, runs: Mapping[str, Trajectory]) -> list[Trajectory]:
    """Raises NoAnswer where one is gone."""
    if any(run not in runs for run in unit.runs):
        raise NoAnswer("The run is gone.")
    return [runs[run] for run in unit.runs]


def _about(unit: JudgeUnit) -> dict[str, str]:
    return dict(zip(("trajectory", "other"), unit.runs, strict=False))


def _as_dicts(
    found: Sequence[CriterionScore] | Sequence[CriterionComparison] | Sequence[StepVerdict],
) -> list[dict[str, Any]]:
    return [asdict(each) for each in found]
