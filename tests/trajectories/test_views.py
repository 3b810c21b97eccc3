import base64
import io
import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from apps.accounts.models import Project, User
from apps.trajectories import services
from apps.trajectories.models import Attachment, Import, Trajectory
from tests.trajectories.conftest import lines, record

PNG = base64.b64decode(  # one pixel
    b"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"


def bring(project: Project, *records: Any) -> Trajectory:
    services.import_trajectories(project=project, stream=io.BytesIO(lines(*records)), by=None)
    return Trajectory.objects.order_by("-pk")[0]


@pytest.mark.parametrize("path", ["", "upload/", "{pk}/", "{pk}/steps/", "{pk}/steps/0/", "node/"])
def test_who_may_open_what(
    path: str,
    project: Project,
    researcher: User,
    client: Client,
    annotator_client: Client,
    outsider_client: Client,
) -> None:
    url = "/p/desk/trajectories/" + path.format(pk=bring(project, record()).pk)
    assert client.get(url).status_code == 200
    # Steps are those of an annotator's own work: tests/annotation/test_viewing.py.
    assert annotator_client.get(url).status_code == (404 if "steps" in path else 403)
    assert outsider_client.get(url).status_code == 404
    assert Client().get(url).status_code == 302


def test_another_projects_trajectory_is_not_there(project: Project, researcher: User, client: Client) -> None:
    other = Project.objects.create(slug="other", name="Other")
    pk = bring(other, record()).pk
    for path in (f"{pk}/", f"{pk}/steps/", f"{pk}/steps/0/"):
        assert client.get(f"/p/desk/trajectories/{path}").status_code == 404


def test_the_list_filters_and_pages(project: Project, researcher: User, client: Client) -> None:
    assert b"No trajectories yet" in client.get("/p/desk/trajectories/").content
    bring(project, *(record(n, agent="mono" if n % 2 else "duo", success=n < 10) for n in range(60)))
    page = client.get("/p/desk/trajectories/")
    assert (len(page.context["trajectories"]), page.context["count"]) == (50, 60)
    rest = client.get(f"/p/desk/trajectories/?cursor={page.context['next_cursor']}")
    assert (len(rest.context["trajectories"]), rest.context["next_cursor"]) == (10, None)
    found = client.get("/p/desk/trajectories/?agent=mono&success=yes").context["trajectories"]
    assert {row.task.external_id for row, _ in found} == {f"task-{n}" for n in (1, 3, 5, 7, 9)}
    assert b"No matching trajectories" in client.get("/p/desk/trajectories/?task=none").content


def test_hostile_text_is_text(project: Project, researcher: User, client: Client) -> None:
    call = {"id": EVIL, "function": {"name": EVIL, "arguments": json.dumps({EVIL: EVIL})}}
    messages = [
        {"role": "system", "content": EVIL},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "javascript:alert(3)"}}]},
        {"role": "assistant", "content": EVIL, "reasoning_content": EVIL, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": EVIL, "content": EVIL},
    ]
    row = bring(
        project,
        {
            "id": EVIL,
            "task": {"id": EVIL, "instruction": EVIL, "reference": EVIL},
            "agent": EVIL,
            "messages": messages,
        },
    )
    for path in ("", f"{row.pk}/?show_outcome=1", f"{row.pk}/steps/", f"{row.pk}/steps/2/"):
        page = client.get(f"/p/desk/trajectories/{path}").content.decode()
        assert "&lt;script&gt;" in page
        assert "<script>alert" not in page and "<img src=x" not in page and 'src="javascript:' not in page


def test_the_outcome_is_hidden_unless_asked(
    project: Project, researcher: User, client: Client, annotator_client: Client
) -> None:
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a", "reward": 0.125}]
    pk = bring(project, {"task": "t", "messages": messages, "reward": 0.375, "success": True}).pk
    hidden = client.get(f"/p/desk/trajectories/{pk}/").content
    assert b"0.125" not in hidden and b"0.375" not in hidden
    shown = client.get(f"/p/desk/trajectories/{pk}/?show_outcome=1").content
    assert b"0.125" in shown and b"0.375" in shown
    assert b"0.125" not in annotator_client.get(f"/p/desk/trajectories/{pk}/steps/?show_outcome=1").content


def test_steps_come_as_they_are_scrolled_to(project: Project, researcher: User, client: Client) -> None:
    messages = [{"role": "user" if n % 2 else "assistant", "content": f"turn {n}."} for n in range(45)]
    pk = bring(project, {"task": "t", "messages": messages}).pk
    first = client.get(f"/p/desk/trajectories/{pk}/").content.decode()
    assert f'id="t{pk}-s19"' in first and f'id="t{pk}-s20"' not in first and f"/{pk}/steps/?start=20" in first
    assert f'id="t{pk}-s4" data-step="4" data-agent-step="2"' in first
    last = client.get(
        f"/p/desk/trajectories/{pk}/steps/?start=40", headers={"HX-Request": "true"}
    ).content.decode()
    assert "turn 44." in last and "start=" not in last and "<html" not in last
    assert client.get(f"/p/desk/trajectories/{pk}/steps/?start=-1").status_code == 400


def test_a_huge_text_is_cut_until_asked_for(project: Project, researcher: User, client: Client) -> None:
    pk = bring(
        project, {"task": "t", "messages": [{"role": "assistant", "content": "x" * 50_000 + "END"}]}
    ).pk
    page = client.get(f"/p/desk/trajectories/{pk}/").content.decode()
    assert "END" not in page and "Show full step (46,003" in page
    whole = client.get(f"/p/desk/trajectories/{pk}/steps/0/", headers={"HX-Request": "true"}).content.decode()
    assert "END" in whole and "Show full step" not in whole
    assert client.get(f"/p/desk/trajectories/{pk}/steps/1/").status_code == 404


def test_attachments_are_served_harmless(
    project: Project, researcher: User, client: Client, annotator_client: Client, outsider_client: Client
) -> None:
    def part(media_type: str, data: bytes) -> dict[str, Any]:
        return {
            "type": "image_url",
            "image_url": {"url": f"data:{media_type};base64,{base64.b64encode(data).decode()}"},
        }

    content = [part("image/png", PNG), part("image/svg+xml", b"<svg onload='alert(1)'/>")]
    bring(
        project,
        {
            "task": "t",
            "messages": [{"role": "user", "content": content}, {"role": "assistant", "content": "a"}],
        },
    )
    picture, drawing = (
        Attachment.objects.get(media_type=media_type) for media_type in ("image/png", "image/svg+xml")
    )
    shown = client.get(f"/p/desk/trajectories/attachments/{picture.sha256}/")
    assert b"".join(shown.streaming_content) == PNG
    assert (shown["Content-Type"], shown["X-Content-Type-Options"]) == ("image/png", "nosniff")
    saved = client.get(f"/p/desk/trajectories/attachments/{drawing.sha256}/")
    assert saved["Content-Type"] == "application/octet-stream"
    assert saved["Content-Disposition"].startswith("attachment")
    assert "sandbox" in saved["Content-Security-Policy"]
    assert b"onload" in b"".join(saved.streaming_content)
    for without in (annotator_client, outsider_client):
        assert without.get(f"/p/desk/trajectories/attachments/{picture.sha256}/").status_code == 404
    assert client.get("/p/desk/trajectories/attachments/0000/").status_code == 404


def upload(client: Client, data: bytes, format: str = "auto") -> Any:
    file = SimpleUploadedFile("runs.jsonl", data)
    return client.post("/p/desk/trajectories/upload/", {"file": file, "format": format})


def confirm(client: Client, page: Any, **fields: str) -> Any:
    token = page.context["confirm"].initial["token"]
    return client.post("/p/desk/trajectories/imports/", {"token": token} | fields, follow=True)


def test_an_upload_is_shown_before_it_is_imported(project: Project, researcher: User, client: Client) -> None:
    page = upload(client, lines(record(1), record(2)))
    assert b"Detected format: <strong>openai</strong>" in page.content and b"What is 1 + 1?" in page.content
    assert not Trajectory.objects.exists()
    done = confirm(client, page)
    assert done.redirect_chain and (done.context["job"].state, done.context["job"].created) == (
        "succeeded",
        2,
    )
    confirm(client, page)
    assert Import.objects.count() == 1


def test_errors_of_an_upload_have_line_and_pointer(
    project: Project, researcher: User, client: Client
) -> None:
    page = upload(client, lines(record(1), record(2, reward="x")))
    assert b"/reward" in page.content and page.context["found"].errors[0]["line"] == 2
    done = confirm(client, page, keep_good="on")
    assert (done.context["job"].created, len(done.context["job"].rejected)) == (1, 1)
    assert upload(client, b'{"what": 1}').context["confirm"] is None
    assert upload(client, b"").status_code == 422


def test_a_confirmation_cannot_be_forged_or_moved(project: Project, researcher: User, client: Client) -> None:
    assert client.post("/p/desk/trajectories/imports/", {"token": "x:y:z"}).status_code == 400
    assert client.post("/p/desk/trajectories/imports/", {}).status_code == 400
    assert client.get("/p/desk/trajectories/imports/").status_code == 405


def test_a_page_of_an_import_polls_until_it_is_finished(
    project: Project, researcher: User, client: Client
) -> None:
    job = Import.objects.create(project=project, filename="f", file="uploads/1/x", format="openai")
    url = f"/p/desk/trajectories/imports/{job.pk}/"
    assert b"every 2s" in client.get(url).content
    client.post(f"{url}cancel/")
    finished = client.get(url, headers={"HX-Request": "true"}).content
    assert b"every 2s" not in finished and b"cancelled" in finished
