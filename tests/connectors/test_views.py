"""Pages of connectors: creating one by its kind, running, pausing, changing and deleting it."""

from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import AuditEvent, Project
from apps.connectors.models import Connector, ConnectorRun
from apps.core.jobs import job_queue
from apps.core.storage.encryption import decrypted
from apps.rewards.models import Endpoint
from tests.connectors.conftest import pull
from tests.connectors.langfuse_server import LangfuseServer
from tests.connectors.test_pulling import Langfuse, at
from tests.factories import member_client

FORM = {
    "name": "Production",
    "username": "pk-lf-1",
    "secret": "sk-lf-1",
    "every_minutes": "60",
    "settle_minutes": "5",
    "overlap_minutes": "60",
    "option_tag": "live",
}


@pytest.fixture
def owner_client(project: Project) -> Client:
    return member_client(project, "owner")


def test_an_empty_list_leads_to_the_kinds(project: Project, owner_client: Client) -> None:
    page = owner_client.get(f"/p/{project.slug}/connectors/").content.decode()
    assert "No connectors yet" in page and f"/p/{project.slug}/connectors/new/" in page
    kinds = owner_client.get(f"/p/{project.slug}/connectors/new/").content.decode()
    assert all(title in kinds for title in ("Langfuse", "Phoenix", "MLflow"))
    reader = member_client(project, "researcher")
    assert "/connectors/new/" not in reader.get(f"/p/{project.slug}/connectors/").content.decode()


def test_a_connector_is_created_with_its_fields(
    project: Project, owner_client: Client, langfuse: Langfuse
) -> None:
    url = f"/p/{project.slug}/connectors/new/langfuse/"
    page = owner_client.get(url).content.decode()
    assert "Public key" in page and "https://cloud.langfuse.com" in page and "option_environment" in page
    answer = owner_client.post(url, FORM | {"address": langfuse[1]})
    connector = Connector.objects.get()
    assert answer.headers["Location"] == f"/p/{project.slug}/connectors/{connector.pk}/"
    assert (connector.options, connector.every_minutes) == ({"tag": "live"}, 60)
    assert "sk-lf-1" not in connector.secret and decrypted(connector.secret) == "sk-lf-1"
    assert connector.next_run_at is not None
    assert AuditEvent.objects.filter(verb="connector.added", target="Production").exists()
    page = owner_client.get(answer.headers["Location"]).content.decode()
    assert "No runs yet" in page and "sk-lf-1" not in page


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"address": "http://127.0.0.1:1/"}, "private network"),
        ({"address": "ftp://example.org"}, "begins with https://"),
        ({"address": "https://example.org/?a=1"}, "no query"),
        ({"username": ""}, "This field is required."),
        ({"secret": ""}, "This field is required."),
        ({"option_since": "yesterday"}, "is no date"),
        ({"settle_minutes": "-1"}, "greater than or equal to 0"),
        ({"every_minutes": "1"}, "Select a valid choice"),
    ],
)
def test_what_is_wrong_is_told_at_the_field(
    project: Project, owner_client: Client, change: dict[str, str], message: str
) -> None:
    answer = owner_client.post(
        f"/p/{project.slug}/connectors/new/langfuse/", FORM | {"address": "https://8.8.8.8"} | change
    )
    assert answer.status_code == 422
    assert message in answer.content.decode()
    assert not Connector.objects.exists()


def test_runs_are_started_listed_and_shown(
    project: Project, owner_client: Client, connector: Connector, langfuse: Langfuse
) -> None:
    base = f"/p/{project.slug}/connectors/{connector.pk}/"
    owner_client.post(f"{base}run/")
    run = ConnectorRun.objects.get()
    assert run.state == "queued"
    page = owner_client.get(base).content.decode()
    assert "Next in the queue" in page and 'hx-trigger="every 2s"' in page
    refused = owner_client.post(f"{base}run/", follow=True).content.decode()
    assert "A run of this connector is waiting or in progress." in refused
    owner_client.post(f"{base}runs/{run.pk}/cancel/")
    run.refresh_from_db()
    assert run.state == "cancelled"
    assert "HX-Refresh" in owner_client.get(f"{base}status/").headers
    langfuse[0].add("good", at(0))
    langfuse[0].add("empty", at(1))
    langfuse[0].traces["empty"] |= {"observations": [], "input": None, "output": None}
    run = pull(connector)
    page = owner_client.get(f"{base}runs/{run.pk}/").content.decode()
    assert "Rejected records" in page and "no record is a call of a model" in page
    assert "1 trajectories" in page


def test_a_schedule_is_paused_and_resumed(
    project: Project, owner_client: Client, connector: Connector
) -> None:
    Connector.objects.update(every_minutes=60)
    base = f"/p/{project.slug}/connectors/{connector.pk}/"
    owner_client.post(f"{base}pause/")
    connector.refresh_from_db()
    assert (connector.state, connector.next_run_at) == ("paused", None)
    owner_client.post(f"{base}pause/", {"resume": "1"})
    connector.refresh_from_db()
    assert connector.state == "active" and connector.next_run_at is not None


def test_a_new_address_needs_its_own_key(
    project: Project, owner_client: Client, connector: Connector, langfuse: Langfuse
) -> None:
    base = f"/p/{project.slug}/connectors/{connector.pk}/edit/"
    kept = FORM | {"secret": "", "address": langfuse[1]}
    assert owner_client.post(base, kept).status_code == 302
    connector.refresh_from_db()
    assert (connector.name, decrypted(connector.secret)) == ("Production", "sk-lf-1")
    moved = owner_client.post(base, kept | {"address": f"{langfuse[1]}/other"})
    assert moved.status_code == 422
    assert "Enter the secret key for the new address." in moved.content.decode()


def test_other_options_begin_again(
    project: Project, owner_client: Client, connector: Connector, langfuse: Langfuse
) -> None:
    langfuse[0].add("t", at(0))
    pull(connector)
    assert connector.cursor
    base = f"/p/{project.slug}/connectors/{connector.pk}/edit/"
    owner_client.post(base, FORM | {"secret": "", "address": langfuse[1]})
    connector.refresh_from_db()
    assert connector.cursor == {}


def test_deleting_keeps_the_trajectories(
    project: Project, owner_client: Client, connector: Connector, langfuse: Langfuse
) -> None:
    langfuse[0].add("t", at(0))
    pull(connector)
    owner_client.post(f"/p/{project.slug}/connectors/{connector.pk}/delete/")
    assert not Connector.objects.exists()
    assert project.trajectories.count() == 1


def test_a_lost_key_is_told(project: Project, owner_client: Client, connector: Connector) -> None:
    Connector.objects.update(secret="lost")
    page = owner_client.get(f"/p/{project.slug}/connectors/{connector.pk}/").content.decode()
    assert "The backup did not include the key." in page
    assert "Enter it again." in pull(connector).error


def test_a_key_is_in_no_answer(project: Project, owner_client: Client, langfuse: Any) -> None:
    server: LangfuseServer = langfuse[0]
    answer = owner_client.post(
        f"/p/{project.slug}/connectors/new/langfuse/", FORM | {"address": langfuse[1], "name": ""}
    )
    assert answer.status_code == 422
    assert "sk-lf-1" not in answer.content.decode()
    assert server.calls == []


def test_scores_are_pushed_by_owners(
    project: Project, owner_client: Client, connector: Connector, langfuse: Langfuse
) -> None:
    base = f"/p/{project.slug}/connectors/{connector.pk}/"
    page = owner_client.get(base).content.decode()
    assert "Push scores back" in page and "with the names of annotators" in page
    owner_client.post(f"{base}push/")
    run = ConnectorRun.objects.get()
    assert (run.direction, run.state) == ("push", "queued")
    assert AuditEvent.objects.filter(verb="connector.push_started").exists()
    job_queue.request_cancel(run)
    pull(connector, "push")
    assert "0 scores sent, 0 unchanged" in owner_client.get(base).content.decode()
    reader = member_client(project, "researcher")
    assert "Push scores back" not in reader.get(base).content.decode()
    assert reader.post(f"{base}push/").status_code == 403


def test_what_is_pushed_is_set_in_the_form(
    project: Project, owner_client: Client, connector: Connector, langfuse: Langfuse
) -> None:
    Endpoint.objects.create(project=project, name="helpful")
    base = f"/p/{project.slug}/connectors/{connector.pk}/"
    form = FORM | {"secret": "", "address": langfuse[1]}
    owner_client.post(f"{base}edit/", form | {"push_endpoint": "helpful", "push_after_pull": "on"})
    connector.refresh_from_db()
    assert (connector.push_endpoint, connector.push_after_pull) == ("helpful", True)
    page = owner_client.get(base).content.decode()
    assert "<code>helpful</code>" in page and "after each pull" in page
    assert owner_client.post(f"{base}edit/", form | {"push_endpoint": "none"}).status_code == 422
    bucket = owner_client.get(f"/p/{project.slug}/connectors/new/s3/").content.decode()
    assert "push_endpoint" not in bucket
