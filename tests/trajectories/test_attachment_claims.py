"""A source that says it is an attachment is believed only where a row of the same project has that digest."""

import base64
import io
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from apps.accounts.models import Project, Scope, User
from apps.accounts.services import create_api_key
from apps.core.storage.artifacts import store_content
from apps.datasets.erasure import erase_trajectory
from apps.trajectories.attachments import file_name, last_image_digest
from apps.trajectories.exports import export_document, export_lines
from apps.trajectories.models import Attachment, Step, Trajectory
from apps.trajectories.services import import_trajectories
from tests.trajectories.conftest import lines, record
from tests.trajectories.test_api import post
from tests.trajectories.test_views import PNG
from workers.schema import Part
from workers.schema import Step as StepRecord

SECRET = b"weights of another project"
DIGEST = sha256(PNG).hexdigest()
TRAVERSALS = [
    "sha256:../models/secret",
    "sha256:../../artifacts/models/secret",
    "sha256:/etc/passwd",
    "sha256:..\\models\\secret",
    "sha256:%2e%2e/models/secret",
    "sha256:",
    "sha256:" + "a" * 63,
    "sha256:" + "A" * 64,
    "sha256:" + DIGEST + "\n",
    "sha256:" + DIGEST + ".small.webp",
    "sha256:" + "../" * 200 + "x",
]


def picture(source: str) -> dict[str, Any]:
    content = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": source}}]
    return record(7, messages=[{"role": "user", "content": content}, {"role": "assistant", "content": "ok"}])


def bring(project: Project, source: str) -> Trajectory:
    import_trajectories(project=project, stream=io.BytesIO(lines(picture(source))), format="openai", by=None)
    return Trajectory.objects.filter(project=project).latest("pk")


@pytest.fixture
def elsewhere(db: None) -> Project:
    """Another project, with a picture, and a file of the store that a path could lead to."""
    other = Project.objects.create(slug="elsewhere", name="Elsewhere")
    bring(other, f"data:image/png;base64,{base64.b64encode(PNG).decode()}")
    store_content(SECRET, "models/secret")
    return other


@pytest.mark.parametrize("source", [*TRAVERSALS, f"sha256:{DIGEST}"])
def test_what_is_no_attachment_here_is_text(
    source: str, client: Client, key: dict[str, str], researcher: User, project: Project, elsewhere: Project
) -> None:
    answer = post(client, key, lines(picture(source)), "?format=openai")
    assert (answer.status_code, answer.json()["created"]) == (200, 1)
    assert answer.json()["missing_attachments"] == [source[:200]]
    row = Trajectory.objects.get(project=project)
    for format in ("atif", "openai"):
        document = client.get(f"/api/v1/trajectories/{row.pk}?format={format}", headers=key)
        assert document.status_code == 200
        assert base64.b64encode(SECRET) not in document.content
        assert base64.b64encode(PNG) not in document.content
        assert json.dumps(source).strip('"') in document.content.decode()
    page = client.get(f"/p/desk/trajectories/{row.pk}/")
    assert page.status_code == 200
    assert "missing attachment sha256:" in page.text
    assert client.get(f"/p/desk/trajectories/{row.pk}/steps/0/").status_code == 200
    assert list(export_lines(project, Trajectory.objects.filter(project=project), format="atif"))


def test_a_bad_one_stored_before_ends_no_export(
    project: Project, researcher: User, client: Client, elsewhere: Project
) -> None:
    first, last = bring(project, "https://example.org/a.png"), bring(project, "https://example.org/b.png")
    step = Step.objects.get(trajectory=first, index=0)
    step.message[1]["source"] = "sha256:../models/secret"
    step.save()
    rows = Trajectory.objects.filter(project=project).order_by("pk")
    exported = b"".join(export_lines(project, rows, format="atif"))
    assert exported.count(b"\n") == 2
    assert b"sha256:../models/secret" in exported
    assert client.get(f"/p/desk/trajectories/{first.pk}/").status_code == 200
    assert client.get(f"/p/desk/trajectories/{first.pk}/compare/{last.pk}/").status_code == 200
    erase_trajectory(trajectory=first, by=researcher)
    assert (Path(settings.HOME) / "artifacts" / "models" / "secret").read_bytes() == SECRET


def test_one_of_this_project_may_be_named_again(
    project: Project, client: Client, key: dict[str, str]
) -> None:
    bring(project, f"data:image/png;base64,{base64.b64encode(PNG).decode()}")
    answer = post(client, key, lines(picture(f"sha256:{DIGEST}") | {"task": {"id": "other"}}))
    assert answer.json() == {
        "created": 1,
        "duplicates": 0,
        "updated": 0,
        "rejected": [],
        "dropped": [],
        "kept": [],
    }
    row = Trajectory.objects.filter(project=project).latest("pk")
    assert base64.b64encode(PNG).decode() in json.dumps(export_document(project, row.pk, format="atif"))


def test_an_attachment_whose_file_is_gone_is_missing(
    project: Project, researcher: User, client: Client
) -> None:
    row = bring(project, f"data:image/png;base64,{base64.b64encode(PNG).decode()}")
    (Path(settings.HOME) / "artifacts" / file_name(project.pk, DIGEST)).unlink()
    assert f"sha256:{DIGEST}" in json.dumps(export_document(project, row.pk, format="atif"))
    assert client.get(f"/p/desk/trajectories/{row.pk}/").status_code == 200
    assert client.get(f"/p/desk/trajectories/attachments/{DIGEST}/").status_code == 404


def test_the_type_is_that_of_the_attachment(project: Project, researcher: User, client: Client) -> None:
    """What is said of it by whoever names it does not make a file a picture."""
    bring(project, "data:application/pdf;base64,JVBERi0xLjQK")
    attachment = Attachment.objects.get(project=project)
    row = bring(project, f"sha256:{attachment.sha256}")
    assert "Download the image" in client.get(f"/p/desk/trajectories/{row.pk}/").text


@pytest.mark.parametrize("source", TRAVERSALS)
def test_clicks_are_drawn_on_no_such_picture(source: str) -> None:
    part = Part(type="image", source=source, media_type="image/png")
    assert last_image_digest(StepRecord(source="user", message=(part,))) is None


@pytest.mark.parametrize("digest", ["..", "a", "A" * 64, DIGEST])
def test_addresses_of_attachments_are_digests_of_the_project(
    digest: str, project: Project, researcher: User, client: Client, elsewhere: Project
) -> None:
    for end in ("", "small/"):
        assert client.get(f"/p/desk/trajectories/attachments/{digest}/{end}").status_code == 404


def test_the_answer_tells_nothing_of_other_projects(
    client: Client, key: dict[str, str], project: Project, elsewhere: Project
) -> None:
    """The same answer for a digest that another project has and for one that no one has."""
    _, secret = create_api_key(project=project, scopes=[Scope.INGEST])
    headers = {"Authorization": f"Bearer {secret}"}
    theirs = post(client, headers, lines(picture(f"sha256:{DIGEST}"))).json()
    nobodys = post(client, headers, lines(picture(f"sha256:{'0' * 64}"))).json()
    assert theirs.pop("missing_attachments") == [f"sha256:{DIGEST}"]
    assert nobodys.pop("missing_attachments") == [f"sha256:{'0' * 64}"]
    assert theirs == nobodys
