"""What the OpenAPI document says is what the service does: cases made from it by schemathesis."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from jsonschema import Draft202012Validator

from apps.rewards.serving.app import application
from apps.rewards.serving.openapi import document

# What they are called there; authorisation is looked at by tests of its own.
LOOKED_AT = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
)


def test_every_path_is_described() -> None:
    described = set(document()["paths"])
    served = {route.path for route in application.app.routes}  # type: ignore[attr-defined]
    quiet = {
        "/healthz",
        "/readyz",
        "/metrics",
        "/internal/dry-run",
        "/internal/servers",
        "/internal/embed",
        "/api/v1/rewards/openapi.json",
    }
    assert served - quiet == described


def test_its_schemas_are_schemas(http) -> None:
    shown = http.get("/api/v1/rewards/openapi.json").json()
    assert shown["openapi"] == "3.1.0"
    for schema in shown["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


@pytest.mark.slow
def test_cases_of_schemathesis(service, endpoint, http) -> None:
    import schemathesis  # some seconds
    from schemathesis import GenerationMode
    from schemathesis.checks import CHECKS

    schema = schemathesis.openapi.from_dict(document())
    checks = [CHECKS.get_one(name) for name in LOOKED_AT]
    headers = {"Authorization": http.headers["Authorization"]}
    asked: set[str] = set()
    for found in schema.get_all_operations():
        operation = found.ok()
        raw = document()["paths"][operation.path][operation.method]
        asks = "requestBody" in raw or any(each["in"] == "query" for each in raw["parameters"])
        wrong = [GenerationMode.NEGATIVE] if asks else []  # any text may name an endpoint
        for mode in (GenerationMode.POSITIVE, *wrong):

            @settings(max_examples=3, deadline=None, database=None, suppress_health_check=list(HealthCheck))
            @given(case=operation.as_strategy(generation_mode=mode))
            def hold(case: Any) -> None:
                if "endpoint" in case.path_parameters:
                    case.path_parameters["endpoint"] = endpoint
                response = case.call(base_url=service.url, headers=headers, timeout=30)
                case.validate_response(response, checks=checks)

            hold()
        asked.add(operation.path)
    assert asked == set(document()["paths"])
