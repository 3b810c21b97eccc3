"""Bearer keys for the JSON API: `request.auth` is the ApiKey."""

from typing import cast

from django.http import HttpRequest
from ninja.security import HttpBearer

from apps.accounts import login_guard, selectors
from apps.accounts.access import require_open
from apps.accounts.key_addresses import key_addresses
from apps.accounts.key_gate import check_address, gate, held_to
from apps.accounts.login_guard import Subject
from apps.accounts.models import ApiKey
from apps.core.errors import DomainError
from apps.core.http.client_address import client_address

_COUNTED = "_key_is_counted"


class KeyRequest(HttpRequest):
    """What an operation is given."""

    auth: ApiKey


class KeyAuth(HttpBearer):
    """in_archive: whether the operation may change something in an archived project."""

    def __init__(self, *, in_archive: bool = False) -> None:
        super().__init__()
        self.in_archive = in_archive

    def authenticate(self, request: HttpRequest, token: str) -> ApiKey | None:
        """Raises Forbidden for a key that may not be used from there, OverKeyLimit for one used too often."""
        key = selectors.api_key_for(token.strip())
        if key is not None and not self.in_archive:
            require_open(request, key.project)
        if key is None:  # a live one is never refused for what others at its address try
            login_guard.begin_attempt(Subject("key", client_address(request)))
        elif not getattr(request, _COUNTED, False):
            limits = held_to(key)
            check_address(limits.networks, client_address(request))
            gate.admit(key.prefix, limits)
            if key_addresses.notice(key.prefix, client_address(request)):
                key_addresses.flush()
            setattr(request, _COUNTED, True)  # an Idempotency-Key has the key read twice
        return key


def key_of(request: HttpRequest) -> ApiKey | None:
    """The request's key, or None without one that may be used now: the operation itself says why."""
    try:
        return cast(ApiKey | None, KeyAuth()(request))
    except DomainError:
        return None
