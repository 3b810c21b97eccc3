"""Comments on the page of a trajectory: who writes, edits and deletes them, whom they mention, and over HTTP."""

import io
import json
from typing import Any

import pytest
from django.test import Client

from apps.accounts.keys import create_api_key
from apps.accounts.leaving import delete_user
from apps.accounts.mentions import mentioned_users
from apps.accounts.models import AuditEvent, Project, Role, Scope, User
from apps.core.errors import DomainError, Forbidden
from apps.trajectories import comments, services
from apps.trajectories.models import Trajectory, TrajectoryComment
from tests.factories import make_member
from tests.trajectories.conftest import lines, record


@pytest.fixture
def trajectory(project: Project) -> Trajectory:
    services.import_trajectories(project=project, stream=io.BytesIO(lines(record())), by=None)
    return Trajectory.objects.get()


def page_url(trajectory: Trajectory, path: str = "") -> str:
    return f"/p/desk/trajectories/{trajectory.pk}/{path}"


def test_a_comment_is_written_on_a_step_and_shown_there(
    trajectory: Trajectory, researcher: User, client: Client
) -> None:
    url = page_url(trajectory, "comments/")
    answer = client.post(
        url, {"text": " Why <b>this</b>? ", "step": "1", "sign": "-1"}, headers={"HX-Request": "true"}
    ).content.decode()
    comment = TrajectoryComment.objects.get()
    assert (comment.text, comment.step, comment.sign, comment.author) == (
        "Why <b>this</b>?",
        1,
        -1,
        researcher,
    )
    assert "Why &lt;b&gt;this&lt;/b&gt;?" in answer and "<html" not in answer
    assert f'id="t{trajectory.pk}-c1" hx-swap-oob="true"' in answer
    shown = client.get(page_url(trajectory)).content.decode()
    assert shown.count("Why &lt;b&gt;this") == 3  # at its step, among all, and in the field that edits it
    without_script = client.post(url, {"text": "On all of it."})
    assert without_script.headers["Location"] == page_url(trajectory) + "#comments"
    steps = page_url(trajectory, "steps/")
    assert "Why &lt;b" in client.get(f"{steps}?page=1").content.decode()
    assert "Why &lt;b" not in client.get(steps).content.decode()  # as annotators see them


@pytest.mark.parametrize("sent", [{"text": " "}, {}, {"text": "x", "step": "99"}, {"text": "x", "sign": "7"}])
def test_what_is_no_comment_is_refused(
    sent: dict[str, str], trajectory: Trajectory, researcher: User, client: Client
) -> None:
    assert client.post(page_url(trajectory, "comments/"), sent).status_code == 400
    assert not TrajectoryComment.objects.exists()


def test_own_comments_are_edited_and_owners_delete_any(
    project: Project, trajectory: Trajectory, researcher: User, client: Client
) -> None:
    other = make_member(project, "other@example.org", Role.RESEARCHER)
    owner = make_member(project, "owner@example.org", Role.OWNER)
    comment = comments.create_comment(trajectory=trajectory, text="a", by=researcher)
    with pytest.raises(Forbidden):
        comments.edit_comment(comment=comment, text="b", step=None, sign=None, by=other)
    client.force_login(other)
    for path in ("edit/", "delete/"):
        url = page_url(trajectory, f"comments/{comment.pk}/{path}")
        assert client.post(url, {"text": "b"}).status_code == 403
    client.force_login(researcher)
    client.post(page_url(trajectory, f"comments/{comment.pk}/edit/"), {"text": "b", "step": "0"})
    comment.refresh_from_db()
    assert (comment.text, comment.step) == ("b", 0) and comment.edited_at is not None
    client.force_login(owner)
    client.post(page_url(trajectory, f"comments/{comment.pk}/delete/"))
    assert not TrajectoryComment.objects.exists()
    assert AuditEvent.objects.get(verb="comment.deleted").target == str(trajectory.pk)


def test_mentions_are_members_by_address_or_name(project: Project, researcher: User) -> None:
    ann = make_member(project, "ann@example.org", Role.ANNOTATOR)
    User.objects.filter(pk=ann.pk).update(name="Ann Lee")
    stranger = make_member(Project.objects.create(slug="else", name="Else"), "eve@example.org", Role.OWNER)
    assert stranger.email == "eve@example.org"

    def found(text: str) -> list[str]:
        return [user.email for user in mentioned_users(project, text)]

    for text in ("@ann look", "See @Ann Lee.", "(@ANN@example.org)", "@ann, @Ann Lee"):
        assert found(text) == ["ann@example.org"], text
    for text in ("ann", "@anna", "mail joe@ann", "@ann.other@example.org", "@eve", "@ann-marie"):
        assert found(text) == [], text
    assert found(f"@{researcher.email} and @ann") == [researcher.email, "ann@example.org"]


def test_a_deleted_account_leaves_no_name_in_comments(
    project: Project, trajectory: Trajectory, researcher: User
) -> None:
    ann = make_member(project, "ann@example.org", Role.RESEARCHER)
    about = comments.create_comment(trajectory=trajectory, text="Ask @ann@example.org.", by=researcher)
    own = comments.create_comment(trajectory=trajectory, text="Mine.", by=ann)
    assert list(about.mentions.all()) == [ann]
    delete_user(user=ann, by=None, reason="left")
    about.refresh_from_db()
    own.refresh_from_db()
    assert about.text == "Ask @deleted." and not about.mentions.exists()
    assert (own.author_name, own.text) == ("deleted account", "Mine.")


def test_comments_over_http(project: Project, trajectory: Trajectory, researcher: User) -> None:
    scopes = [Scope.FEEDBACK_READ, Scope.FEEDBACK_WRITE]
    secret = create_api_key(project=project, scopes=scopes, by=researcher)[1]
    client = Client(headers={"Authorization": f"Bearer {secret}"})
    url = f"/api/v1/trajectories/{trajectory.pk}/comments"

    def send(method: str, where: str, body: Any = None) -> Any:
        return client.generic(method, where, json.dumps(body or {}), content_type="application/json")

    made = send("POST", url, {"text": f"@{researcher.email}", "step": 1, "sign": 1})
    assert made.status_code == 201
    comment = made.json()
    assert (comment["author"], comment["mentions"]) == (str(researcher), [researcher.email])
    assert client.get(url).json()["items"] == [comment]
    assert client.get("/api/v1/projects/desk/trajectory-comments").json()["items"] == [comment]
    edited = send("PUT", f"{url}/{comment['id']}", {"text": "Changed."}).json()
    assert (edited["text"], edited["step"], edited["sign"], edited["mentions"]) == (
        "Changed.",
        None,
        None,
        [],
    )
    theirs = comments.create_comment(
        trajectory=trajectory, text="x", by=make_member(project, "o@example.org", Role.RESEARCHER)
    )
    assert send("DELETE", f"{url}/{theirs.pk}").status_code == 403
    assert send("PUT", f"{url}/{comment['id']}", {"text": "x", "step": 99}).json()["pointer"] == "/step"
    assert send("DELETE", f"{url}/{comment['id']}").status_code == 204
    with pytest.raises(DomainError):
        comments.create_comment(trajectory=trajectory, text="x", sign=2, by=researcher)
