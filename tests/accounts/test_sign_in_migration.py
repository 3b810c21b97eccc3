"""What the migration to links can know of accounts from before."""

from importlib import import_module
from typing import Any

from allauth.socialaccount.models import SocialAccount
from django.db import connection
from django.utils import timezone

from apps.accounts.models import AuditEvent, User

migration = import_module("apps.accounts.migrations.0005_sign_in")


def account(name: str, *, added_by: str = "") -> User:
    user = User.objects.create(email=f"{name}@example.org")
    now = timezone.now()
    AuditEvent.objects.create(actor="command line", verb="user.created", target=user.email, at=now)
    if added_by:
        AuditEvent.objects.create(actor=added_by, verb="member.added", target=user.email, at=now)
    return user


def run(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def test_passwords_that_an_owner_saw_are_marked(db: None) -> None:
    account("by-owner", added_by="olga@example.org")
    account("by-command", added_by="command line")
    account("by-link", added_by="by-link@example.org")
    account("never-added")
    run(migration.SEEN_PASSWORDS)
    marked = User.objects.filter(must_change_password=True)
    assert [user.email for user in marked] == ["by-owner@example.org"]


def test_addresses_that_a_provider_verified_are_verified(db: None) -> None:
    def signed_on(name: str, claims: dict[str, Any]) -> None:
        SocialAccount.objects.create(user=account(name), provider="sso", uid=name, extra_data=claims)

    signed_on("plain", {"email": "Plain@example.org", "email_verified": True})
    signed_on("nested", {"userinfo": {"email": "nested@example.org", "email_verified": "true"}})
    signed_on("other", {"email": "someone@example.org", "email_verified": True})
    signed_on("unverified", {"userinfo": {"email": "unverified@example.org", "email_verified": False}})
    account("password")
    run(migration.VERIFIED)
    verified = User.objects.exclude(email_verified_at=None).order_by("email")
    assert [user.email for user in verified] == ["nested@example.org", "plain@example.org"]
