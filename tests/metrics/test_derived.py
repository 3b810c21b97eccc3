"""What is made of inductions for training, in a dataset version only where it is asked for."""

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from apps.accounts.models import User
from apps.annotation.models import Annotator
from apps.core.errors import DomainError
from apps.datasets.erasure import erase_judgements
from apps.datasets.models import DatasetVersion
from apps.datasets.selectors import data_folder
from apps.metrics import services
from apps.metrics.models import Aspect, Induction, MetricVerdict
from tests.datasets.feedback import freeze
from workers.schema import FeedbackRecord, ScoreRecord, StepLabelRecord, read_records

pytestmark = pytest.mark.django_db(transaction=True)
SPLITS = ("train", "validation", "test")


def records(dataset_version: DatasetVersion, split: str) -> list[FeedbackRecord]:
    folder: Path = data_folder(dataset_version)
    return list(read_records(folder / f"{split}.jsonl.zst"))


@pytest.fixture
def accepted(induced: Induction, owner: User) -> Induction:
    services.edit_metric(metric=induced.metrics.get(position=0), name="Looks up", definition="", by=owner)
    services.accept_metric(metric=induced.metrics.get(position=0), by=owner)
    return induced


def test_nothing_is_derived_unless_it_is_asked_for(accepted: Induction) -> None:
    dataset_version = freeze(accepted.project)
    assert dataset_version.records == {"comment": 24}
    assert "derived" not in dataset_version.filters


def test_verdicts_become_scores_by_a_judge(accepted: Induction) -> None:
    dataset_version = freeze(accepted.project, derived=["metric_scores"], test_tasks=["desk-0"])
    found = [
        record
        for split in SPLITS
        for record in records(dataset_version, split)
        if isinstance(record, ScoreRecord)
    ]
    assert (
        len(found)
        == dataset_version.records["rubric"]
        == MetricVerdict.objects.filter(metric__position=0).exclude(sign=0).count()
    )
    assert {(finding.annotator, finding.origin, finding.criterion, finding.scale) for finding in found} == {
        ("induced metrics", "judge", "Looks up", (1.0, 5.0))
    }
    assert {finding.value for finding in found} == {2.0, 4.0}, "values of -0.5 and 0.5, on a scale of 1 to 5"
    assert all(finding.definition and "In people's words" not in finding.definition for finding in found)
    assert any(isinstance(record, ScoreRecord) for record in records(dataset_version, "test"))
    assert dataset_version.annotators["induced metrics"]["origins"] == ["judge"]
    assert dataset_version.filters["derived"] == ["metric_scores"]


def test_points_of_comments_become_weak_labels_that_no_model_is_measured_on(accepted: Induction) -> None:
    Aspect.objects.filter(number=1).update(chance=0.75)
    Aspect.objects.filter(number=2).update(chance=0.25)
    dataset_version = freeze(accepted.project, derived=["comment_steps"], test_tasks=["desk-0", "desk-1"])
    assert not any(isinstance(record, StepLabelRecord) for record in records(dataset_version, "test"))
    found = [
        record
        for split in SPLITS
        for record in records(dataset_version, split)
        if isinstance(record, StepLabelRecord)
    ]
    assert dataset_version.records["step"] == len(found) == 16
    assert {finding.origin for finding in found} == {"judge"} and {
        finding.annotator for finding in found
    } == {"ann"}
    for finding in found:
        (step,) = finding.labels
        aspect = Aspect.objects.filter(
            trajectory=int(finding.trajectory.id or 0), step=finding.trajectory.agent_steps[step]
        )
        assert set(finding.labels.values()) <= {
            "good" if sign > 0 else "bad" for sign in aspect.values_list("sign", flat=True)
        }
    everything = freeze(accepted.project, name="all", derived=["comment_steps"], test_tasks=["desk-5"])
    weights = sorted(
        record.weight
        for split in SPLITS
        for record in records(everything, split)
        if isinstance(record, StepLabelRecord)
    )
    assert weights[:2] == [0.25, 0.75] and len(weights) == 20


def test_a_label_leaves_with_whose_words_it_was_made_of(accepted: Induction, owner: User) -> None:
    dataset_version = freeze(accepted.project, derived=["comment_steps"])
    erase_judgements(annotator=Annotator.objects.get(project=accepted.project, name="ann"), by=owner)
    dataset_version.refresh_from_db()
    assert dataset_version.withdrawn_at is not None


def test_what_there_is_nothing_of_is_said(induced: Induction) -> None:
    with pytest.raises(DomainError, match="No metric has been accepted"):
        freeze(induced.project, derived=["metric_scores"])
    with pytest.raises(DomainError, match="There is no derived label 'dreams'"):
        freeze(induced.project, name="other", derived=["dreams"])


def test_by_the_command_the_page_and_the_api(owner_client: Client, accepted: Induction) -> None:
    slug = accepted.project.slug
    call_command(
        "freeze_dataset", slug, "by-command", "--derived", "metric_scores", "--derived", "comment_steps"
    )
    assert DatasetVersion.objects.get(name="by-command").records.keys() == {"comment", "rubric", "step"}
    page = owner_client.get(f"/p/{slug}/datasets/new/").content.decode()
    assert 'value="comment_steps"' in page
    made = owner_client.post(
        f"/p/{slug}/datasets/new/", {"name": "by-page", "seed": "0", "derived": ["comment_steps"]}
    )
    assert made.status_code == 302
    assert DatasetVersion.objects.get(name="by-page").filters["derived"] == ["comment_steps"]
    with pytest.raises(CommandError):
        call_command("freeze_dataset", slug, "other", "--derived", "dreams")
