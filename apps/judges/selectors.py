"""Reads of judges and their runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, QuerySet

from apps.accounts.models import Project
from apps.core.errors import NotFound
from apps.judges.models import Judge, JudgeResult, JudgeRun
from apps.rubrics.models import Criterion
from apps.trajectories.models import Trajectory

TRIED = 3  # runs of a trial, or comparisons


def get_judge(project: Project, pk: int) -> Judge:
    rows = Judge.objects.select_related("project", "llm_connection", "rubric")
    found = rows.filter(project=project, pk=pk).first()
    if found is None:
        raise NotFound(f"There is no judge {pk} in this project.")
    return found


def get_judge_by_name(project: Project, name: str) -> Judge:
    rows = Judge.objects.select_related("project", "llm_connection", "rubric")
    found = rows.filter(project=project, name=name).first()
    if found is None:
        there = ", ".join(project.judges.values_list("name", flat=True)) or "none"
        raise NotFound(
            f"There is no judge {name} in {project.slug} (there: {there}). Make one on the page Judges."
        )
    return found


def list_judge_runs(project: Project, judge: Judge | None = None) -> "QuerySet[JudgeRun]":
    """The newest first, with how many of its runs have an answer (`answered`), and how many have none (`failed`)."""
    rows = JudgeRun.objects.filter(judge__project=project)
    if judge is not None:
        rows = rows.filter(judge=judge)
    counts = {
        name: Count("results", filter=Q(results__state=state))
        for name, state in (("answered", JudgeResult.State.DONE), ("failed", JudgeResult.State.FAILED))
    }
    return rows.select_related("judge__llm_connection", "campaign").annotate(**counts).order_by("-pk")


def get_judge_run(project: Project, pk: int) -> JudgeRun:
    rows = JudgeRun.objects.select_related(
        "judge__project", "judge__llm_connection", "judge__rubric", "campaign__project"
    )
    found = rows.filter(judge__project=project, pk=pk).first()
    if found is None:
        raise NotFound(f"There is no judge run {pk} in this project.")
    return found


def comparable_runs(judge_run: JudgeRun) -> "QuerySet[JudgeRun]":
    """What it can be held against: judge runs of the same campaign by judges of the same mode."""
    rows = JudgeRun.objects.filter(campaign=judge_run.campaign_id, judge__mode=judge_run.judge.mode)
    rows = rows.filter(campaign__isnull=False, judge__project=judge_run.judge.project_id).exclude(
        pk=judge_run.pk
    )
    return rows.select_related("judge").order_by("-pk")


@dataclass(frozen=True, slots=True)
class Said:
    """Of one criterion, as the page tells it. value: in words; None where it could not be told. step_b: of run b."""

    criterion: str
    value: str | None
    spread: float | None
    reason: str
    step: int | None
    step_b: int | None = None


def told(judge_run: JudgeRun, rows: "QuerySet[JudgeResult]") -> list[tuple[JudgeResult, list[Said]]]:
    """What a judge said of each."""
    asks = judge_run.judge.criteria
    return [
        (row, [_said(criterion, one) for criterion, one in zip(asks, row.answer or (), strict=False)])
        for row in rows.select_related("trajectory__task", "other_trajectory", "item")
    ]


def _said(criterion: Criterion | None, one: dict[str, Any]) -> Said:
    name = criterion.name if criterion else "Overall"
    if "value" in one:
        value = None
        if one["value"] is not None and criterion is not None:
            value = f"{one['value']:.2g} of {criterion.scale_high:g}"
        return Said(name, value, one["spread"], one["reason"], one["step"])
    chance = one["chance"]
    value = None if chance is None else f"A {100 * chance:.0f} %, B {100 - 100 * chance:.0f} %"
    return Said(name, value, one["spread"], one["reason"], one["step_a"], one["step_b"])


def trial_runs(judge: Judge, numbers: Sequence[int]) -> list[Trajectory]:
    """The runs of these numbers; without any, some that people judged: of one task where the judge compares.

    Raises NotFound for a number that is none.
    """
    rows = Trajectory.objects.filter(project=judge.project).select_related("task")
    if numbers:
        found = rows.in_bulk(list(numbers))
        gone = next((one for one in numbers if one not in found), None)
        if gone is not None:
            raise NotFound(f"There is no run {gone} in this project.")
        return [found[one] for one in numbers]
    if judge.mode == Judge.Mode.SCORE:
        return list(rows.order_by("-pk")[:TRIED])
    several = rows.order_by().values("task").annotate(n=Count("pk")).filter(n__gt=1).order_by("-task")
    task = several.values_list("task", flat=True).first()
    return list(rows.filter(task=task).order_by("pk")[: TRIED + 1]) if task is not None else []
