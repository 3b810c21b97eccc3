"""A retraining cycle: annotate, freeze, train, compare, release; or it stops, with the reason."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import AuditEvent, Project, Role, User
from apps.annotation.models import Campaign
from apps.annotation.services import annotator_for, assign_next_item
from apps.core.errors import Conflict, DomainError
from apps.core.jobs import job_queue
from apps.core.jobs.job_queue import JobState
from apps.datasets.models import DatasetVersion
from apps.datasets.version_builder import build_dataset_version
from apps.retraining import cycle as cycle_module
from apps.retraining.comparison import execute_comparison as compare
from apps.retraining.cycle import (
    advance_cycle,
    advance_cycles,
    confirm_stage,
    judge_comparisons,
    start_cycle,
    stop_cycle,
)
from apps.retraining.models import ModelComparison, RetrainingCycle
from apps.retraining.presenters import cycle_durations, cycle_stages, seconds_to_served
from apps.rewards.models import Endpoint, Release, ScoreSample
from apps.rewards.services import deploy, promote_release, roll_back_release
from apps.training import runner
from apps.training.models import RewardModel, TrainingRun
from apps.training.services import start_run
from apps.trajectories.selectors import load_trajectories
from tests.annotation.rows import submit
from tests.datasets.feedback import freeze, import_pairs, pair
from tests.factories import make_member

Stage = RetrainingCycle.Stage


@pytest.fixture(autouse=True)
def home(own_home: None) -> None:
    """Run directories and models are named after rows, whose numbers come again."""


def work() -> None:
    """What workers would do, until nothing is left to do."""
    for model, execute in (
        (DatasetVersion, build_dataset_version),
        (TrainingRun, runner.execute),
        (ModelComparison, compare),
    ):
        while (job := job_queue.claim_next(model)) is not None:
            execute(job)


def trained(project: Project, dataset_version: DatasetVersion) -> RewardModel:
    run = start_run(
        project=project, dataset_version=dataset_version, recipe={"epochs": 3}, by=None, name="desk"
    )
    work()
    run.refresh_from_db()
    assert run.state == JobState.SUCCEEDED, run.error
    return run.model


@pytest.fixture
def endpoint(project: Project, researcher: User) -> Endpoint:
    """A model that was really trained, deployed."""
    import_pairs(project, [pair(f"task-{n}") for n in range(24)])
    model = trained(project, freeze(project))
    endpoint = deploy(model=model, endpoint_name="reward", project=project, by=None).endpoint
    Endpoint.objects.update(sample_share=1.0)
    return endpoint


def sampled(endpoint: Endpoint) -> None:
    """Two answers to each of three new prompts, of which it is unsure."""
    for number in range(3):
        for answer in (f"I will look after order {number} at once.", f"Order {number}? Not my job."):
            conversation = [
                {"role": "user", "content": f"Where is order {number}?"},
                {"role": "assistant", "content": answer},
            ]
            ScoreSample.objects.create(
                endpoint=endpoint,
                version=1,
                caller="tsk_1",
                item={"messages": conversation},
                result={"flags": ["uncertain"], "reward": 0.1 * len(answer)},
                reward=0.1 * len(answer),
            )


def judged(project: Project, campaign: Campaign, user: User) -> None:
    """The kinder answer of every item."""
    while held := assign_next_item(campaign=campaign, annotator=annotator_for(project=project, user=user)):
        keys = [place.trajectory_id for place in held.item.places.order_by("position")]
        said = load_trajectories(keys)[keys[0]].steps[-1].text
        submit(held, user, "a" if "look after" in said else "b")


@pytest.mark.slow
def test_from_people_to_what_answers(project, endpoint, researcher, monkeypatch) -> None:
    """Automatically, and all of it real: comparisons in the queue, a dataset version, a training of the heads, two
    comparisons of models, and the new one in the old one's place. Three held-out tasks exclude no loss but of all."""
    monkeypatch.setattr("apps.retraining.cycle.EXCLUDED_ACCURACY_LOSS", 1.01)
    monkeypatch.setattr("apps.retraining.cycle.MIN_TASKS", 2)
    sampled(endpoint)
    first = endpoint.active
    cycle = start_cycle(endpoint=endpoint, by=researcher, comparisons=3, staged_release=False, automatic=True)
    campaign = cycle.follow_up.campaign
    assert cycle.stage == Stage.ASKING and len(cycle.follow_up.items) == 3
    advance_cycles()
    cycle.refresh_from_db()
    assert cycle.stage == Stage.ASKING  # no one has judged
    annotator = make_member(project, "ann-cycles@example.org", Role.ANNOTATOR)
    judged(project, campaign, annotator)
    for _ in range(12):
        advance_cycles()
        work()
    cycle.refresh_from_db()
    assert cycle.stage == Stage.DONE, cycle.reason
    assert (
        cycle.training_run.recipe["heads_only"] is True and cycle.training_run.parent == cycle.previous_model
    )
    assert cycle.dataset_version.version == 2 and cycle.dataset_version.name == "first"
    assert {record["snapshot"] for record in cycle.model_comparison.result} == {
        cycle.dataset_version_id,
        cycle.previous_model.training_run.dataset_version_id,
    }
    assert all(record["tasks"] >= 2 for record in cycle.model_comparison.result)
    assert cycle.reason.startswith("Its accuracy differs by +")
    endpoint.refresh_from_db()
    assert endpoint.active.number == first.number + 1
    assert endpoint.active.spec["components"][0]["model"] == str(cycle.training_run.model)
    seconds = seconds_to_served(cycle)
    assert seconds is not None and 0 < seconds < 600
    assert [(step.stage, step.state) for step in cycle_stages(cycle)] == [
        (stage, "done") for stage in ("asking", "freezing", "training", "comparing", "trying", "done")
    ]
    (timed,) = cycle_durations([cycle])
    assert timed.seconds == seconds and 0 < timed.work < seconds
    assert [span.label for span in timed.spans] == [
        "Dataset freeze",
        "Training",
        "Model comparison",
        "Release",
    ]
    assert timed.spans[0].begin == "0.00%"
    widths = [float(span.width.removesuffix("%")) for span in timed.spans]
    assert sum(widths) == pytest.approx(100, abs=0.1)
    client = Client()
    client.force_login(researcher)
    text = client.get(reverse("retraining:cycle-times", args=[project.slug])).content.decode()
    assert f"{seconds:.0f} s" in text and "in progress" not in text
    verbs = (
        AuditEvent.objects.filter(verb__startswith="retraining.")
        .order_by("pk")
        .values_list("verb", flat=True)
    )
    assert list(verbs) == ["retraining.started", "retraining.done"]


def model_row(project: Project, number: int, run: TrainingRun | None = None) -> RewardModel:
    manifest = {"aggregation": "value", "heads": {"ensemble": 5}}
    return RewardModel.objects.create(
        project=project,
        name="m",
        version=number,
        artifact=f"models/{number}",
        manifest=manifest,
        training_run=run,
    )


@pytest.fixture
def served(project: Project, researcher: User) -> Endpoint:
    """Rows alone: for what follows from what."""
    dataset_version = DatasetVersion.objects.create(
        project=project, name="d", version=1, state=JobState.SUCCEEDED, splits={"test": 9}, usable_pairs=99
    )
    run = TrainingRun.objects.create(
        project=project, dataset_version=dataset_version, recipe_name="own", recipe={}, model_name="m"
    )
    return deploy(model=model_row(project, 1, run), endpoint_name="reward", project=project, by=None).endpoint


def at(cycle: RetrainingCycle, stage: str) -> RetrainingCycle:
    """The cycle with a dataset version and a run that have succeeded, at a stage."""
    project = cycle.endpoint.project
    cycle.dataset_version = DatasetVersion.objects.create(
        project=project, name="d", version=2, state=JobState.SUCCEEDED, splits={"test": 9}
    )
    cycle.training_run = TrainingRun.objects.create(
        project=project,
        dataset_version=cycle.dataset_version,
        recipe_name="own",
        recipe={},
        model_name="m",
        state=JobState.SUCCEEDED,
    )
    model_row(project, 2, cycle.training_run)
    cycle.stage, cycle.stage_times = stage, {stage: timezone.now().isoformat()}
    cycle.save()
    return cycle


def compared(cycle: RetrainingCycle, *results: tuple[DatasetVersion, dict[str, Any]]) -> None:
    advance_cycle(cycle)
    said = [result | {"snapshot": dataset_version.pk, "n": 40} for dataset_version, result in results]
    assert set(cycle.model_comparison.dataset_versions.all()) == {
        dataset_version for dataset_version, _ in results
    }
    ModelComparison.objects.filter(cycle=cycle).update(state=JobState.SUCCEEDED, result=said)


BETTER = {"difference": 0.05, "interval": [-0.01, 0.11]}
EQUAL = {"difference": 0.0, "interval": [-0.015, 0.015]}
SAME = {"difference": 0.0, "interval": [-0.04, 0.04]}
LITTLE = {"difference": -0.03, "interval": [-0.07, 0.01]}
WORSE = {"difference": -0.2, "interval": [-0.3, -0.1]}


@pytest.mark.parametrize(
    ("new", "old", "state", "said"),
    [
        (BETTER, SAME, "passes", "differs by +5.0 points on the test split of desk/d@2"),
        (EQUAL, SAME, "passes", "differs by +0.0 points"),
        (SAME, SAME, "unclear", "[-4.0, +4.0]: a loss of 2 points is not excluded"),
        (SAME, SAME, "unclear", "about 160 held-out comparisons would be needed"),
        (LITTLE, SAME, "unclear", "no number of comparisons would exclude it"),
        (
            BETTER | {"tasks": 9},
            SAME,
            "unclear",
            "too few tasks for a conclusion (9; at least 10 are needed)",
        ),
        (WORSE, SAME, "fails", "differs by -20.0 points on the test split of desk/d@2"),
        (BETTER, WORSE, "fails", "certainly worse than the 5 points that are allowed"),
        ({"difference": None, "interval": None}, SAME, "fails", "models cannot be compared"),
    ],
)
def test_what_is_better(served, researcher, new, old, state, said) -> None:
    cycle = at(start_cycle(endpoint=served, by=researcher, automatic=True), Stage.COMPARING)
    assert cycle.dataset_version is not None
    first = cycle.previous_model.training_run.dataset_version  # type: ignore[union-attr]
    compared(cycle, (cycle.dataset_version, new), (first, old))
    found = judge_comparisons(ModelComparison.objects.get(cycle=cycle).result, newest=cycle.dataset_version)
    assert found[0] == state and said in found[1].replace(served.project.slug, "desk")
    advance_cycles()
    cycle.refresh_from_db()
    stages = {"passes": Stage.TRYING, "unclear": Stage.COMPARING, "fails": Stage.STOPPED}
    assert (cycle.stage, cycle.awaits_confirmation) == (stages[state], state == "unclear")
    assert said in cycle.reason.replace(served.project.slug, "desk")
    assert (cycle.ended_at is not None) is (state == "fails")


def test_a_person_decides_what_is_unclear(served, researcher) -> None:
    """Where one started the cycle; where none did, it stops."""
    cycle = at(start_cycle(endpoint=served, by=researcher, automatic=True), Stage.COMPARING)
    first = cycle.previous_model.training_run.dataset_version  # type: ignore[union-attr]
    assert cycle.dataset_version is not None
    compared(cycle, (cycle.dataset_version, SAME), (first, SAME))
    advance_cycles()
    confirm_stage(cycle=cycle, by=researcher)
    cycle.refresh_from_db()
    assert (cycle.stage, cycle.awaits_confirmation) == (Stage.TRYING, False)
    RetrainingCycle.objects.filter(pk=cycle.pk).update(stage=Stage.COMPARING, started_by=None)
    advance_cycles()
    cycle.refresh_from_db()
    assert cycle.stage == Stage.STOPPED and "is not excluded" in cycle.reason


def test_its_release_decides(served, researcher) -> None:
    cycle = at(start_cycle(endpoint=served, by=researcher, automatic=True), Stage.TRYING)
    advance_cycles()
    cycle.refresh_from_db()
    trial = cycle.release
    assert trial is not None and trial.stage == Release.Stage.SHADOW and trial.automatic
    advance_cycles()
    cycle.refresh_from_db()
    assert cycle.stage == Stage.TRYING
    promote_release(release=trial, by=None, reason="It held.")
    advance_cycles()
    cycle.refresh_from_db()
    assert (cycle.stage, cycle.reason) == (Stage.DONE, "It held.")


def test_one_that_is_withdrawn_stops_it(served, researcher) -> None:
    cycle = at(start_cycle(endpoint=served, by=researcher, automatic=True), Stage.TRYING)
    advance_cycles()
    cycle.refresh_from_db()
    roll_back_release(release=cycle.release, by=None, reason="It likes length.")
    advance_cycles()
    cycle.refresh_from_db()
    assert (cycle.stage, cycle.reason) == (Stage.STOPPED, "Its release was rolled back: It likes length.")
    served.refresh_from_db()
    assert served.active is not None and served.active.number == 1


def test_people_confirm_each_step_where_they_said_so(served, researcher) -> None:
    cycle = at(start_cycle(endpoint=served, by=researcher), Stage.TRAINING)
    with pytest.raises(Conflict, match="nothing to confirm"):
        confirm_stage(cycle=cycle, by=researcher)
    advance_cycles()
    cycle.refresh_from_db()
    assert (cycle.stage, cycle.awaits_confirmation) == (Stage.TRAINING, True)
    advance_cycles()
    cycle.refresh_from_db()
    assert cycle.stage == Stage.TRAINING
    states = {step.stage: step.state for step in cycle_stages(cycle)}
    assert (states[Stage.TRAINING], states[Stage.COMPARING]) == ("ready", "next")
    confirm_stage(cycle=cycle, by=researcher)
    cycle.refresh_from_db()
    assert (cycle.stage, cycle.awaits_confirmation) == (Stage.COMPARING, False)


def test_what_fails_stops_it_with_the_reason(served, researcher) -> None:
    cycle = at(start_cycle(endpoint=served, by=researcher, automatic=True), Stage.TRAINING)
    TrainingRun.objects.filter(pk=cycle.training_run_id).update(state=JobState.FAILED, error="no room")
    advance_cycles()
    cycle.refresh_from_db()
    assert (cycle.stage, cycle.reason) == (Stage.STOPPED, "The training run failed: no room")


def test_one_at_a_time_and_stopped_by_hand(served, researcher) -> None:
    cycle = at(start_cycle(endpoint=served, by=researcher, automatic=True), Stage.TRYING)
    with pytest.raises(Conflict, match="in progress"):
        start_cycle(endpoint=served, by=researcher)
    advance_cycles()
    stop_cycle(cycle=cycle, by=researcher, reason="enough")
    cycle.refresh_from_db()
    assert cycle.release is not None
    assert (cycle.stage, cycle.release.stage, cycle.release.reason) == (Stage.STOPPED, "withdrawn", "enough")
    with pytest.raises(Conflict, match="has ended"):
        stop_cycle(cycle=cycle, by=researcher, reason="again")
    assert start_cycle(endpoint=served, by=researcher).pk != cycle.pk


def test_somebody_else_deployed_meanwhile(served, researcher, project) -> None:
    cycle = at(start_cycle(endpoint=served, by=researcher, automatic=True), Stage.TRYING)
    deploy(model=model_row(project, 3), endpoint_name="reward", project=project, by=None)
    advance_cycles()
    cycle.refresh_from_db()
    assert cycle.stage == Stage.STOPPED
    assert "no longer serves" in cycle.reason


def test_nothing_to_better(project, researcher) -> None:
    empty = Endpoint.objects.create(project=project, name="empty")
    with pytest.raises(DomainError, match="train and deploy a model first"):
        start_cycle(endpoint=empty, by=researcher)


def test_an_error_of_one_does_not_hold_up_the_others(served, researcher, monkeypatch) -> None:
    cycle = at(start_cycle(endpoint=served, by=researcher, automatic=True), Stage.TRAINING)

    def broken(cycle: RetrainingCycle) -> bool:
        raise ValueError("a mistake")

    monkeypatch.setitem(cycle_module._STAGE_CHECKS, Stage.TRAINING, broken)
    advance_cycles()
    cycle.refresh_from_db()
    assert cycle.is_open


def test_the_page(served, researcher) -> None:
    client = Client()
    client.force_login(researcher)

    def path(name: str) -> str:
        return reverse(f"retraining:cycle-{name}", args=[served.project.slug, "reward"])

    Endpoint.objects.update(sample_share=0.5)
    assert "Start retraining" in client.get(path("detail")).content.decode()
    monitor_page = client.get(reverse("monitoring:monitor-detail", args=[served.project.slug, "reward"]))
    assert f'hx-get="{path("detail")}"' in monitor_page.content.decode()
    said = client.post(path("start"), {"count": "5"}, follow=True).content.decode()
    assert "nothing to compare the samples with" in said and not RetrainingCycle.objects.exists()
    client.post(path("start"), {"count": "0", "heads_only": "on", "retrain_after": "70"}, follow=True)
    cycle = RetrainingCycle.objects.get()
    assert (cycle.stage, cycle.heads_only, cycle.staged_release, cycle.automatic) == (
        Stage.FREEZING,
        True,
        False,
        False,
    )
    page = client.get(path("detail")).content.decode()
    assert "every 3s" in page and "Dataset freeze" in page and "items annotated" not in page
    client.post(path("continue"), {"stop": "1"})
    page = client.get(path("detail")).content.decode()
    assert "every 3s" not in page and "stopped" in page
    assert 'value="70"' in page  # what was chosen stands in the form, or the next cycle would undo it
    assert "No retraining cycle of reward" in client.post(path("continue"), follow=True).content.decode()
    cycle.refresh_from_db()
    assert cycle.ended_at is not None and cycle.ended_at > timezone.now() - timedelta(minutes=1)
