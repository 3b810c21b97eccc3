"""The pages of metrics."""

import pytest
from django.test import Client

from apps.accounts.models import Project
from apps.core.jobs.job_queue import JobState
from apps.metrics.models import Induction, Metric
from apps.metrics.tasks import advance_inductions

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_induction_from_its_form_to_its_page(
    owner_client: Client, commented: Project, fake_child: None
) -> None:
    base = f"/p/{commented.slug}/metrics/"
    assert b"24 comments in this project" in owner_client.get(base).content
    begun = owner_client.post(base, {"campaign": "", "seed": ""})
    page = begun.headers["location"]
    waiting = owner_client.get(page).content.decode()
    assert "queued" in waiting
    assert f'hx-get="{page}status/"' in waiting
    assert b"An induction is still running" in owner_client.get(base).content
    assert b"Wait for its end" in owner_client.post(base, {}).content
    assert "HX-Refresh" not in owner_client.get(f"{page}status/").headers
    advance_inductions()
    assert owner_client.get(f"{page}status/").headers["HX-Refresh"] == "true"
    found = owner_client.get(page).content.decode()
    for words in (
        "metric 0",
        "metric 1",
        "A word of warning.",
        "held-out",
        "one metric",
        "Uncovered comments",
    ):
        assert words in found, words
    assert 'hx-trigger="every' not in found, "nothing polls when nothing changes"


def test_no_comment_is_said_on_the_form(owner_client: Client, project: Project) -> None:
    answer = owner_client.post(f"/p/{project.slug}/metrics/", {})
    assert answer.status_code == 422
    assert b"has no comments yet" in answer.content


def test_a_metric_links_to_what_it_is_made_of(owner_client: Client, induced: Induction) -> None:
    metric = induced.metrics.get(position=0)
    aspect = metric.aspects.order_by("pk").first()
    assert aspect is not None
    page = owner_client.get(f"/p/{induced.project.slug}/metrics/{metric.pk}/").content.decode()
    there = f"/p/{induced.project.slug}/trajectories/{aspect.trajectory_id}/#t{aspect.trajectory_id}-s{aspect.step}"
    assert there in page
    assert aspect.feedback in page
    assert owner_client.get(there.partition("#")[0]).status_code == 200


def test_deciding(owner_client: Client, induced: Induction) -> None:
    base = f"/p/{induced.project.slug}/metrics/"
    first, second = induced.metrics.all()
    owner_client.post(f"{base}{first.pk}/decide/", {"what": "accept", "list": "1"})
    first.refresh_from_db()
    assert first.state == Metric.State.ACCEPTED
    made = owner_client.post(f"{base}inductions/{induced.pk}/rubric/", {"name": "Desk"})
    assert b"metric 0" in owner_client.get(made.headers["location"]).content
    owner_client.post(f"{base}{second.pk}/edit/", {"name": "<b>tone</b>", "definition": "How it speaks."})
    page = owner_client.get(f"{base}{second.pk}/").content.decode()
    assert "&lt;b&gt;tone&lt;/b&gt;" in page
    assert "<b>tone</b>" not in page
    owner_client.post(f"{base}{second.pk}/merge/", {"into": first.pk})
    second.refresh_from_db()
    assert second.state == Metric.State.MERGED
    induced.refresh_from_db()
    assert induced.state == JobState.QUEUED
    owner_client.post(f"{base}inductions/{induced.pk}/cancel/")
    induced.refresh_from_db()
    assert induced.state == JobState.CANCELLED
    assert b"Judge all trajectories again" in owner_client.get(f"{base}inductions/{induced.pk}/").content
    owner_client.post(f"{base}inductions/{induced.pk}/judge/")
    induced.refresh_from_db()
    assert induced.state == JobState.QUEUED


@pytest.mark.parametrize(
    ("action", "data", "said"),
    [
        ("decide", {"what": "eat"}, "Choose accept, reject or restore"),
        ("edit", {"name": ""}, "Name: This field is required."),
        ("merge", {"into": "0"}, "Merge into"),
        ("split", {"name": "new"}, "Aspects"),
        ("split", {"name": "new", "aspects": "99999999"}, "Aspects"),
    ],
)
def test_what_cannot_be_done_is_said(
    owner_client: Client, induced: Induction, action: str, data: dict[str, str], said: str
) -> None:
    metric = induced.metrics.get(position=0)
    base = f"/p/{induced.project.slug}/metrics/{metric.pk}/"
    answer = owner_client.post(f"{base}{action}/", data, follow=True)
    assert answer.status_code == 200
    assert said in answer.content.decode()
    metric.refresh_from_db()
    assert (metric.name, metric.state) == ("metric 0", Metric.State.PROPOSED)


@pytest.mark.parametrize(
    ("sign", "reason"),
    [
        (-1, "12 of 12 judged trajectories violate it"),
        (1, "12 of 12 judged trajectories keep it"),
        (0, "applies to none of 12"),
    ],
)
def test_a_metric_with_one_verdict_on_all_is_not_offered(
    owner_client: Client, induced: Induction, sign: int, reason: str
) -> None:
    degenerate, usable = induced.metrics.all()
    degenerate.verdicts.update(sign=sign)
    base = f"/p/{induced.project.slug}/metrics/"
    listed = owner_client.get(f"{base}inductions/{induced.pk}/").content.decode()
    assert reason in listed
    assert f'aria-label="Accept {degenerate.name}"' not in listed
    assert f'aria-label="Accept {usable.name}"' in listed
    page = owner_client.get(f"{base}{degenerate.pk}/").content.decode()
    assert reason in page
    assert 'value="accept"' not in page
    assert 'value="accept"' in owner_client.get(f"{base}{usable.pk}/").content.decode()
    answer = owner_client.post(f"{base}{degenerate.pk}/decide/", {"what": "accept"}, follow=True)
    assert f"{degenerate.name} cannot be accepted." in answer.content.decode()
    degenerate.refresh_from_db()
    assert degenerate.state == Metric.State.PROPOSED
