"""Bearer keys for the JSON API: `request.auth` is the ApiKey."""

from typing import cast

from django.http import HttpRequest
from ninja.security import HttpBearer

from apps.accounts import selectors
from apps.accounts.models import ApiKey


class KeyRequest(HttpRequest):
    """What an operation is given."""

    auth: ApiKey


class KeyAuth(HttpBearer):
    def authenticate(self, request: HttpRequest, token: str) -> ApiKey | None:
        return selectors.api_key_for(token.strip())


def key_of(request: HttpRequest) -> ApiKey | None:
    """The request's key, or None without a live one."""
    return cast(ApiKey | None, KeyAuth()(request))
