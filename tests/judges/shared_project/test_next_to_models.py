"""Models next to a judge on the same held-out comparisons: exact numbers, and the page that shows them."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import Scope
from apps.accounts.services import create_project
from apps.judges.models import JudgeResult, JudgeRun
from apps.llm.models import LLMConnection
from apps.training.judged_comparisons import next_to_judges
from apps.training.models import HeldOutDecisions, RewardModel
from apps.training.services import adopt_model, record_evaluation
from tests.api_calls import ApiCaller
from tests.datasets.feedback import freeze
from tests.factories import member_client
from tests.judges import parcels
from tests.judges.shared_project.test_agreement import compared

pytestmark = pytest.mark.django_db
MANIFEST = {
    "objective": "bradley_terry",
    "backbone": {"kind": "linear"},
    "reward": {"median": 0.0, "std": 1.0},
    "data": {},
}


@pytest.fixture
def judge_run(rules: LLMConnection) -> JudgeRun:
    """Right on 18 of 24 comparisons, a tie on 2 of the others; 48 calls in 12 s, 30 tokens each."""

    def chance(place: int, is_a: bool) -> float:
        if place < 2:
            return 0.5
        return float(is_a) if place >= 6 else 1 - float(is_a)

    found = compared(rules, chance, chance)
    start = timezone.now()
    JudgeRun.objects.filter(pk=found.pk).update(
        state="succeeded",
        started_at=start,
        finished_at=start + timedelta(seconds=12),
        result={"usage": {"calls": 48, "kept": 0, "prompt_tokens": 1200, "completion_tokens": 240}},
    )
    found.refresh_from_db()
    return found


def model_with(judge_run: JudgeRun, name: str, wrong: set[int], seconds: float) -> RewardModel:
    """A model that is wrong on these places among the judge's results."""
    project = judge_run.judge.project
    model = adopt_model(project=project, name=name, artifact="x", manifest=MANIFEST, by=None)
    rows = []
    for place, row in enumerate(judge_run.results.order_by("pk").select_related("trajectory__task")):
        one, two = parcels.failures(int(row.trajectory.task.external_id.removeprefix("task-")))
        assert row.other_trajectory is not None
        a, b = row.trajectory.content_hash, row.other_trajectory.content_hash
        preferred, other = (a, b) if one < two else (b, a)
        rows.append([preferred, other, f"task {place}", float(place not in wrong), 1])
    rows.append(["elsewhere", "not judged", "task x", 0.0, 5])
    evaluation = record_evaluation(
        model=model,
        dataset_version=freeze(project),
        source="people",
        report={"scoring": {"trajectories": 48, "seconds": seconds}},
        by=None,
    )
    HeldOutDecisions.objects.create(evaluation=evaluation, rows=rows)
    return model


def test_accuracy_agreement_and_cost_on_the_same_comparisons(judge_run: JudgeRun) -> None:
    models = [
        model_with(judge_run, "small", {2, 3, 6}, 0.48),  # with the judge wrong twice, without it once
        model_with(judge_run, "large", set(), 4.8),
    ]
    (entry,) = next_to_judges(judge_run.judge.project, models)
    assert (entry.judge, entry.n, entry.tasks, entry.n_decided) == (judge_run.judge, 24, 24, 22)
    judge, small, large = entry.rows
    assert [row.name for row in entry.rows] == ["compares", "desk/small@1", "desk/large@1"]
    assert judge.accuracy == pytest.approx(19 / 24) and judge.agreement is None
    assert small.accuracy == pytest.approx(21 / 24) and large.accuracy == 1
    assert small.agreement == pytest.approx(19 / 22), (
        "same on 17 where the judge is right, and on 2 where not"
    )
    assert large.agreement == pytest.approx(18 / 22)
    assert judge.interval is not None and judge.interval[0] < judge.accuracy < judge.interval[1]
    assert judge.cost is not None and small.cost is not None and large.cost is not None
    assert (judge.cost.calls, judge.cost.tokens) == (2000, 60_000)
    assert judge.cost.seconds == pytest.approx(500)
    assert (small.cost.calls, small.cost.seconds) == (0, pytest.approx(20.0))
    assert large.cost.seconds == pytest.approx(200)


def test_it_is_on_the_page_of_the_model(judge_run: JudgeRun) -> None:
    model = model_with(judge_run, "small", {2, 3, 6}, 0.48)
    project = judge_run.judge.project
    client = member_client(project, "researcher")
    text = client.get(reverse("training:model-detail", args=[project.slug, model.pk])).content.decode()
    assert "Next to the judge" in text and "79.2 %" in text and "87.5 %" in text and "86.4 %" in text
    assert "60,000" in text and "20.0" in text


def test_judges_of_other_trajectories_and_models_without_decisions_are_left_out(judge_run: JudgeRun) -> None:
    project = judge_run.judge.project
    alone = adopt_model(project=project, name="alone", artifact="x", manifest=MANIFEST, by=None)
    assert next_to_judges(project, []) == next_to_judges(project, [alone]) == []
    model = model_with(judge_run, "small", set(), 1.0)
    JudgeResult.objects.filter(judge_run=judge_run).update(state="failed", answer=None)
    assert next_to_judges(project, [model]) == []


def test_the_api_has_the_same_numbers(judge_run: JudgeRun) -> None:
    small, large = (
        model_with(judge_run, "small", {2, 3, 6}, 0.48),
        model_with(judge_run, "large", set(), 4.8),
    )
    project = judge_run.judge.project
    call = ApiCaller(project, Scope.TRAIN)
    (found,) = call("GET", "/models/small@1/next-to-judges", also=["large", "small@1"])["judges"]
    (entry,) = next_to_judges(project, [small, large])
    assert [found[name] for name in ("judge", "answers", "tasks", "decided")] == ["compares", 24, 24, 22]
    assert [row["name"] for row in found["scorers"]] == ["compares", "desk/small@1", "desk/large@1"]
    for sent, row in zip(found["scorers"], entry.rows, strict=True):
        assert (sent["accuracy"], sent["agreement"]) == (row.accuracy, row.agreement)
        assert row.interval is not None and row.cost is not None
        assert sent["interval"] == list(row.interval)
        assert sent["cost"] == {
            "calls": row.cost.calls,
            "tokens": row.cost.tokens,
            "seconds": row.cost.seconds,
        }
    undecided = adopt_model(project=project, name="new", artifact="x", manifest=MANIFEST, by=None)
    assert call("GET", "/models/small/next-to-judges", also=[undecided.name])[
        "judges"
    ]  # it has nothing to compare
    assert call("GET", "/models/new/next-to-judges") == {"judges": []}
    for also, status in ((["absent"], 404), (["small"] * 8, 422)):
        call("GET", "/models/small/next-to-judges", also=also)
        assert call.status == status
    other = ApiCaller(create_project(slug="other"), Scope.TRAIN)
    for names in (["small@1"], ["desk/small@1"]):
        other("GET", "/models/small/next-to-judges", also=names)
        assert other.status == 404
    without = ApiCaller(project, Scope.FEEDBACK_READ)
    without("GET", "/models/small/next-to-judges")
    assert without.status == 403
