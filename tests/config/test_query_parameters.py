"""Query parameters that a call does not have are refused, by every operation."""

import pytest

from apps.accounts.models import Project
from apps.core.http.parameter_names import nearest_name, unknown_parameter_message
from apps.core.http.query_parameters import query_parameters
from tests.api_calls import ApiCaller
from tests.config.routes import api_operations


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("curser", "cursor"),
        ("LIMIT", "limit"),
        ("limi", "limit"),
        ("keepgood", "keep_good"),
        ("policy", None),
        ("x" * 100_000, None),
        ("", None),
    ],
)
def test_the_nearest_name(name: str, nearest: str | None) -> None:
    assert nearest_name(name, ["cursor", "limit", "keep_good"]) == nearest


def test_a_call_without_parameters() -> None:
    assert nearest_name("limit", []) is None
    assert "has none" in unknown_parameter_message("limit", [])


def test_an_unknown_parameter_is_named_with_the_known_ones(project: Project) -> None:
    call = ApiCaller(project)
    refused = call("GET", "/trajectories", agnet="m")
    assert call.status == 422
    assert refused["parameter"] == "agnet"
    assert refused["errors"] == [{"detail": refused["detail"], "parameter": "agnet"}]
    assert "this call has cursor, limit, text, id, task, agent, " in refused["detail"] and refused[
        "detail"
    ].endswith("Did you mean agent?")


def test_nothing_is_done_by_a_call_that_is_refused(project: Project) -> None:
    call = ApiCaller(project)
    call("PATCH", "", {"name": "Other"}, dry_run="1")
    assert call.status == 422
    project.refresh_from_db()
    assert project.name == "Desk"


def test_every_operation_refuses_them(project: Project) -> None:
    """The known ones are those of the OpenAPI document: what a schema holds together would be seen here."""
    from apps.config.api import api

    paths = api.get_openapi_schema()["paths"]
    for (method, path), operation in api_operations().items():
        described = paths.get("/" + path.replace("<int:", "<").replace("<path:", "<").translate(
            str.maketrans("<>", "{}")
        ))  # fmt: skip
        if described is None:
            continue  # an older path, which is not in the document
        parameters = described[method.lower()]["parameters"]
        in_query = [each["name"] for each in parameters if each["in"] == "query"]
        assert query_parameters(operation) == in_query, path
