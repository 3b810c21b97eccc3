"""Below /api nothing is answered by a page: whoever calls it parses JSON."""

import pytest
from django.test import Client


@pytest.mark.parametrize("method", ["get", "post", "delete"])
@pytest.mark.parametrize("path", ["/api/v1/nothing", "/api/v1/projects/desk/nothing", "/api/v2/projects"])
def test_a_call_that_does_not_exist_is_a_problem(method: str, path: str) -> None:
    # A browser's protection against forged forms must not answer a POST before we do.
    answer = getattr(Client(enforce_csrf_checks=True), method)(path)

    assert answer.status_code == 404
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["status"] == 404
    assert path in answer.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("put", "/api/v1/runs/1", "GET"), ("get", "/api/v1/projects/desk/items", "POST")],
)
def test_a_method_that_a_call_does_not_take_is_a_problem_that_says_which_it_takes(
    method: str, path: str, allowed: str
) -> None:
    answer = getattr(Client(enforce_csrf_checks=True), method)(path)

    assert answer.status_code == 405
    assert answer["Content-Type"] == "application/problem+json"
    assert answer["Allow"] == allowed
    assert answer.json()["detail"] == f"{path} does not take {method.upper()}; it takes {allowed}."


def test_a_page_that_does_not_exist_is_a_page() -> None:
    answer = Client().get("/nothing")

    assert answer.status_code == 404
    assert answer["Content-Type"].startswith("text/html")
    assert b"There is nothing here" in answer.content
