"""Reads of accounts that several callers share."""

import hashlib

from apps.accounts.models import ApiKey, Membership, User


def hash_of(secret: str) -> str:
    """What is kept of a key's secret. Plain SHA-256 is enough: the secret is 256 random bits, not a password."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def api_key_for(secret: str) -> ApiKey | None:
    """The live key of this secret, with its project, or None."""
    key = ApiKey.objects.select_related("project").filter(hash=hash_of(secret)).first()
    return key if key is not None and key.is_live else None


def memberships_of(user: User) -> list[Membership]:
    rows = Membership.objects.select_related("project").filter(user=user)
    return list(rows.order_by("project__name", "project_id"))
