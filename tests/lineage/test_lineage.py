"""From a served reward to its feedback and back; what is affected by deletions."""

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import Project, User
from apps.annotation.models import Annotator, Item
from apps.core.errors import DomainError
from apps.core.jobs import job_queue
from apps.core.jobs.job_queue import JobState
from apps.datasets.erasure import erase_judgements
from apps.datasets.models import DatasetVersion
from apps.lineage.models import Tracing
from apps.lineage.record_summary import summarize_record
from apps.lineage.selectors import (
    dataset_versions_with_annotator,
    dataset_versions_with_item,
    read_labels,
    served_models,
)
from apps.lineage.tracing import execute, start_tracing
from apps.rewards.models import ScoreSample
from apps.rewards.services import deploy
from apps.training.models import RewardModel, TrainingRun
from tests.datasets.feedback import freeze, import_pairs, pair
from tests.lineage.served_rewards import scored, train_and_serve


@pytest.fixture(autouse=True)
def home(own_home: None) -> None:
    """Run directories and models are named after rows, whose numbers come again."""


@pytest.fixture
def client(researcher: User) -> Client:
    client = Client()
    client.force_login(researcher)
    return client


@pytest.fixture
def sample(project: Project) -> ScoreSample:
    return train_and_serve(project)


def page(client: Client, name: str, *args: Any, project: Project, **query: str) -> str:
    answer = client.get(reverse(f"lineage:{name}", args=[project.slug, *args]), query)
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


def links(text: str) -> set[str]:
    return set(re.findall(r'href="([^"]+)"', text))


@pytest.mark.slow
def test_from_a_reward_to_its_feedback_and_back(
    project: Project, sample: ScoreSample, client: Client
) -> None:
    (served,) = served_models(sample)
    assert (
        str(served.model).endswith("/desk@1") and served.value == 0.5 and served.dataset_version is not None
    )
    there = reverse("lineage:sample-lineage", args=[project.slug, sample.pk])
    text = page(client, "sample-lineage", sample.pk, project=project)
    assert reverse("training:model-detail", args=[project.slug, served.model.pk]) in links(text)
    assert reverse("lineage:dataset-labels", args=[project.slug, served.dataset_version.pk]) in links(text)
    bea = Annotator.objects.get(name="bea")
    assert reverse("lineage:annotator-lineage", args=[project.slug, bea.pk]) in links(text)

    assert client.post(there, {"model": str(served.model.pk)}).status_code == 302
    assert "computing" in page(client, "sample-lineage", sample.pk, project=project)
    tracing = job_queue.claim_next(Tracing)
    assert tracing is not None
    execute(tracing)
    tracing.refresh_from_db()
    assert tracing.state == JobState.SUCCEEDED, tracing.error
    text = page(client, "sample-labels", sample.pk, project=project)
    assert "A is better" in text and "hx-get" not in text
    moved = {entry["record"]: entry["by"] for entry in tracing.result["moved"]}
    train, more = read_labels(served.dataset_version, split="train", start=0, count=100)
    assert not more and len(train) == served.dataset_version.splits["train"]
    against = [place for place, label in enumerate(train) if label.annotator == "bea"]
    if against:  # this task may be in another split, by its name alone; it is the same every time
        assert moved[against[0]] < 0

    item = Item.objects.filter(pk=train[0].item).get()
    back = page(client, "item-lineage", item.pk, project=project)
    assert there in links(back) and "1 in train" in back
    assert there in links(page(client, "annotator-lineage", bea.pk, project=project))
    only = page(client, "dataset-labels", served.dataset_version.pk, project=project, annotator="nobody")
    assert "No feedback records" in only


def test_deleted_data_is_named_and_not_shown(project: Project, client: Client, researcher: User) -> None:
    import_pairs(project, [pair(f"task-{n}", annotator="ann" if n % 2 else "bea") for n in range(12)])
    dataset_version = freeze(project)
    run = TrainingRun.objects.create(
        project=project, dataset_version=dataset_version, recipe_name="own", recipe={}, model_name="desk"
    )
    manifest = {"aggregation": "value", "heads": {"ensemble": 1}}
    first = RewardModel.objects.create(
        project=project, name="desk", version=1, artifact="models/1", manifest=manifest, training_run=run
    )
    child = RewardModel.objects.create(
        project=project, name="desk", version=2, artifact="models/2", manifest=manifest, parent=first
    )
    endpoint = deploy(model=child, endpoint_name="reward", project=project, by=None).endpoint
    sample = scored(endpoint)
    bea = Annotator.objects.get(name="bea")
    assert [version for version, _ in dataset_versions_with_annotator(bea)] == [dataset_version]
    judged = Item.objects.filter(assignments__annotator=bea).first()
    assert judged is not None and [version for version, _ in dataset_versions_with_item(judged)] == [
        dataset_version
    ]
    assert "No dataset is affected." in page(client, "lineage-list", project=project)

    erase_judgements(annotator=bea, by=researcher)
    text = page(client, "lineage-list", project=project)
    assert "annotations in it were deleted" in text and "bea" not in text
    assert "desk@1" in text and "from the weights of desk@1" in text
    assert reverse("lineage:sample-lineage", args=[project.slug, sample.pk]) in links(text)
    assert "trained on deleted data" in page(client, "model-uses", child.pk, project=project)
    assert dataset_versions_with_item(judged) == []
    with pytest.raises(DomainError, match="withdrawn"):
        start_tracing(sample=sample, model=RewardModel.objects.get(pk=first.pk))
    answer = client.get(reverse("lineage:dataset-labels", args=[project.slug, dataset_version.pk]))
    assert answer.status_code == 409 and "withdrawn" in answer.content.decode()


def test_a_model_trained_elsewhere_has_no_lineage(project: Project, client: Client) -> None:
    manifest = {"aggregation": "value", "heads": {"ensemble": 1}}
    model = RewardModel.objects.create(
        project=project, name="desk", version=1, artifact="models/1", manifest=manifest
    )
    endpoint = deploy(model=model, endpoint_name="reward", project=project, by=None).endpoint
    sample = scored(endpoint)
    text = page(client, "sample-lineage", sample.pk, project=project)
    assert "trained outside this installation" in text and "training data is not available" in text
    there = reverse("lineage:sample-lineage", args=[project.slug, sample.pk])
    answer = client.post(there, {"model": str(model.pk)}, follow=True)
    assert "training data is not available" in answer.content.decode()
    assert client.post(there, {"model": "7777"}).status_code == 404
    assert not Tracing.objects.exists()
    unknown = scored(endpoint, version=9)
    assert "Revision not found" in page(client, "sample-lineage", unknown.pk, project=project)


def test_a_failed_tracing_is_tried_again(project: Project, client: Client) -> None:
    import_pairs(project, [pair(f"task-{n}") for n in range(4)])
    run = TrainingRun.objects.create(
        project=project, dataset_version=freeze(project), recipe_name="own", recipe={}, model_name="desk"
    )
    manifest = {"aggregation": "value", "heads": {"ensemble": 1}}
    model = RewardModel.objects.create(
        project=project, name="desk", version=1, artifact="models/none", manifest=manifest, training_run=run
    )
    sample = scored(deploy(model=model, endpoint_name="reward", project=project, by=None).endpoint)
    start_tracing(sample=sample, model=model)
    again = start_tracing(sample=sample, model=model)
    assert Tracing.objects.count() == 1
    claimed = job_queue.claim_next(Tracing)
    assert claimed == again
    execute(claimed)  # its artifact is not there
    text = page(client, "sample-labels", sample.pk, project=project)
    again.refresh_from_db()
    assert again.state == JobState.FAILED and again.error in text.replace("&#x27;", "'")
    assert "Compute influence" in text
    start_tracing(sample=sample, model=model)
    assert Tracing.objects.get().state == JobState.QUEUED


def test_pages_of_a_long_dataset(project: Project, client: Client) -> None:
    import_pairs(project, [pair(f"task-{n}") for n in range(90)])
    dataset_version = freeze(project)
    assert DatasetVersion.objects.get(pk=dataset_version.pk).splits["train"] > 50
    first = page(client, "dataset-labels", dataset_version.pk, project=project)
    second = page(client, "dataset-labels", dataset_version.pk, project=project, page="2")
    assert first.count("A is better") == 50 and 'rel="next"' in first and 'rel="prev"' not in first
    assert second.count("A is better") == dataset_version.splits["train"] - 50 and 'rel="next"' not in second
    assert "No feedback records" in page(
        client, "dataset-labels", dataset_version.pk, project=project, page="9"
    )
    for odd in ("0", "-1", "x", "²", "9" * 5000):  # the first page
        assert (
            page(client, "dataset-labels", dataset_version.pk, project=project, page=odd).count("A is better")
            == 50
        )


@pytest.mark.parametrize(
    ("record", "summary"),
    [
        ({"kind": "pairwise", "choice": "b", "strength": 3}, "B is better, by far"),
        ({"kind": "pairwise", "choice": "tie", "criterion": "polite"}, "polite: Equally good"),
        ({"kind": "ranking", "ranks": [2, 1, 1]}, "Ranks 2, 1, 1"),
        ({"kind": "step", "labels": {"0": "good", "2": "bad"}}, "Steps: 1 good, 1 bad"),
        (
            {"kind": "step", "has_first_error": True, "first_error": 2},
            "Steps: first error at agent step 2",
        ),
        ({"kind": "step", "has_first_error": True}, "Steps: no error"),
        ({"kind": "rubric", "criterion": "true", "value": 3, "scale": [1, 5]}, "true: 3 (scale 1 to 5)"),
        ({"kind": "comment", "text": "x" * 200}, "“" + "x" * 119 + "…”"),
        ({"kind": "rating", "rating": 4.0, "scale": [1, 5]}, "Rated 4 (scale 1 to 5)"),
        ({"kind": "rating", "accept": False}, "Rejected"),
        ({"kind": "outcome", "success": True, "reward": 0.5}, "Succeeded, reward 0.5"),
    ],
)
def test_record_summaries(record: dict[str, Any], summary: str) -> None:
    assert summarize_record(record) == summary
