"""LLM connections: who may create them, where their keys go, and calls through the relay."""

import json
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import httpx
import pytest
from django.db import connection
from django.test import Client

from apps.accounts.models import AuditEvent, Project, User
from apps.core.errors import Conflict, DomainError
from apps.core.storage.encryption import decrypted, encrypted
from apps.llm import services
from apps.llm.checks import check_llm_connection
from apps.llm.completion_cache import store_completions
from apps.llm.models import CachedCompletion, LLMConnection
from apps.llm.relay import relay
from apps.llm.services import LLMConnectionSpec
from tests.factories import make_member
from tests.metrics.said import comments, import_comments
from tests.workers.llm.scripted import Script, scripted

pytestmark = pytest.mark.django_db
KEY = "sk-canary-of-a-model"


@pytest.fixture
def owner(project: Project) -> User:
    return make_member(project, "owner@example.org", "owner")


@pytest.fixture
def script(settings: Any) -> Script:
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    return Script(lambda body: "ready")


@pytest.fixture
def served(project: Project, script: Script) -> Iterator[LLMConnection]:
    with scripted(script) as url:
        yield services.create_llm_connection(
            project=project,
            spec=LLMConnectionSpec(name="judge", base_url=url, model="tiny"),
            key=KEY,
            by=None,
        )


def test_a_key_is_encrypted_and_shown_nowhere(
    client: Client, project: Project, owner: User, served: LLMConnection
) -> None:
    assert decrypted(served.key) == KEY
    with connection.cursor() as cursor:
        cursor.execute("select row_to_json(llm_llmconnection)::text from llm_llmconnection")
        assert KEY not in cursor.fetchone()[0]
    client.force_login(owner)
    base = f"/p/{project.slug}/llm-connections/"
    for page in (base, f"{base}{served.pk}/", f"/p/{project.slug}/audit"):
        answer = client.get(page)
        assert answer.status_code == 200 and KEY not in answer.content.decode()
    assert KEY not in json.dumps(list(AuditEvent.objects.values_list("data", flat=True)))


def test_the_same_secret_is_never_kept_alike_and_another_key_does_not_read_it(settings: Any) -> None:
    kept = encrypted(KEY)
    assert kept != encrypted(KEY) and decrypted(kept) == KEY
    assert encrypted("") == decrypted("") == ""
    settings.SECRET_KEY = "another"
    with pytest.raises(DomainError, match="Enter it again"):
        decrypted(kept)


def test_it_is_added_tried_changed_and_removed_in_the_browser(
    client: Client, project: Project, owner: User, script: Script
) -> None:
    client.force_login(owner)
    base = f"/p/{project.slug}/llm-connections/"
    with scripted(script) as url:
        given = {"name": "judge", "base_url": url + "/", "model": "tiny", "key": KEY}
        assert client.post(base, given).status_code == 302
        again = client.post(base, given)
        assert again.status_code == 422 and b"An LLM connection named judge already exists" in again.content
        assert KEY not in again.content.decode()
        model = LLMConnection.objects.get()
        assert b"judge replied: ready" in client.post(f"{base}{model.pk}/test/", follow=True).content
        assert script.keys == {KEY}
        page = f"{base}{model.pk}/"
        assert client.post(page, given | {"name": "The judge", "key": ""}).status_code == 302
        model.refresh_from_db()
        assert model.name == "The judge" and decrypted(model.key) == KEY
        moved = client.post(page, given | {"base_url": "http://127.0.0.2:9/v1", "key": ""})
        assert (
            moved.status_code == 422
            and b"The address has changed. Enter the key for the new address." in moved.content
        )
        model.refresh_from_db()
        assert model.base_url == url, "a key goes nowhere it was not given for"
    assert b"did not answer" in client.post(f"{base}{model.pk}/test/", follow=True).content
    client.post(f"{base}{model.pk}/delete/")
    assert not LLMConnection.objects.exists()


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ((401, {"error": "no such key"}), "answered with status 401"),
        ((200, {"choices": []}), "not with a chat completion"),
        ((200, "<html>"), "not with valid JSON"),
        ((200, [1]), "not with a chat completion"),
        (
            (404, {"secret": "of another service"}),
            "status 404: no error message in the format of the OpenAI API",
        ),
        ((400, {"error": {"message": "no such model"}}), "status 400: no such model"),
        ((302, {}), "answered with status 302"),
    ],
)
def test_a_trial_says_what_is_wrong(served: LLMConnection, script: Script, reply: Any, told: str) -> None:
    script.answer = lambda body: reply
    with pytest.raises(DomainError, match=told) as error:
        check_llm_connection(llm_connection=served)
    assert KEY not in error.value.message


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"base_url": "http://169.254.169.254/v1"}, "/base_url"),
        ({"base_url": "file:///etc/passwd"}, "/base_url"),
        ({"base_url": "http://me:pw@example.org/v1"}, "/base_url"),
        ({"base_url": "http://127.0.0.1/secrets?x="}, "/base_url"),
        ({"base_url": "http://127.0.0.1/secrets#"}, "/base_url"),
        ({"name": " "}, "/name"),
        ({"model": ""}, "/model"),
        ({"folder": "/models/both"}, "/base_url"),
        ({"base_url": ""}, "/base_url"),
        ({"base_url": "", "folder": "models/here"}, "/folder"),
        ({"base_url": "", "folder": "/models/listed"}, "/folder"),
        ({"base_url": "", "folder": "unlisted"}, "/folder"),
        ({"answer_tokens": 0}, "/answer_tokens"),
        ({"calls_per_minute": 0}, "/calls_per_minute"),
        ({"prompt_price": Decimal(-1)}, "/prompt_price"),
        ({"monthly_limit": Decimal(5)}, "/monthly_limit"),
    ],
)
def test_what_cannot_be_is_refused(
    project: Project, settings: Any, fields: dict[str, Any], pointer: str
) -> None:
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    settings.MODEL_DIRS = {"listed": "/models/listed"}
    given: Any = {"name": "a", "base_url": "http://127.0.0.1/v1", "model": "m"} | fields
    with pytest.raises(DomainError) as error:
        services.create_llm_connection(project=project, spec=LLMConnectionSpec(**given), by=None)
    assert error.value.pointer == pointer


def test_a_project_has_a_few(project: Project, script: Script) -> None:
    spec = LLMConnectionSpec(name="", base_url="http://127.0.0.1/v1", model="m")
    for number in range(services.MOST_CONNECTIONS):
        services.create_llm_connection(project=project, spec=replace(spec, name=str(number)), by=None)
    with pytest.raises(Conflict, match="Delete one"):
        services.create_llm_connection(project=project, spec=replace(spec, name="more"), by=None)


@pytest.mark.django_db(transaction=True)
def test_the_relay_wants_its_word_and_gives_the_key_to_the_model_only(
    served: LLMConnection, script: Script
) -> None:
    body = {"model": "tiny", "messages": []}
    with relay(served, "trial") as (address, word):
        assert KEY not in word and served.base_url not in address
        url = f"{address}/chat/completions"
        answer = httpx.post(url, json=body, headers={"Authorization": f"Bearer {word}"})
        assert answer.json()["choices"][0]["message"]["content"] == "ready"
        assert script.keys == {KEY}
        for headers in ({}, {"Authorization": "Bearer x"}, {"Authorization": f"Basic {word}"}):
            assert httpx.post(url, json=body, headers=headers).status_code == 401
        other = httpx.post(f"{address}/models", json=body, headers={"Authorization": f"Bearer {word}"})
        assert other.status_code == 404
        script.answer = lambda body: (429, {"error": "slow down"})
        busy = httpx.post(url, json=body, headers={"Authorization": f"Bearer {word}"})
        assert busy.status_code == 429 and busy.headers["retry-after-ms"] == "1"
        script.answer = lambda body: None
        assert httpx.post(url, json=body, headers={"Authorization": f"Bearer {word}"}).status_code == 502
    with pytest.raises(httpx.ConnectError):
        httpx.post(url, json=body)


def test_the_relay_calls_nothing_within(served: LLMConnection, settings: Any) -> None:
    settings.OUTGOING_ALLOW = []
    with pytest.raises(DomainError, match="in a private network"), relay(served, "trial"):
        raise AssertionError("never reached")


def test_answers_go_with_what_they_are_about(project: Project, served: LLMConnection) -> None:
    import_comments(project, comments(1))
    from apps.annotation.models import Comment

    comment = Comment.objects.first()
    assert comment is not None
    about = {"comment": str(comment.pk), "trajectory": str(comment.trajectory_id)}
    lines = [
        {"key": "a", "answer": 1, "about": {}},
        {"key": "b", "answer": 2, "about": about},
        {"key": "c", "answer": 3, "about": {"comment": "999999"}},
        {"key": "a", "answer": 4, "about": {}},
    ]
    assert store_completions(llm_connection=served, lines=lines) == 4
    store_completions(llm_connection=served, lines=lines)
    assert dict(CachedCompletion.objects.values_list("key", "answer")) == {"a": 1, "b": 2}
    comment.delete()
    assert set(CachedCompletion.objects.values_list("key", flat=True)) == {"a"}
    services.delete_llm_connection(llm_connection=served, by=None)
    assert store_completions(llm_connection=served, lines=lines) == 0
