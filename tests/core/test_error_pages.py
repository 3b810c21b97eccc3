"""The page of a fault of ours, which reads nothing from the database."""

import pytest
from django.test import RequestFactory

from apps.core.http.middleware import server_error


@pytest.mark.parametrize(
    ("method", "path", "is_there", "is_missing"),
    [
        ("GET", "/p/desk/runs/?a=1", ['href="/p/desk/"', 'href="/p/desk/runs/?a=1"', "Home of desk"], []),
        ("POST", "/p/desk/runs/", ['href="/p/desk/"', "Home"], ["Try again"]),
        ("GET", "/account/", ["Try again"], ["/p/", "Home of"]),
    ],
)
def test_it_leads_back(method: str, path: str, is_there: list[str], is_missing: list[str]) -> None:
    page = server_error(RequestFactory().generic(method, path)).content.decode()
    assert 'class="brand" href="/"' in page and "Something went wrong on our side" in page
    assert all(text in page for text in is_there)
    assert not any(text in page for text in is_missing)
