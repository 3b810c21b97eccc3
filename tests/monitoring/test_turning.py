"""Once around: people judge, it is frozen, trained on, compared, tried, promoted; or it stops, and says why."""

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
from apps.datasets.freezing import build_dataset_version
from apps.datasets.models import DatasetVersion
from apps.monitoring import turning
from apps.monitoring.comparing import execute as compare
from apps.monitoring.models import Comparing, Turn
from apps.monitoring.shown import seconds_to_served, steps_of, times_of
from apps.monitoring.turning import advance, advance_turns, begin_turn, go_on, is_better, stop_turn
from apps.rewards.models import Endpoint, Release, ScoreSample
from apps.rewards.services import deploy, promote_release, roll_back_release
from apps.training import runner
from apps.training.models import RewardModel, TrainingRun
from apps.training.services import start_run
from apps.trajectories.selectors import load_trajectories
from tests.annotation.rows import submit
from tests.datasets.feedback import freeze, import_pairs, pair
from tests.factories import make_member

Stage = Turn.Stage


@pytest.fixture(autouse=True)
def home(own_home: None) -> None:
    """Run directories and models are named after rows, whose numbers come again."""


def work() -> None:
    """What workers would do, until nothing is left to do."""
    for model, execute in (
        (DatasetVersion, build_dataset_version),
        (TrainingRun, runner.execute),
        (Comparing, compare),
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
def test_from_people_to_what_answers(project, endpoint, researcher) -> None:
    """Automatically, and all of it real: comparisons in the queue, a dataset version, a training of the heads, two
    comparisons of models, and the new one in the old one's place."""
    sampled(endpoint)
    first = endpoint.active
    turn = begin_turn(endpoint=endpoint, by=researcher, asks=3, tries=False, automatic=True)
    campaign = turn.follow_up.campaign
    assert turn.stage == Stage.ASKING and len(turn.follow_up.items) == 3
    advance_turns()
    turn.refresh_from_db()
    assert turn.stage == Stage.ASKING  # nobody has judged
    annotator = make_member(project, "ann-turns@example.org", Role.ANNOTATOR)
    judged(project, campaign, annotator)
    for _ in range(12):
        advance_turns()
        work()
    turn.refresh_from_db()
    assert turn.stage == Stage.DONE, turn.reason
    assert turn.run.recipe["heads_only"] is True and turn.run.parent == turn.against
    assert turn.dataset_version.version == 2 and turn.dataset_version.name == "first"
    assert {one["snapshot"] for one in turn.comparing.result} == {
        turn.dataset_version_id,
        turn.against.training_run.dataset_version_id,
    }
    assert turn.reason.startswith("Its accuracy differs by +")
    endpoint.refresh_from_db()
    assert endpoint.active.number == first.number + 1
    assert endpoint.active.spec["components"][0]["model"] == str(turn.run.model)
    seconds = seconds_to_served(turn)
    assert seconds is not None and 0 < seconds < 600
    assert [(step.stage, step.state) for step in steps_of(turn)] == [
        (stage, "done") for stage in ("asking", "freezing", "training", "comparing", "trying", "done")
    ]
    (timed,) = times_of([turn])
    assert timed.seconds == seconds and 0 < timed.work < seconds
    assert [span.label for span in timed.spans] == [
        "Feedback is frozen",
        "A model is trained",
        "It is compared",
        "It is on trial",
    ]
    assert timed.spans[0].begin == "0.00%"
    widths = [float(span.width.removesuffix("%")) for span in timed.spans]
    assert sum(widths) == pytest.approx(100, abs=0.1)
    client = Client()
    client.force_login(researcher)
    text = client.get(reverse("monitoring:turn-times", args=[project.slug])).content.decode()
    assert f"{seconds:.0f} s" in text and "turning" not in text
    verbs = AuditEvent.objects.filter(verb__startswith="turn.").order_by("pk").values_list("verb", flat=True)
    assert list(verbs) == ["turn.begun", "turn.done"]


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


def at(turn: Turn, stage: str) -> Turn:
    """The turn with a dataset version and a run that have succeeded, at a stage."""
    project = turn.endpoint.project
    turn.dataset_version = DatasetVersion.objects.create(
        project=project, name="d", version=2, state=JobState.SUCCEEDED, splits={"test": 9}
    )
    turn.run = TrainingRun.objects.create(
        project=project,
        dataset_version=turn.dataset_version,
        recipe_name="own",
        recipe={},
        model_name="m",
        state=JobState.SUCCEEDED,
    )
    model_row(project, 2, turn.run)
    turn.stage, turn.entered = stage, {stage: timezone.now().isoformat()}
    turn.save()
    return turn


def compared(turn: Turn, *results: tuple[DatasetVersion, dict[str, Any]]) -> None:
    advance(turn)
    said = [result | {"snapshot": dataset_version.pk, "n": 40} for dataset_version, result in results]
    assert set(turn.comparing.dataset_versions.all()) == {dataset_version for dataset_version, _ in results}
    Comparing.objects.filter(turn=turn).update(state=JobState.SUCCEEDED, result=said)


BETTER = {"difference": 0.05, "interval": [-0.01, 0.11]}
SAME = {"difference": 0.0, "interval": [-0.04, 0.04]}
WORSE = {"difference": -0.2, "interval": [-0.3, -0.1]}


@pytest.mark.parametrize(
    ("new", "old", "better", "said"),
    [
        (BETTER, SAME, True, "differs by +5.0 points on the test split of desk/d@2"),
        (SAME, SAME, True, "differs by +0.0 points"),
        (WORSE, SAME, False, "differs by -20.0 points on the test split of desk/d@2"),
        (BETTER, WORSE, False, "worse for sure than the 5 that are allowed"),
        ({"difference": None, "interval": None}, SAME, False, "nothing to compare it by"),
    ],
)
def test_what_is_better(served, researcher, new, old, better, said) -> None:
    turn = at(begin_turn(endpoint=served, by=researcher, automatic=True), Stage.COMPARING)
    assert turn.dataset_version is not None
    first = turn.against.training_run.dataset_version  # type: ignore[union-attr]
    compared(turn, (turn.dataset_version, new), (first, old))
    found = is_better(Comparing.objects.get(turn=turn).result, newest=turn.dataset_version)
    assert found[0] is better and said in found[1].replace(served.project.slug, "desk")
    advance_turns()
    turn.refresh_from_db()
    assert turn.stage == (Stage.TRYING if better else Stage.STOPPED)
    assert better or (said in turn.reason.replace(served.project.slug, "desk") and turn.ended_at is not None)


def test_its_release_decides(served, researcher) -> None:
    turn = at(begin_turn(endpoint=served, by=researcher, automatic=True), Stage.TRYING)
    advance_turns()
    turn.refresh_from_db()
    trial = turn.trial
    assert trial is not None and trial.stage == Release.Stage.SHADOW and trial.automatic
    advance_turns()
    turn.refresh_from_db()
    assert turn.stage == Stage.TRYING
    promote_release(release=trial, by=None, reason="It held.")
    advance_turns()
    turn.refresh_from_db()
    assert (turn.stage, turn.reason) == (Stage.DONE, "It held.")


def test_one_that_is_withdrawn_stops_it(served, researcher) -> None:
    turn = at(begin_turn(endpoint=served, by=researcher, automatic=True), Stage.TRYING)
    advance_turns()
    turn.refresh_from_db()
    roll_back_release(release=turn.trial, by=None, reason="It likes length.")
    advance_turns()
    turn.refresh_from_db()
    assert (turn.stage, turn.reason) == (Stage.STOPPED, "Its release was rolled back: It likes length.")
    served.refresh_from_db()
    assert served.active is not None and served.active.number == 1


def test_people_confirm_each_step_where_they_said_so(served, researcher) -> None:
    turn = at(begin_turn(endpoint=served, by=researcher), Stage.TRAINING)
    with pytest.raises(Conflict, match="nothing to confirm"):
        go_on(turn=turn, by=researcher)
    advance_turns()
    turn.refresh_from_db()
    assert (turn.stage, turn.is_ready) == (Stage.TRAINING, True)
    advance_turns()
    turn.refresh_from_db()
    assert turn.stage == Stage.TRAINING
    states = {step.stage: step.state for step in steps_of(turn)}
    assert (states[Stage.TRAINING], states[Stage.COMPARING]) == ("ready", "next")
    go_on(turn=turn, by=researcher)
    turn.refresh_from_db()
    assert (turn.stage, turn.is_ready) == (Stage.COMPARING, False)


def test_what_fails_stops_it_with_the_reason(served, researcher) -> None:
    turn = at(begin_turn(endpoint=served, by=researcher, automatic=True), Stage.TRAINING)
    TrainingRun.objects.filter(pk=turn.run_id).update(state=JobState.FAILED, error="no room")
    advance_turns()
    turn.refresh_from_db()
    assert (turn.stage, turn.reason) == (Stage.STOPPED, "The training failed: no room")


def test_one_at_a_time_and_stopped_by_hand(served, researcher) -> None:
    turn = at(begin_turn(endpoint=served, by=researcher, automatic=True), Stage.TRYING)
    with pytest.raises(Conflict, match="on its way"):
        begin_turn(endpoint=served, by=researcher)
    advance_turns()
    stop_turn(turn=turn, by=researcher, reason="enough")
    turn.refresh_from_db()
    assert turn.trial is not None
    assert (turn.stage, turn.trial.stage, turn.trial.reason) == (Stage.STOPPED, "withdrawn", "enough")
    with pytest.raises(Conflict, match="has ended"):
        stop_turn(turn=turn, by=researcher, reason="again")
    assert begin_turn(endpoint=served, by=researcher).pk != turn.pk


def test_somebody_else_deployed_meanwhile(served, researcher, project) -> None:
    turn = at(begin_turn(endpoint=served, by=researcher, automatic=True), Stage.TRYING)
    deploy(model=model_row(project, 3), endpoint_name="reward", project=project, by=None)
    advance_turns()
    turn.refresh_from_db()
    assert turn.stage == Stage.STOPPED
    assert "no longer serves" in turn.reason


def test_nothing_to_better(project, researcher) -> None:
    empty = Endpoint.objects.create(project=project, name="empty")
    with pytest.raises(DomainError, match="train and deploy a model first"):
        begin_turn(endpoint=empty, by=researcher)


def test_an_error_of_one_does_not_hold_up_the_others(served, researcher, monkeypatch) -> None:
    turn = at(begin_turn(endpoint=served, by=researcher, automatic=True), Stage.TRAINING)

    def broken(turn: Turn) -> bool:
        raise ValueError("a mistake")

    monkeypatch.setitem(turning._STEPS, Stage.TRAINING, broken)
    advance_turns()
    turn.refresh_from_db()
    assert turn.is_open


def test_the_page(served, researcher) -> None:
    client = Client()
    client.force_login(researcher)

    def path(name: str) -> str:
        return reverse(f"monitoring:{name}", args=[served.project.slug, "reward"])

    Endpoint.objects.update(sample_share=0.5)
    assert "Turn it once" in client.get(path("monitor-detail")).content.decode()
    said = client.post(path("turn-begin"), {"count": "5"}, follow=True).content.decode()
    assert "nothing to compare it with" in said and not Turn.objects.exists()
    client.post(path("turn-begin"), {"count": "0", "heads_only": "on", "online_every": "70"}, follow=True)
    turn = Turn.objects.get()
    assert (turn.stage, turn.heads_only, turn.tries, turn.automatic) == (Stage.FREEZING, True, False, False)
    page = client.get(path("turn-state")).content.decode()
    assert "every 3s" in page and "Feedback is frozen" in page and "People judge" not in page
    client.post(path("turn-go-on"), {"stop": "1"})
    page = client.get(path("turn-state")).content.decode()
    assert "every 3s" not in page and "stopped" in page
    assert 'value="70"' in page  # what was chosen stands in the form, or the next turn would undo it
    assert "No turn of reward" in client.post(path("turn-go-on"), follow=True).content.decode()
    turn.refresh_from_db()
    assert turn.ended_at is not None and turn.ended_at > timezone.now() - timedelta(minutes=1)
