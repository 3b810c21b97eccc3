"""For tests that ask for every page: what they do not look at is not made again for each."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import client

from apps.core.http import middleware


@pytest.fixture(scope="module", autouse=True)
def no_copies_of_contexts() -> Iterator[None]:
    """Django's test client copies the context of each template, for `response.context`, which no test here reads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "store_rendered_templates", lambda *_, **__: None)
        yield


@pytest.fixture(scope="module")
def brief_error_pages() -> Iterator[None]:
    """An error page has the bar of the whole installation, and two of five answers are one. It is made in full for each
    person, project, status and form of request once; after that its words are."""
    whole = middleware.error_page
    seen = set()

    def brief(request: HttpRequest, *, status: int, message: str, **named: Any) -> HttpResponse:
        membership = getattr(request, "membership", None)
        user = getattr(request, "user", None)
        made = (
            getattr(user, "pk", None),
            membership and (membership.project_id, membership.role),
            status,
            bool(getattr(request, "htmx", False)),
            tuple(sorted(named)),
        )
        if made not in seen:
            seen.add(made)
            return whole(request, status=status, message=message, **named)
        return HttpResponse(f"{message} {named}", status=status)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(middleware, "error_page", brief)
        yield
