"""The trail shows what happened, a page at a time."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.accounts import audit_export, services
from apps.accounts.models import AuditAlias, AuditEvent, Project, Role, User


def test_the_trail_is_shown_newest_first_in_pages(as_: Callable[[str], Client], project: Project) -> None:
    for number in range(60):
        services.record_audit(project=project, actor=None, verb="thing.done", target=f"thing-{number}")
    url = reverse("accounts:audit-list", args=["desk"])
    first = as_("owner").get(url)
    assert "thing-59" in first.content.decode()
    second = as_("owner").get(url + first.context["table"].next_url)
    shown = [line.row.pk for page in (first, second) for line in page.context["table"].body]
    assert shown == list(project.audit_events.order_by("-at", "-pk").values_list("pk", flat=True))
    assert "csv=1" not in first.content.decode(), "the file is that of the export, which the trail records"


def test_details_may_have_any_name(as_: Callable[[str], Client], project: Project) -> None:
    data = {"items": 3, "note": "<b>bold</b>"}
    services.record_audit(project=project, actor=None, verb="thing.done", data=data)
    page = as_("owner").get(reverse("accounts:audit-list", args=["desk"])).content.decode()
    assert "items: 3" in page
    assert "&lt;b&gt;bold" in page


def test_details_are_written_for_people(as_: Callable[[str], Client], project: Project) -> None:
    data = {"scopes": ["ingest", "reward"], "limits": {"requests": None}, "is_open": True, "name": "trainer"}
    services.record_audit(project=project, actor=None, verb="key.created", data=data)
    page = as_("owner").get(reverse("accounts:audit-list", args=["desk"])).content.decode()
    for shown in (
        "scopes: ingest, reward",
        "limits: {&quot;requests&quot;: null}",
        "is_open: true",
        "name: trainer",
    ):
        assert shown in page


def test_a_filter_that_cannot_be_read_says_where(as_: Callable[[str], Client], project: Project) -> None:
    url = reverse("accounts:audit-list", args=["desk"])
    answer = as_("owner").get(url, {"since": "yesterday", "actor": "ann@example.org"})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "Enter a valid date." in page and 'value="ann@example.org"' in page
    assert page.count("is-invalid") == 1
    assert "placeholder" in page


def test_the_page_filters_and_names_people(as_: Any, project: Project, people: dict[str, User]) -> None:
    services.record_audit(project=project, actor=people["reviewer"], verb="thing.done", target="one")
    services.record_audit(project=project, actor="tsk_12345678", verb="thing.made", target="two")
    page = as_("owner").get("/p/desk/audit", {"actor": "reviewer@example.org"})
    assert [line.row.shown_actor for line in page.context["table"].body] == ["reviewer@example.org"]
    assert [
        line.row.shown_target
        for line in as_("owner").get("/p/desk/audit", {"verb": "thing."}).context["table"].body
    ] == [
        "two",
        "one",
    ]
    assert (
        as_("owner").get("/p/desk/audit", {"actor": "tsk_12345678"}).context["table"].body[0].row.shown_target
        == "two"
    )
    tomorrow = (timezone.now() + timedelta(days=1)).date().isoformat()
    assert as_("owner").get("/p/desk/audit", {"since": tomorrow}).context["table"].body == []
    assert as_("owner").get("/p/desk/audit", {"until": tomorrow, "verb": "thing"}).context["table"].body
    assert as_("owner").get("/p/desk/audit", {"since": "yesterday"}).status_code == 422


def test_a_project_with_the_number_of_a_deleted_one_does_not_see_its_trail(
    as_: Any, project: Project
) -> None:
    AuditEvent.objects.create(
        project=project,
        project_slug="older",
        actor="x",
        verb="old.done",
        at=project.created_at - timedelta(days=1),
    )
    assert "old.done" not in as_("owner").get("/p/desk/audit").content.decode()


def test_an_owner_exports_by_page_and_by_api(
    as_: Any, project: Project, people: dict[str, User], tmp_path: Path, settings: Any
) -> None:
    settings.HOME = tmp_path
    page = as_("owner").post("/p/desk/audit/export", {"names": "1"})
    text = b"".join(page.streaming_content).decode()
    assert "owner@example.org" in text and "attachment" in page.headers["Content-Disposition"]
    _, secret = services.create_api_key(project=project, scopes=["admin"], by=people["owner"])
    answer = Client().get("/api/v1/projects/desk/audit", headers={"Authorization": f"Bearer {secret}"})
    text = b"".join(answer.streaming_content).decode()
    (tmp_path / "file").write_text(text)
    assert audit_export.verify_file(tmp_path / "file").is_whole
    assert "owner@example.org" not in text
    assert AuditEvent.objects.filter(verb="audit.exported").count() == 2
    assert as_(Role.RESEARCHER.value).post("/p/desk/audit/export").status_code == 403
    assert as_("stranger").post("/p/desk/audit/export").status_code == 404
    _, weak = services.create_api_key(project=project, scopes=["train"], by=people["owner"])
    answer = Client().get("/api/v1/projects/desk/audit", headers={"Authorization": f"Bearer {weak}"})
    assert answer.status_code == 403


@pytest.mark.django_db(transaction=True)
def test_the_page_is_as_quick_with_many_events(
    as_: Any, project: Project, django_assert_max_num_queries: Any
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO accounts_auditevent (project_id, project_slug, actor, verb, target, data, at) "
            "SELECT %s, 'desk', 'tsk_' || n %% 50, 'thing.done-' || n %% 20, '', '{}', now() + n * interval '1 ms' "
            "FROM generate_series(1, 20000) n",
            [project.pk],
        )
        cursor.execute("ANALYZE accounts_auditevent")
        cursor.execute(
            "EXPLAIN (FORMAT JSON) SELECT * FROM accounts_auditevent WHERE project_id = %s AND actor = 'tsk_7' "
            "AND at >= '2020-01-01' ORDER BY at DESC, id DESC LIMIT 51",
            [project.pk],
        )
        assert "Seq Scan" not in json.dumps(cursor.fetchone())
    owner = as_("owner")
    for query in ({}, {"actor": "tsk_7"}, {"verb": "thing.done-3"}):
        with django_assert_max_num_queries(12):
            assert len(owner.get("/p/desk/audit", query).context["table"].body) == 50
    assert AuditAlias.objects.count() < 20
