"""Agents by a judge, and runs in the explorer by its scores."""

import pytest

from apps.accounts.models import Project
from apps.judges import services
from apps.judges.agent_scores import agent_scores
from apps.judges.models import JudgeResult, JudgeRun
from apps.llm.models import LLMConnection
from apps.trajectories.filter_queries import filter_trajectories
from apps.trajectories.models import Trajectory, TrajectoryFact
from apps.trajectories.selectors import best_of_tasks, fact_names
from tests.judges import parcels
from tests.judges.parcels import COMPARED, SCORED, campaign, done

pytestmark = pytest.mark.django_db


def named(project: Project) -> None:
    """The first run of each task is fox's, the second owl's."""
    for task in project.tasks.all():
        first, second = task.trajectories.order_by("pk")
        Trajectory.objects.filter(pk=first.pk).update(agent_name="fox", agent_version="1")
        Trajectory.objects.filter(pk=second.pk).update(agent_name="owl")


def put(judge_run: JudgeRun, **by_agent: float) -> JudgeRun:
    key = "value" if judge_run.judge.mode == "score" else "chance"
    for row in judge_run.results.select_related("trajectory"):
        said = {key: by_agent[row.trajectory.agent_name], "spread": None, "reason": "So.", "step": None}
        JudgeResult.objects.filter(pk=row.pk).update(state="done", answer=[said])
    return judge_run


def test_agents_by_their_scores(rules: LLMConnection) -> None:
    named(rules.project)
    judge = parcels.judge(rules)
    judge_run = put(
        services.start_judge_run(judge=judge, campaign=campaign(rules.project, SCORED)), fox=4.0, owl=2.0
    )
    fox, owl = agent_scores(judge_run)
    assert (fox.agent, fox.version, fox.criterion, fox.n) == ("fox", "1", "Care", parcels.TASKS)
    assert fox.value == 0.75 and fox.interval == pytest.approx((0.75, 0.75))
    assert (owl.agent, owl.version, owl.value) == ("owl", "", 0.25)


def test_agents_by_who_wins(rules: LLMConnection) -> None:
    named(rules.project)
    judge = parcels.judge(rules, mode="compare")
    judge_run = put(
        services.start_judge_run(judge=judge, campaign=campaign(rules.project, COMPARED)), fox=0.8
    )
    fox, owl = agent_scores(judge_run)
    assert (fox.agent, fox.value) == ("fox", pytest.approx(0.8))
    assert (owl.agent, owl.value, owl.n) == ("owl", pytest.approx(0.2), parcels.TASKS)


def test_what_has_no_agent_is_nobody_s(rules: LLMConnection) -> None:
    judge = parcels.judge(rules)
    Trajectory.objects.update(agent_name="")
    judge_run = services.start_judge_run(judge=judge, campaign=campaign(rules.project, SCORED))
    for row in judge_run.results.all():
        said = {"value": 3.0, "spread": None, "reason": "So.", "step": None}
        JudgeResult.objects.filter(pk=row.pk).update(state="done", answer=[said])
    assert agent_scores(judge_run) == []


def test_the_explorer_finds_runs_by_a_judge_and_only_where_it_is_named(rules: LLMConnection) -> None:
    project = rules.project
    named(project)
    judge = parcels.judge(rules, "strict")
    judge_run = put(
        services.start_judge_run(judge=judge, campaign=campaign(project, SCORED)), fox=5.0, owl=2.0
    )
    assert done(judge_run).state == "succeeded", judge_run.error
    assert fact_names(project) == ["strict: Care"]

    def agents(**by: str) -> set[str]:
        return set(filter_trajectories(project, by).values_list("agent_name", flat=True))  # type: ignore[arg-type]

    assert agents(fact="strict: Care", judged="good") == {"fox"}
    assert agents(fact="strict: Care", judged="bad") == {"owl"}
    assert agents(judged="good") == set(), "without a name nothing is meant that a judge said"
    everything = Trajectory.objects.filter(project=project)
    assert {run.agent_name for run in best_of_tasks(everything, "strict: Care")} == {"fox"}
    assert not best_of_tasks(everything).exists()
    again = put(services.start_judge_run(judge=judge, campaign=campaign(project, SCORED)), fox=1.0, owl=3.0)
    done(again)
    assert agents(fact="strict: Care", judged="good") == set() and agents(
        fact="strict: Care", judged="bad"
    ) == {"fox"}
    assert TrajectoryFact.objects.count() == 2 * parcels.TASKS, "the newest alone counts"
    services.delete_judge(judge=judge, by=None)
    assert not TrajectoryFact.objects.exists()
