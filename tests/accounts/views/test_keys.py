"""Keys are shown once, and end when they are revoked."""

from collections.abc import Callable
from datetime import timedelta

from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.accounts import selectors, services
from apps.accounts.models import ApiKey, Project


def test_a_key_is_shown_once_and_works(as_: Callable[[str], Client], project: Project) -> None:
    client = as_("owner")
    data = {"name": "trainer", "scopes": ["reward", "ingest"], "expires": ""}
    answer = client.post(reverse("accounts:key-create", args=["desk"]), data)
    secret = answer.context["secret"]
    key = selectors.api_key_for(secret)
    assert key is not None
    assert (key.project, key.scopes, key.expires_at) == (project, ["reward", "ingest"], None)
    assert secret in answer.content.decode()
    assert secret not in client.get(reverse("accounts:key-list", args=["desk"])).content.decode()


def test_the_last_day_counts(as_: Callable[[str], Client], project: Project) -> None:
    today = timezone.now().date()
    data = {"scopes": ["reward"], "expires": today.isoformat()}
    as_("owner").post(reverse("accounts:key-create", args=["desk"]), data)
    key = ApiKey.objects.get()
    assert key.expires_at is not None
    assert key.expires_at.date() == today + timedelta(days=1)
    assert key.is_live


def test_bad_input_is_shown_where_it_is(as_: Callable[[str], Client], project: Project) -> None:
    url = reverse("accounts:key-create", args=["desk"])
    for data, field in (
        ({"scopes": []}, "scopes"),
        ({"scopes": ["root"]}, "scopes"),
        ({"scopes": ["reward"], "expires": "2001-01-01"}, "expires"),
    ):
        answer = as_("owner").post(url, data)
        assert answer.status_code == 422
        assert field in answer.context["form"].errors
    assert not ApiKey.objects.exists()


def test_a_revoked_key_opens_nothing(as_: Callable[[str], Client], project: Project) -> None:
    key, secret = services.create_api_key(project=project, scopes=["reward"])
    as_("owner").post(reverse("accounts:key-revoke", args=["desk", key.pk]))
    assert selectors.api_key_for(secret) is None
