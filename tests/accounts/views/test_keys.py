"""Keys are shown once, and end when they are revoked."""

from collections.abc import Callable
from datetime import timedelta

from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.accounts import selectors, services
from apps.accounts.models import ApiKey, Project, User


def test_a_key_is_shown_once_and_works(as_: Callable[[str], Client], project: Project) -> None:
    client = as_("owner")
    data = {"name": "trainer", "scopes": ["reward", "ingest"], "expires": ""}
    answer = client.post(reverse("accounts:key-create", args=["desk"]), data)
    secret = answer.context["secret"]
    key = selectors.api_key_for(secret)
    assert key is not None
    assert (key.project, key.scopes) == (project, ["reward", "ingest"])
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


def test_a_key_expires_unless_its_maker_says_otherwise(
    as_: Callable[[str], Client], project: Project
) -> None:
    client, url = as_("owner"), reverse("accounts:key-create", args=["desk"])
    client.post(url, {"scopes": ["reward"]})
    expires_at = ApiKey.objects.get().expires_at
    assert expires_at is not None
    assert abs(expires_at - timezone.now() - timedelta(days=365)) < timedelta(minutes=1)
    client.post(url, {"scopes": ["reward"], "never_expires": "on"})
    assert ApiKey.objects.latest("pk").expires_at is None
    both = {"scopes": ["reward"], "never_expires": "on", "expires": "2099-01-01"}
    assert client.post(url, both).status_code == 422


def test_the_page_warns_two_weeks_before_a_key_expires(
    as_: Callable[[str], Client], project: Project, owner: User
) -> None:
    for days in (13, 15):
        services.create_api_key(
            project=project,
            scopes=["reward"],
            by=owner,
            name=f"in {days} days",
            expires_at=timezone.now() + timedelta(days=days),
        )
    answer = as_("owner").get(reverse("accounts:key-list", args=["desk"]))
    assert [key.name for key in answer.context["expiring"]] == ["in 13 days"]
    assert "replace this one before that day" in answer.content.decode()


def test_a_key_is_made_for_a_service_account(as_: Callable[[str], Client], project: Project) -> None:
    client, url = as_("owner"), reverse("accounts:key-create", args=["desk"])
    assert client.post(url, {"scopes": ["reward"], "owner": "new"}).status_code == 422
    answer = client.post(url, {"scopes": ["admin"], "owner": "new", "service_account": "trainer"})
    assert answer.status_code == 200, answer.context["form"].errors
    client.post(url, {"scopes": ["reward"], "owner": "account:trainer"})
    account = project.service_accounts.get(name="trainer")
    assert set(account.api_keys.values_list("scopes__0", flat=True)) == {"admin", "reward"}
    client.post(reverse("accounts:service-account-close", args=["desk", account.pk]))
    assert not selectors.live_keys().filter(project=project).exists()
    assert client.post(url, {"scopes": ["reward"], "owner": "account:trainer"}).status_code == 422


def test_limits_are_set_and_changed(as_: Callable[[str], Client], project: Project) -> None:
    client = as_("owner")
    data = {
        "scopes": ["reward"],
        "requests_per_minute": "60",
        "allowed_networks": "203.0.113.7, 2001:db8::/32",
    }
    client.post(reverse("accounts:key-create", args=["desk"]), data)
    key = ApiKey.objects.get()
    assert (key.requests_per_minute, key.tokens_per_day) == (60, None)
    assert key.allowed_networks == ["203.0.113.7/32", "2001:db8::/32"]
    url = reverse("accounts:key-limits", args=["desk", key.pk])
    assert 'value="60"' in client.get(url).content.decode()
    assert client.post(url, {"allowed_networks": "everywhere"}).status_code == 422
    assert client.post(url, {"tokens_per_day": "0", "allowed_networks": ""}).status_code == 302
    key.refresh_from_db()
    assert (key.requests_per_minute, key.tokens_per_day, key.allowed_networks) == (None, 0, [])
