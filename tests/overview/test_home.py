"""The home of a project: its checklist, what needs attention, its jobs, its activity."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apps.accounts.models import Project, Role, User
from apps.accounts.services import record_audit, set_member
from apps.annotation import services
from apps.annotation.models import Assignment, Campaign
from apps.core.jobs.job_queue import JobState
from apps.datasets.models import DatasetVersion
from apps.monitoring.models import Alert
from apps.overview.activity import _LISTS, _event_address, recent_activity
from apps.overview.attention import agreement_notes, attention_notes, better_models
from apps.overview.checklist import checklist_steps
from apps.overview.project_jobs import JOB_KINDS, failed_jobs, running_jobs
from apps.rewards.models import Endpoint, EndpointRevision, ScoreRollup
from apps.training.models import RewardModel, TrainingRun
from apps.trajectories.models import Import
from tests.annotation import rows
from tests.api_calls import ApiCaller
from tests.factories import make_member, member_client

HOME = "/p/desk/"


@pytest.fixture
def campaign(project: Project) -> Campaign:
    return services.create_campaign(project=project, name="Which is better", feedback_types=["pairwise"])


def frozen(project: Project) -> DatasetVersion:
    return DatasetVersion.objects.create(
        project=project, name="first", version=1, state=JobState.SUCCEEDED, artifact="none"
    )


def trained(
    dataset_version: DatasetVersion, version: int, accuracy: float, interval: list[float], tasks: int = 40
) -> RewardModel:
    preference = {"accuracy": accuracy, "interval": interval, "n": 120, "tasks": tasks, "baselines": {}}
    run = TrainingRun.objects.create(
        project=dataset_version.project,
        dataset_version=dataset_version,
        recipe_name="linear",
        recipe={},
        model_name="first",
        state=JobState.SUCCEEDED,
        report={"preference": preference},
    )
    return RewardModel.objects.create(
        project=dataset_version.project,
        name="first",
        version=version,
        artifact="models/none",
        manifest={},
        training_run=run,
    )


def serve(model: RewardModel, name: str = "reward") -> Endpoint:
    endpoint = Endpoint.objects.create(project=model.project, name=name)
    revision = EndpointRevision.objects.create(endpoint=endpoint, number=1, spec={})
    revision.uses.create(model=model)
    endpoint.active = revision
    endpoint.save()
    return endpoint


def texts(project: Project) -> list[str]:
    return [note.text for note in attention_notes(project)]


def test_the_checklist_follows_the_database_up_to_a_scored_request(project: Project, annotator: User) -> None:
    def done() -> list[bool]:
        return [step.is_done for step in checklist_steps(project)]

    assert done() == [False] * 7
    campaign = services.create_campaign(project=project, name="First", feedback_types=["pairwise"])
    for name in ("a", "b", "c"):
        rows.pair(campaign, name)
    assert done() == [True, True, *[False] * 5]
    for count in range(3):
        assert done()[2] is False, count
        rows.submit(rows.leased(campaign, annotator), annotator)
    assert done()[2] is True
    dataset_version = frozen(project)
    model = trained(dataset_version, 1, 0.7, [0.6, 0.8])
    assert done() == [*[True] * 5, False, False]
    step = checklist_steps(project)[5]
    assert step.is_next
    assert step.url == "/p/desk/endpoints/deploy/?model=desk/first@1&endpoint=first"
    endpoint = serve(model)
    step = checklist_steps(project)[6]
    assert (step.is_done, step.url) == (False, "/p/desk/endpoints/reward/")
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    ScoreRollup.objects.create(
        endpoint=endpoint, hour=hour, version=1, caller="page", items=1, latency=[], rewards=[]
    )
    assert done() == [True] * 7


def test_the_checklist_is_dismissed_by_one_person_and_comes_back(
    project: Project, researcher: User, researcher_client: Client
) -> None:
    other = member_client(project, "owner")
    title = "From your data to the first reward"
    assert title in researcher_client.get(HOME).content.decode()
    assert researcher_client.post(f"{HOME}checklist/")["Location"] == HOME
    assert title not in researcher_client.get(HOME).content.decode()
    assert title in other.get(HOME).content.decode()
    researcher_client.post(f"{HOME}checklist/", {"again": "1"})
    assert title in researcher_client.get(HOME).content.decode()
    assert researcher_client.get(f"{HOME}checklist/").status_code == 405


def test_items_that_wait_are_counted_by_annotation(
    project: Project, campaign: Campaign, annotator: User
) -> None:
    for name in ("a", "b", "c"):
        rows.pair(campaign, name)
    campaign.items.update(overlap=2)
    rows.submit(rows.leased(campaign, annotator), annotator)
    assert texts(project) == ["5 annotations needed in “Which is better”."]
    campaign.deadline = timezone.now() - timedelta(hours=1)
    campaign.save()
    assert texts(project) == ["5 annotations needed in “Which is better”. The deadline has passed."]
    Campaign.objects.update(state=Campaign.State.CLOSED)
    assert texts(project) == []


def test_flagged_items_alerts_and_an_endpoint_that_is_off_need_attention(
    project: Project, campaign: Campaign, annotator: User
) -> None:
    rows.pair(campaign, "a")
    rows.pair(campaign, "b")
    assignment = rows.leased(campaign, annotator)
    Assignment.objects.filter(pk=assignment.pk).update(state=Assignment.State.FLAGGED)
    endpoint = Endpoint.objects.create(
        project=project, name="reward", switched_off=True, switched_off_reason="Rewards are all equal."
    )
    numbers = dict.fromkeys(("value", "baseline", "limit", "margin", "count"), 1)
    for rule in ("a", "b"):
        Alert.objects.create(endpoint=endpoint, version=1, rule=rule, measure="uncertain", **numbers)
    found = texts(project)
    assert found[0] == "2 open alerts on the endpoint reward."
    assert found[1] == "The endpoint reward is switched off: Rewards are all equal."
    assert "1 flagged item in “Which is better”." in found
    Alert.objects.update(closed_at=timezone.now())
    assert not any("alert" in text for text in texts(project))


def test_a_better_model_than_the_served_one_is_named_with_its_difference(project: Project) -> None:
    dataset_version = frozen(project)
    served = trained(dataset_version, 1, 0.60, [0.52, 0.68])
    serve(served)
    assert better_models(project) == []
    trained(dataset_version, 2, 0.55, [0.47, 0.63])  # worse
    assert better_models(project) == []
    trained(dataset_version, 3, 0.80, [0.73, 0.87])
    [note] = better_models(project)
    # 0.2 minus and plus the root of 0.07² + 0.08²
    assert note.text == (
        "first@3 is better than first@1, which reward serves, by 20.0 points [9.4, 30.6] "
        "(held-out comparisons, n = 120)."
    )
    assert note.url == "/p/desk/endpoints/deploy/?model=desk/first@3&endpoint=reward"


def test_a_difference_that_may_be_chance_is_called_so_and_few_tasks_show_nothing(project: Project) -> None:
    dataset_version = frozen(project)
    serve(trained(dataset_version, 1, 0.60, [0.52, 0.68]))
    trained(dataset_version, 2, 0.90, [0.8, 1.0], tasks=4)
    assert better_models(project) == []
    trained(dataset_version, 3, 0.62, [0.54, 0.70])
    [note] = better_models(project)
    assert note.text.endswith(
        "by 2.0 points [−9.3, 13.3] (held-out comparisons, n = 120); the difference may be chance."
    )


def test_models_of_other_data_are_not_compared(project: Project) -> None:
    serve(trained(frozen(project), 1, 0.60, [0.52, 0.68]))
    second = DatasetVersion.objects.create(
        project=project, name="first", version=2, state=JobState.SUCCEEDED, artifact="none"
    )
    trained(second, 2, 0.90, [0.8, 1.0])
    assert better_models(project) == []


def test_low_agreement_is_named_with_its_interval(project: Project, campaign: Campaign) -> None:
    people = [make_member(project, f"{name}@example.org", "annotator") for name in ("one", "two")]
    for number in range(20):
        rows.pair(campaign, str(number))
    campaign.items.update(overlap=2)
    for place, person in enumerate(people):
        for number in range(20):
            choice = "a" if (number + place) % 2 else "b"
            rows.submit(rows.leased(campaign, person), person, choice)
    disputes, note = agreement_notes(project)
    assert disputes.text == "20 disputed items to adjudicate in “Which is better”."
    assert disputes.url == f"/p/desk/campaigns/{campaign.pk}/judged/?disputed=1"
    assert note.text.startswith("Agreement is low in “Which is better”: alpha")
    assert "on 20 items (pairwise)" in note.text
    assert note.url == f"/p/desk/campaigns/{campaign.pk}/quality/"


def test_low_agreement_on_one_criterion_of_imported_scores_is_named(project: Project) -> None:
    call = ApiCaller(project)
    for number in range(20):
        trajectory = {"messages": [{"role": "user", "content": f"Do {number}."}]}
        trajectory["messages"].append({"role": "assistant", "content": f"Done {number}."})
        for name, place in (("ann", 0), ("ben", 1)):
            for criterion, value in (("clear", 1 + number % 5), ("kind", 1 + 4 * ((number + place) % 2))):
                call(
                    "POST",
                    "/feedback",
                    {
                        "task": {"id": f"task-{number}"},
                        "trajectory": trajectory,
                        "criterion": criterion,
                        "value": value,
                        "scale": [1, 5],
                        "annotator": name,
                    },
                )
    found = [note.text for note in agreement_notes(project)]
    assert any(text.startswith("Agreement is low") and "(kind)" in text for text in found)
    assert not any("(clear)" in text for text in found)


def test_an_endpoint_without_samples_is_not_monitored(project: Project) -> None:
    served = trained(frozen(project), 1, 0.60, [0.52, 0.68])
    serve(served)
    note = "The endpoint reward is not monitored, as it keeps no samples."
    assert note in texts(project)
    Endpoint.objects.update(sample_share=0.1)
    assert note not in texts(project)


def test_jobs_that_run_are_shown_with_progress_and_failed_ones_until_a_later_one_succeeds(
    project: Project, researcher: User, researcher_client: Client
) -> None:
    made = {"project": project, "uploaded_by": researcher, "file": "none", "format": "openai"}
    progress = {"done": 30, "total": 120, "note": "line 30"}
    Import.objects.create(filename="runs.jsonl", state=JobState.RUNNING, progress=progress, **made)
    [job] = running_jobs(project)
    assert (job.title, job.percent, job.by) == ("Import of runs.jsonl", 25, str(researcher))
    page = researcher_client.get(f"{HOME}running-jobs/").content.decode()
    assert "every 3s" in page
    assert "25 %" in page
    now = timezone.now()
    Import.objects.update(state=JobState.FAILED, finished_at=now, error="Line 31 is not JSON.")
    assert "every 3s" not in researcher_client.get(f"{HOME}running-jobs/").content.decode()
    assert texts(project) == ["Import of runs.jsonl failed: Line 31 is not JSON."]
    later = now + timedelta(seconds=1)
    Import.objects.create(filename="again.jsonl", state=JobState.SUCCEEDED, finished_at=later, **made)
    assert failed_jobs(project) == []


def test_every_kind_of_job_has_a_row_in_the_table(project: Project) -> None:
    """A path or a relation that does not exist would fail here."""
    for kind in JOB_KINDS:
        assert list(kind.rows(project)) == []


def test_activity_is_what_people_and_jobs_did(
    project: Project, researcher: User, annotator: User, researcher_client: Client
) -> None:
    campaign = services.create_campaign(
        project=project, name="First", feedback_types=["pairwise"], by=researcher
    )
    rows.pair(campaign, "a")
    rows.submit(rows.leased(campaign, annotator), annotator)
    new = make_member(project, "new@example.org", "annotator")
    set_member(project=project, user=new, role=Role.REVIEWER, by=researcher)
    version = frozen(project)
    DatasetVersion.objects.filter(pk=version.pk).update(finished_at=timezone.now())
    found = [(line.who, line.text) for line in recent_activity(project)]
    assert found[0] == ("", "Dataset version first@1 finished")
    assert ("rose@example.org", "changed the role of new@example.org") in found
    assert (str(researcher), "created the campaign First") in found
    assert any(text == "made 1 annotation in First" for _, text in found)
    page = researcher_client.get(f"{HOME}activity/").content.decode()
    assert "<h1>Activity</h1>" in page
    part = researcher_client.get(f"{HOME}activity/", headers={"HX-Request": "true"}).content.decode()
    assert "<h1>" not in part
    assert "made 1 annotation in First" in part


def test_activity_names_people_and_counts_what_is_alike(project: Project, researcher: User) -> None:
    User.objects.filter(pk=researcher.pk).update(name="Rose")
    for verb in ["dataset.exported"] * 4 + ["run.started", "trajectories.tagged"]:
        target = "run 7 of quick" if verb == "run.started" else "first@1"
        record_audit(project=project, actor=researcher, verb=verb, target=target)
    found = {line.text: line for line in recent_activity(project)}
    assert found["exported first@1 (4 times)"].who == "Rose" and "exported first@1" not in found
    assert found["exported first@1 (4 times)"].url == "/p/desk/datasets/"
    assert found["started the training run 7 of quick"].url == "/p/desk/training/runs/7/"


@pytest.mark.parametrize("place", sorted(_LISTS))
def test_every_family_of_events_has_its_page(project: Project, place: str) -> None:
    assert _event_address(project, f"{place}.made", "x").startswith("/p/desk/")


@pytest.mark.parametrize("path", ["", "running-jobs/", "agreement/", "activity/"])
def test_the_number_of_queries_does_not_grow_with_the_rows(
    project: Project,
    campaign: Campaign,
    researcher_client: Client,
    path: str,
    django_assert_max_num_queries: Any,
) -> None:
    for number in range(12):
        rows.pair(campaign, str(number))
        services.create_campaign(project=project, name=f"Campaign {number}", feedback_types=["rating"])
        Import.objects.create(project=project, filename=f"{number}", file="none", format="openai")
    with django_assert_max_num_queries(50):
        assert researcher_client.get(HOME + path).status_code == 200


def test_annotators_see_their_work_and_nothing_of_this(project: Project, campaign: Campaign) -> None:
    page = member_client(project, "annotator").get(HOME).content.decode()
    assert "Which is better" in page
    assert "Needs attention" not in page
    assert "From your data" not in page
