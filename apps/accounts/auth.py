"""Bearer keys for the JSON API: `request.auth` is the ApiKey."""

from typing import cast

from django.http import HttpRequest
from ninja.security import HttpBearer

from apps.accounts import login_guard, selectors
from apps.accounts.login_guard import Subject
from apps.accounts.models import ApiKey
from apps.core.client_address import client_address


class KeyRequest(HttpRequest):
    """What an operation is given."""

    auth: ApiKey


class KeyAuth(HttpBearer):
    def authenticate(self, request: HttpRequest, token: str) -> ApiKey | None:
        key = selectors.api_key_for(token.strip())
        if key is None:  # a live one is never refused for what others at its address try
            login_guard.begin_attempt(Subject("key", client_address(request)))
        return key


def key_of(request: HttpRequest) -> ApiKey | None:
    """The request's key, or None without a live one."""
    return cast(ApiKey | None, KeyAuth()(request))
