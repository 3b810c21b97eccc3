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
from apps.trajectories.views import viewer
from tests.trajectories.conftest import lines, record

PNG = base64.b64decode(  # one pixel
    b"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"


def bring(project: Project, *records: Any) -> Trajectory:
    services.import_trajectories(project=project, stream=io.BytesIO(lines(*records)), by=None)
    return Trajectory.objects.order_by("-pk")[0]


@pytest.mark.parametrize(
    "path", ["", "upload/", "{pk}/", "{pk}/steps/", "{pk}/steps/0/", "node/", "{pk}/overview/", "{pk}/json/"]
)
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
    assert (len(page.context["table"].body), page.context["table"].count) == (50, 60)
    rest = client.get(f"/p/desk/trajectories/{page.context['table'].next_url}")
    assert (len(rest.context["table"].body), rest.context["table"].next_url) == (10, "")
    found = client.get("/p/desk/trajectories/?agent=mono&success=yes").context["table"].body
    assert {line.row.task.external_id for line in found} == {f"task-{n}" for n in (1, 3, 5, 7, 9)}
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


def test_the_outcome_is_shown_to_researchers_alone(
    project: Project, researcher: User, client: Client, annotator_client: Client
) -> None:
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a", "reward": 0.125}]
    pk = bring(project, {"task": "t", "messages": messages, "reward": 0.375, "success": True}).pk
    shown = client.get(f"/p/desk/trajectories/{pk}/").content
    assert b"0.125" in shown and b"0.375" in shown
    hidden = client.get(f"/p/desk/trajectories/{pk}/?show_outcome=0").content
    assert b"0.125" not in hidden and b"0.375" not in hidden
    steps = f"/p/desk/trajectories/{pk}/steps/"
    assert b"0.125" not in client.get(steps).content
    for asked in ("show_outcome=1", "page=1"):
        assert b"0.125" in client.get(f"{steps}?{asked}").content
        assert b"0.125" not in annotator_client.get(f"{steps}?{asked}").content


def test_the_title_names_agent_and_task(project: Project, researcher: User, client: Client) -> None:
    agent = {"name": "coder", "version": "2"}
    messages = [{"role": "user", "content": "Fix it.\nNow."}, {"role": "assistant", "content": "a"}]
    pk = bring(project, {"task": "refund-7", "agent": agent, "messages": messages}).pk
    assert "<title>coder 2: refund-7 " in client.get(f"/p/desk/trajectories/{pk}/").content.decode()
    pk = bring(project, {"messages": messages}).pk
    assert "<title>Unnamed agent: Fix it. " in client.get(f"/p/desk/trajectories/{pk}/").content.decode()


def test_the_page_opens_at_a_step_and_leads_to_the_others(
    project: Project, researcher: User, client: Client
) -> None:
    messages = [{"role": "user" if n % 2 else "assistant", "content": f"turn {n}."} for n in range(65)]
    pk = bring(project, {"task": "t", "messages": messages}).pk
    url = f"/p/desk/trajectories/{pk}/"
    first = client.get(url).content.decode()
    assert f'id="t{pk}-s19"' in first and f'id="t{pk}-s20"' not in first
    assert 'data-first="20" data-last="64"><a href="?step=20" rel="next">' in first
    assert f'id="t{pk}-s4" data-step="4" data-agent-step="2"' in first
    middle = client.get(f"{url}?step=45&list=agent%3Dx").content.decode()
    assert f'id="t{pk}-s45"' in middle and f'id="t{pk}-s39"' not in middle
    assert 'data-first="0" data-last="39"><a href="?list=agent%3Dx&amp;step=20" rel="prev">' in middle
    assert f'id="t{pk}-s64"' in client.get(f"{url}?step=99999").content.decode()
    assert client.get(f"{url}?step=x").status_code == 400
    last = client.get(f"{url}steps/?start=60&alone=1&page=1", headers={"HX-Request": "true"})
    assert "turn 64." in last.content.decode() and "<html" not in last.content.decode()
    assert client.get(f"{url}steps/?start=-1").status_code == 400


def test_a_long_trajectory_opens_without_reading_all_of_its_steps(
    project: Project, researcher: User, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = [{"role": "assistant", "content": "x", "name": "ann"} for _ in range(300)]
    pk = bring(project, {"task": "t", "messages": messages}).pk
    url = f"/p/desk/trajectories/{pk}/"
    with monkeypatch.context() as patched:
        patched.setattr(viewer, "load_trajectories", None)
        page = client.get(f"{url}?step=250").content.decode()
    assert f'id="t{pk}-s250"' in page and f'hx-get="{url}overview/?page=1"' in page
    overview = client.get(f"{url}overview/", headers={"HX-Request": "true"}).content.decode()
    assert overview.count("data-mark=") == 300 and "<html" not in overview
    assert "<html" in client.get(f"{url}overview/").content.decode()


def test_the_list_it_was_opened_from_gives_previous_and_next(
    project: Project, researcher: User, client: Client
) -> None:
    bring(project, *(record(n, agent="mono" if n % 2 else "duo") for n in range(7)))
    keys = list(Trajectory.objects.filter(agent_name="mono").order_by("-pk").values_list("pk", flat=True))
    page = client.get(f"/p/desk/trajectories/{keys[1]}/?list=agent%3Dmono").content.decode()
    assert f'href="/p/desk/trajectories/{keys[0]}/?list=agent%3Dmono">Previous' in page
    assert f'href="/p/desk/trajectories/{keys[2]}/?list=agent%3Dmono">Next' in page
    assert "2 of 3" in page
    listed = client.get("/p/desk/trajectories/?agent=mono&sort=task&page=1").content.decode()
    assert f'href="/p/desk/trajectories/{keys[0]}/?list=agent%3Dmono%26sort%3Dtask"' in listed
    by_steps = client.get(f"/p/desk/trajectories/{keys[0]}/?list=agent%3Dmono%26sort%3Dsteps")
    neighbors = by_steps.context["neighbors"]  # of equal steps by their number, the first imported first
    assert (neighbors.previous, neighbors.following, neighbors.position) == (keys[1], None, 3)
    assert "In the list" in page
    assert "In the list" not in client.get(f"/p/desk/trajectories/{keys[1]}/").content.decode()


def test_tags_are_added_and_removed_on_the_page(project: Project, researcher: User, client: Client) -> None:
    row = bring(project, record())
    url = f"/p/desk/trajectories/{row.pk}/tags/"
    added = client.post(url, {"tag": "to  read"}, headers={"HX-Request": "true"}).content.decode()
    assert "to read" in added and "<html" not in added
    assert client.post(url, {"tag": "later"}).status_code == 302
    row.refresh_from_db()
    assert row.tags == ["to read", "later"]
    client.post(url, {"tag": "later", "remove": "1"})
    row.refresh_from_db()
    assert row.tags == ["to read"]
    assert client.post(url, {"tag": ""}).status_code == 400


def test_documents_are_shown_and_downloaded(project: Project, researcher: User, client: Client) -> None:
    document = record()
    pk = bring(project, document).pk
    url = f"/p/desk/trajectories/{pk}/"
    for name in ("original", "atif", "openai"):
        shown = client.get(f"{url}?view=json&document={name}")
        assert shown.context["json_text"] and shown.context["json_hidden"] == 0
        saved = client.get(f"{url}json/?document={name}")
        assert saved["Content-Disposition"] == f'attachment; filename="trajectory-{pk}-{name}.json"'
        assert json.loads(saved.content)
    assert client.get(f"{url}json/").content.strip() == json.dumps(document).encode()
    assert client.get(f"{url}json/?document=none").status_code == 400
    step = json.loads(client.get(f"{url}?view=json&step=0").context["json_text"])
    assert step["index"] == 0 and step["source"]


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
