"""Pages of datasets: made, shown, exported, and seen by no one else."""

import json

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import Project, User
from apps.core.jobs.job_queue import JobState
from apps.datasets.models import DatasetVersion
from apps.datasets.selectors import near_copies
from apps.datasets.tasks import advance_dataset_versions
from apps.trajectories.models import Trajectory
from tests.datasets.feedback import freeze, import_pairs, pair


def url(name: str, *args: object) -> str:
    return reverse(f"datasets:{name}", args=["desk", *args])


@pytest.mark.django_db(transaction=True)
def test_made_by_a_worker_and_then_shown(judged: Project, researcher_client: Client) -> None:
    answer = researcher_client.post(
        url("dataset-version-create"), {"name": "first", "seed": 0, "test_tasks": "task-1\ntask-2"}
    )
    dataset_version = DatasetVersion.objects.get()
    assert (answer.status_code, answer["Location"]) == (
        302,
        url("dataset-version-detail", dataset_version.pk),
    )
    waiting = researcher_client.get(answer["Location"]).content.decode()
    assert "queued" in waiting
    assert "Train model" not in waiting
    assert "HX-Refresh" not in researcher_client.get(answer["Location"], headers={"HX-Request": "true"})
    advance_dataset_versions()
    assert researcher_client.get(answer["Location"], headers={"HX-Request": "true"})["HX-Refresh"] == "true"
    page = researcher_client.get(answer["Location"]).content.decode()
    assert "Train model" in page
    assert dataset_version.name in page
    dataset_version.refresh_from_db()
    assert dataset_version.content_hash in page
    assert dataset_version.splits["test"] == 2
    assert "first@1" in researcher_client.get(url("dataset-version-list")).content.decode()
    assert "12 usable pairs" in researcher_client.get(url("project-node")).content.decode()
    fragment = researcher_client.get(
        url("dataset-version-detail", dataset_version.pk), headers={"HX-Request": "true"}
    ).content.decode()
    assert "<html" not in fragment
    assert dataset_version.content_hash in fragment


@pytest.mark.django_db(transaction=True)
def test_what_cannot_be_built_says_why(judged: Project, researcher_client: Client) -> None:
    answer = researcher_client.post(
        url("dataset-version-create"), {"name": "first", "seed": 0, "test_tasks": "nowhere"}
    )
    advance_dataset_versions()
    page = researcher_client.get(answer["Location"]).content.decode()
    assert "None of the 1 test tasks is among the 12 tasks with feedback" in page
    assert "Train model" not in page
    assert DatasetVersion.objects.get().state == JobState.FAILED


def test_near_copies_across_the_splits_are_shown_with_both_trajectories(
    project: Project, researcher_client: Client
) -> None:
    said = "I looked at your order and the parcel left our house on Monday so it will be with you soon."
    import_pairs(project, [pair(f"task-{n}") | {"a": {"prompt": "Hi", "response": said}} for n in range(2)])
    other = {
        "prompt": "Hi",
        "response": "Nothing in this answer was said in any other one of these, I believe.",
    }
    import_pairs(project, [pair("task-2") | {"a": other}])
    dataset_version = freeze(project, test_tasks=["task-0", "task-2"])
    assert dataset_version.leaks is not None
    assert (
        dataset_version.leaks["tasks"],
        dataset_version.leaks["near_copies"],
        dataset_version.leaks["of"],
    ) == ([], 1, 4)
    (found,) = near_copies(dataset_version)
    texts = {
        row.pk: row.task.external_id
        for row in Trajectory.objects.filter(pk__in=(found["train"], found["held_out"]))
    }
    assert (texts[found["train"]], texts[found["held_out"]]) == ("task-1", "task-0")
    page = researcher_client.get(url("dataset-version-detail", dataset_version.pk)).content.decode()
    assert "1 of 4 held-out trajectories is a near-copy of a training trajectory" in page
    assert reverse("trajectories:trajectory-detail", args=["desk", found["train"]]) in page


def test_the_reliability_of_an_older_dataset_is_not_shown_as_that_of_strict_choices(
    judged: Project, researcher_client: Client
) -> None:
    dataset_version = freeze(judged)
    address = url("dataset-version-detail", dataset_version.pk)
    old = {"ann": {"records": 12, "reliability": 0.43, "origins": ["imported"]}}
    DatasetVersion.objects.filter(pk=dataset_version.pk).update(annotators=old)
    page = researcher_client.get(address).content.decode()
    assert "0.43" not in page and "frozen before reliability was estimated" in page
    new = {"ann": {"records": 12, "strict_reliability": 0.43, "origins": ["imported"]}}
    DatasetVersion.objects.filter(pk=dataset_version.pk).update(annotators=new)
    assert "0.43" in researcher_client.get(address).content.decode()


def test_without_near_copies_the_page_says_so(judged: Project, researcher_client: Client) -> None:
    DatasetVersion.objects.filter(pk=freeze(judged).pk).update(leaks={"near_copies": 0, "of": 4, "pairs": []})
    page = researcher_client.get(
        url("dataset-version-detail", DatasetVersion.objects.get().pk)
    ).content.decode()
    assert "No held-out trajectory is a near-copy" in page
    DatasetVersion.objects.update(leaks=None)  # frozen before this was looked at
    assert (
        "near-cop"
        not in researcher_client.get(
            url("dataset-version-detail", DatasetVersion.objects.get().pk)
        ).content.decode()
    )


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": "no good"}, "name"),
        ({"name": "first", "seed": "x"}, "whole number"),
    ],
)
def test_a_mistake_is_shown_where_it_is(
    judged: Project, researcher_client: Client, fields: dict, said: str
) -> None:
    answer = researcher_client.post(url("dataset-version-create"), {"seed": 0} | fields)
    assert answer.status_code == 422
    assert said in answer.content.decode()
    assert not DatasetVersion.objects.exists()


def test_a_download_is_what_was_frozen(judged: Project, researcher_client: Client) -> None:
    dataset_version = freeze(judged)
    answer = researcher_client.get(url("dataset-version-export", dataset_version.pk, "trl"))
    lines = [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]  # type: ignore[attr-defined]
    assert len(lines) == 12
    assert {"prompt", "chosen", "rejected"} <= set(lines[0])
    assert "attachment" in answer["Content-Disposition"]
    only = researcher_client.get(url("dataset-version-export", dataset_version.pk, "jsonl") + "?split=test")
    assert len(b"".join(only.streaming_content).splitlines()) >= dataset_version.splits["test"]  # type: ignore[attr-defined]
    assert researcher_client.get(url("dataset-version-export", dataset_version.pk, "csv")).status_code == 400


def test_a_waiting_one_can_be_cancelled(judged: Project, researcher_client: Client) -> None:
    researcher_client.post(url("dataset-version-create"), {"name": "first", "seed": 0})
    dataset_version = DatasetVersion.objects.get()
    assert researcher_client.get(url("dataset-version-export", dataset_version.pk, "trl")).status_code == 409
    researcher_client.post(url("dataset-version-cancel", dataset_version.pk))
    dataset_version.refresh_from_db()
    assert dataset_version.state == JobState.CANCELLED


def test_annotators_and_strangers(judged: Project, annotator: User, outsider: User, client: Client) -> None:
    dataset_version = freeze(judged)
    pages = [
        url("dataset-version-list"),
        url("dataset-version-create"),
        url("dataset-version-detail", dataset_version.pk),
    ]
    for user, status in ((annotator, 403), (outsider, 404)):
        client.force_login(user)
        assert [client.get(page).status_code for page in pages] == [status] * 3
        assert client.get(url("dataset-version-export", dataset_version.pk, "trl")).status_code == status
        assert client.post(url("dataset-version-cancel", dataset_version.pk)).status_code == status


@pytest.mark.django_db(transaction=True)
def test_splits_are_previewed_before_anything_is_frozen(judged: Project, researcher_client: Client) -> None:
    form = {"name": "first", "seed": 0, "preview": "1"}
    page = researcher_client.post(url("dataset-version-create"), form)
    preview = page.context["preview"]
    assert [split.name for split in preview.splits] == ["train", "validation", "test"]
    assert sum(split.tasks for split in preview.splits) == 12
    assert (
        "too few for a conclusion" in page.content.decode() and "Train with 5 folds" in page.content.decode()
    )
    form["test_share"] = 50
    preview = researcher_client.post(url("dataset-version-create"), form).context["preview"]
    assert not DatasetVersion.objects.exists()
    researcher_client.post(url("dataset-version-create"), {"name": "third", "seed": 0, "test_share": 50})
    advance_dataset_versions()
    frozen = DatasetVersion.objects.get(name="third")
    assert frozen.tasks == {split.name: split.tasks for split in preview.splits}
    assert frozen.splits == {split.name: split.records for split in preview.splits}


def test_the_share_of_test_tasks_is_large_enough_where_it_can_be(
    project: Project, researcher_client: Client
) -> None:
    import_pairs(project, [pair(f"task-{n}") for n in range(60)])
    form = {"name": "first", "seed": 0, "preview": "1"}
    page = researcher_client.post(url("dataset-version-create"), form)
    preview = page.context["preview"]
    assert preview.test_percent > 10
    assert preview.test_tasks >= 10
    text = page.content.decode()
    assert f"Test share: {preview.test_percent} %" in text and "too few for a conclusion" not in text
    del form["preview"]
    researcher_client.post(url("dataset-version-create"), form)
    advance_dataset_versions()
    assert DatasetVersion.objects.get().tasks == {split.name: split.tasks for split in preview.splits}


def test_the_form_does_not_wait_for_its_preview(
    project: Project, researcher_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_pairs(project, [pair("task-1")])
    with monkeypatch.context() as patched:
        patched.setattr("apps.datasets.views.preview_split", None)
        page = researcher_client.get(url("dataset-version-create"))
    text = page.content.decode()
    assert "Counting tasks and records" in text and 'hx-trigger="load, click"' in text
    headers = {"HX-Request": "true"}
    form = {"name": "first", "seed": 0, "preview": "1"}
    part = researcher_client.post(url("dataset-version-create"), form, headers=headers)
    assert part.status_code == 200 and "Test share: 10 %" in part.content.decode()
    wrong = researcher_client.post(
        url("dataset-version-create"), form | {"filter": "agnet=desk"}, headers=headers
    )
    assert wrong.status_code == 200 and "No preview. " in wrong.content.decode()
    assert "load, click" not in wrong.content.decode()
    assert researcher_client.post(url("dataset-version-create"), form | {"seed": -1}).status_code == 422
