"""Names and words that an erasure takes out of what was made from feedback."""

from typing import Any

import pytest

from apps.accounts.models import Project, User
from apps.annotation.models import Annotator
from apps.datasets.erased_words import with_other_names
from apps.datasets.erasure import dataset_versions_with_annotator
from apps.datasets.models import DatasetVersion

REPORT: dict[str, Any] = {
    "test": {"n": 4, "accuracy": 0.5},
    "annotators": {"n": 3, "model": 0.8},
    "train": {"reliabilities": {"n": 0.9, "ann": 0.8}, "adversaries": ["n"]},
    "mistakes": [{"annotator": "n", "said": "n"}],
}


def test_names_are_replaced_where_annotators_are_named_only() -> None:
    """An annotator may be called like a key of a report or like a campaign."""
    under = ("annotator", "reliabilities", "adversaries")
    assert with_other_names(REPORT, {"n": "annotator-7"}, under=under) == REPORT | {
        "train": {"reliabilities": {"annotator-7": 0.9, "ann": 0.8}, "adversaries": ["annotator-7"]},
        "mistakes": [{"annotator": "annotator-7", "said": "n"}],
    }
    filters = {"campaigns": ["hh"], "annotators": ["hh", "ann"]}
    assert with_other_names(filters, {"hh": "annotator-7"}) == {
        "campaigns": ["hh"],
        "annotators": ["annotator-7", "ann"],
    }


@pytest.mark.django_db
def test_datasets_with_labels_of_comments_are_withdrawn_where_the_comments_are_erased(
    judged: Project, researcher: User
) -> None:
    from apps.annotation.models import Annotation, Comment

    annotation = Annotation.objects.select_related("assignment__annotator").first()
    assert annotation is not None
    annotator: Annotator = annotation.assignment.annotator
    run = annotation.assignment.item.trajectories.first()
    Comment.objects.create(annotation=annotation, trajectory=run, text="It was rude.")
    derived = DatasetVersion.objects.create(
        project=judged, name="derived", version=1, state="succeeded", filters={"derived": ["metrics"]}
    )
    assert dataset_versions_with_annotator(annotator) == [derived]
    assert dataset_versions_with_annotator(annotator, with_words=False) == []
