"""Pages of bulk jobs."""

import pytest
from django.test import Client

from apps.accounts.models import Project
from apps.bulk.models import BulkJob
from apps.training.models import RewardModel
from tests.bulk.stored import end_chunks, score_job, store_trajectories
from tests.factories import make_outsider, member_client, signed_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def page(project: Project) -> Client:
    return member_client(project, "researcher")


def test_the_form_estimates_and_creates(project: Project, model: RewardModel, page: Client) -> None:
    store_trajectories(project, 3)
    path = f"/p/{project.slug}/bulk/new/"
    assert b'value="agent=desk"' in page.get(f"{path}?agent=desk").content
    values = {"work": "score", "model": model.pk, "filter": "agent=desk"}
    estimate = page.post(path, values | {"estimate": "1"})
    assert estimate.status_code == 200 and b"not known yet" in estimate.content
    assert not BulkJob.objects.exists()
    wrong = page.post(path, values | {"create": "1", "filter": "agent=desk&steps_from=x"})
    assert wrong.status_code == 400 and b"The filter steps_from" in wrong.content
    page.post(path, values | {"create": "1"})
    assert BulkJob.objects.get().item_count == 3


def test_the_engine_of_each_work_is_chosen_alone(project: Project, model: RewardModel, page: Client) -> None:
    answer = page.get(f"/p/{project.slug}/bulk/new/?work=judge")
    html = answer.content.decode()
    assert [name for name in answer.context["form"].engines if f'class="for-{name}"' in html] == [
        "model",
        "judge",
        "induction",
        "endpoint",
    ]
    assert "---------" not in html and "Choose an endpoint" in html
    assert html.count(">optional<") == 1  # the filter
    assert f'value="{model.pk}" selected' in html  # the only one


def test_a_job_is_seen_changed_and_downloaded(project: Project, model: RewardModel, page: Client) -> None:
    keys = store_trajectories(project, 3)
    job = score_job(project, model)
    path = f"/p/{project.slug}/bulk/{job.pk}/"
    assert b"hx-get" in page.get(path).content
    page.post(f"{path}change/", {"change": "pause"})
    job.refresh_from_db()
    assert job.state == "paused"
    assert page.post(f"{path}change/", {"change": "explode"}).status_code == 400
    page.post(f"{path}change/", {"change": "resume"})
    end_chunks(job, problems=frozenset(keys[:1]))
    seen = page.get(path).content
    assert b"It is too long." in seen and b"Retry problems" in seen and b"/status/" not in seen
    assert page.get(f"{path}status/").headers["HX-Refresh"] == "true"
    lines = page.get(f"{path}results/").getvalue()
    assert lines.count(b"\n") == 3
    assert b"desk/quick@1" in page.get(f"/p/{project.slug}/bulk/").content


def test_strangers_see_nothing(project: Project, model: RewardModel) -> None:
    store_trajectories(project, 1)
    job = score_job(project, model)
    for client in (signed_in(make_outsider()), member_client(project, "annotator")):
        assert client.get(f"/p/{project.slug}/bulk/{job.pk}/").status_code in (403, 404)
