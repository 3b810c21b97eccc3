"""What every call of the JSON API answers when something is wrong, how lists are paged, and writes done once."""

import json
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.http import Http404, HttpRequest
from django.test import Client, override_settings
from django.urls import include, path
from django.utils import timezone
from ninja import NinjaAPI, Router, Schema
from ninja.decorators import decorate_view

from apps.accounts import services
from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyAuth
from apps.accounts.idempotency import KEPT_FOR, forget_old_answers, idempotent
from apps.accounts.models import AuditEvent, IdempotentResponse, Project, Scope
from apps.core.errors import Conflict, DomainError
from apps.core.http.api import MAX_LIMIT, decode_cursor, install_problem_handlers, paginate
from workers.errors import InvalidRecord

router = Router()


class Inner(Schema):
    name: str


class Body(Schema):
    number: int
    inner: list[Inner] = []


RAISED: dict[str, Exception] = {
    "domain": Conflict("Taken; choose another.", pointer="/name"),
    "record": InvalidRecord("A step has no source.", pointer="/steps/3"),
    "missing": Http404("There is no such thing."),
    "bug": ZeroDivisionError("secret detail"),
}


@router.get("/raise/{name}")
def raise_it(request: HttpRequest, name: str) -> None:
    raise RAISED[name]


@router.post("/projects/{slug}/notes")
@decorate_view(idempotent)
def write_note(request: Any, slug: str, body: Body) -> dict[str, int]:
    project = project_of_key(request.auth, slug, Scope.INGEST)
    event = services.record_audit(
        project=project, actor=request.auth, verb="note.written", target=str(body.number)
    )
    if body.number < 0:
        raise DomainError("A note needs a number that is not negative.", pointer="/number")
    return {"id": event.pk}


api = NinjaAPI(auth=KeyAuth(), urls_namespace="api-of-this-test", docs_url=None, openapi_url=None)
install_problem_handlers(api)
api.add_router("", router)
urlpatterns = [path("t/", api.urls), path("", include("apps.config.urls"))]


@pytest.fixture(autouse=True)
def these_urls() -> Iterator[None]:
    with override_settings(ROOT_URLCONF=__name__):
        yield


@pytest.fixture
def project(db: None) -> Project:
    return services.create_project(slug="desk")


@pytest.fixture
def call(project: Project) -> Callable[..., Any]:
    """call(method, path, body, **headers) with a key that may ingest."""
    _, secret = services.create_api_key(project=project, scopes=["ingest"])
    return caller(secret)


def caller(secret: str) -> Callable[..., Any]:
    def call(method: str, where: str, body: Any = None, **headers: str) -> Any:
        client = Client(enforce_csrf_checks=True, raise_request_exception=False)
        sent = {
            "Authorization": f"Bearer {secret}",
            **{name.replace("_", "-"): text for name, text in headers.items()},
        }
        data = body if isinstance(body, (str, bytes)) else json.dumps(body)
        return client.generic(method.upper(), where, data=data, content_type="application/json", headers=sent)

    return call


@pytest.mark.parametrize(
    ("name", "status", "pointer"),
    [("domain", 409, "/name"), ("record", 422, "/steps/3"), ("missing", 404, None)],
)
def test_errors_are_problem_documents(
    call: Callable[..., Any], name: str, status: int, pointer: str | None
) -> None:
    answer = call("get", f"/t/raise/{name}")
    assert answer.status_code == status
    assert answer["Content-Type"] == "application/problem+json"
    document = json.loads(answer.content)
    assert document["status"] == status
    assert document["detail"] == str(RAISED[name])
    assert document.get("pointer") == pointer


def test_a_bug_has_a_reference_in_the_log_and_keeps_its_secrets(
    call: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    answer = call("get", "/t/raise/bug")
    assert answer.status_code == 500
    document = json.loads(answer.content)
    assert "secret detail" not in answer.content.decode()
    assert document["reference"] == answer.headers["X-Request-ID"]  # which is on the log line
    assert "secret detail" in caplog.text


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"number": "many"}, "/number"),
        ({}, "/number"),
        ({"number": 1, "inner": [{"name": "a"}, {"name": 5}]}, "/inner/1/name"),
    ],
)
def test_a_bad_body_is_pointed_into(call: Callable[..., Any], body: Any, pointer: str) -> None:
    answer = call("post", "/t/projects/desk/notes", body)
    assert answer.status_code == 422
    assert json.loads(answer.content)["pointer"] == pointer


def test_a_body_that_is_no_json_is_refused(call: Callable[..., Any]) -> None:
    assert call("post", "/t/projects/desk/notes", "{").status_code == 400


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b'{"number": 1, "inner": [' + b"[]," * 300_000 + b"[]]}", 413, "over 250,000 arrays and objects"),
        (b'{"number": ' + b"[" * 100 + b"]" * 100 + b"}", 413, "over 64 levels"),
        (b'{"number": ' + b"1" * 2000 + b"}", 413, "2,000 digits"),
        (b'{"number": 1, "number": 2}', 400, "the key 'number' twice"),
    ],
    ids=["bomb", "depth", "digits", "twice"],
)
def test_a_bomb_of_json_is_refused_before_it_is_built(
    call: Callable[..., Any], body: bytes, status: int, says: str
) -> None:
    answer = call("post", "/t/projects/desk/notes", body)
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json")
    assert says in json.loads(answer.content)["detail"]


@pytest.mark.parametrize("authorization", [None, "Bearer tsk_00000000_wrong", "Basic YTpi", "Bearer"])
def test_without_a_live_key_nothing_opens(project: Project, authorization: str | None) -> None:
    headers = {"Authorization": authorization} if authorization else {}
    answer = Client().get("/t/raise/domain", headers=headers)
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"].startswith("Bearer")
    assert answer["Content-Type"] == "application/problem+json"


def test_a_session_is_no_key(project: Project) -> None:
    user, _ = services.create_user(email="a@example.org")
    client = Client()
    client.force_login(user)
    assert client.get("/t/raise/domain").status_code == 401


def test_a_key_opens_its_project_within_its_scopes(project: Project, call: Callable[..., Any]) -> None:
    services.create_project(slug="other")
    assert call("post", "/t/projects/other/notes", {"number": 1}).status_code == 404
    _, secret = services.create_api_key(project=project, scopes=["reward"])
    answer = caller(secret)("post", "/t/projects/desk/notes", {"number": 1})
    assert answer.status_code == 403
    assert "the call needs ingest" in json.loads(answer.content)["detail"]
    assert not AuditEvent.objects.filter(verb="note.written").exists()


def notes() -> int:
    return AuditEvent.objects.filter(verb="note.written").count()


def test_the_same_write_is_done_once_and_answered_twice(call: Callable[..., Any]) -> None:
    first = call("post", "/t/projects/desk/notes", {"number": 1}, Idempotency_Key="k")
    again = call("post", "/t/projects/desk/notes", {"number": 1}, Idempotency_Key="k")
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert "Idempotent-Replay" not in first
    assert again["Idempotent-Replay"] == "true"
    assert notes() == 1
    call("post", "/t/projects/desk/notes", {"number": 1}, Idempotency_Key="another")
    call("post", "/t/projects/desk/notes", {"number": 1})
    assert notes() == 3


def test_one_key_for_two_requests_is_refused(call: Callable[..., Any]) -> None:
    call("post", "/t/projects/desk/notes", {"number": 1}, Idempotency_Key="k")
    answer = call("post", "/t/projects/desk/notes", {"number": 2}, Idempotency_Key="k")
    assert answer.status_code == 422
    assert "used for another request" in json.loads(answer.content)["detail"]
    assert notes() == 1


def test_a_failed_write_leaves_nothing_and_may_be_tried_again(call: Callable[..., Any]) -> None:
    assert call("post", "/t/projects/desk/notes", {"number": -1}, Idempotency_Key="k").status_code == 400
    assert notes() == 0
    assert not IdempotentResponse.objects.exists()
    assert call("post", "/t/projects/desk/notes", {"number": 1}, Idempotency_Key="k").status_code == 200


def test_answers_are_kept_for_two_days(call: Callable[..., Any]) -> None:
    for number in (1, 2):
        call("post", "/t/projects/desk/notes", {"number": number}, Idempotency_Key=f"k{number}")
    assert forget_old_answers() == 0
    old = IdempotentResponse.objects.filter(key="k1")
    old.update(created_at=timezone.now() - KEPT_FOR - timedelta(seconds=1))
    assert forget_old_answers() == 1
    assert IdempotentResponse.objects.get().key == "k2"


@pytest.mark.django_db(transaction=True)
def test_at_the_same_time_it_is_done_once_too(call: Callable[..., Any]) -> None:
    answers: list[Any] = []
    start = threading.Barrier(4)

    def send() -> None:
        start.wait()
        answers.append(call("post", "/t/projects/desk/notes", {"number": 1}, Idempotency_Key="k"))
        connection.close()

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer.status_code for answer in answers] == [200] * 4
    assert len({answer.content for answer in answers}) == 1
    assert notes() == 1


def test_pages_cover_everything_once_while_rows_arrive(project: Project) -> None:
    for number in range(7):
        services.record_audit(project=project, actor=None, verb="page.row", target=str(number))
    rows = AuditEvent.objects.filter(verb="page.row")
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page, cursor = paginate(rows, cursor=cursor, limit=3, field="at")
        seen += [row.target for row in page]
        services.record_audit(project=project, actor=None, verb="page.row", target="later")
        if cursor is None:
            break
    assert seen == ["6", "5", "4", "3", "2", "1", "0"]


@pytest.mark.parametrize("cursor", ["x", "e30", "WzEsMl0", "ü", "bm9uc2Vuc2U"])
def test_a_made_up_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(DomainError, match="not one of ours"):
        decode_cursor(cursor)


@pytest.mark.parametrize("limit", [0, -1, MAX_LIMIT + 1])
def test_a_page_has_its_limits(limit: int) -> None:
    with pytest.raises(DomainError, match="limit is"):
        paginate(AuditEvent.objects.all(), limit=limit)


def test_the_documents_of_the_api_load_nothing_from_elsewhere(db: None) -> None:
    page = Client().get("/api/v1/docs")
    assert page.status_code == 200
    text = page.content.decode()
    assert "/api/v1/projects/{slug}/trajectories" in text
    assert "//cdn" not in text
    assert 'src="http' not in text
    schema = Client().get("/api/v1/openapi.json").json()
    assert schema["openapi"].startswith("3.")
