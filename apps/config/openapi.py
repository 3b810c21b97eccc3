"""The OpenAPI document of the installation: ninja's of the JSON API, completed, with what other processes answer."""

from typing import Any

from ninja.openapi.schema import OpenAPISchema

from apps.core.http.api_scopes import PERSON, SCOPES
from apps.core.http.document_types import described_components, with_references
from apps.core.http.problem_schema import PROBLEM, problem_response
from apps.rewards.serving.openapi import (
    KEY,
    SECURITY_SCHEMES,
    TAGS,
    reward_components,
    reward_paths,
)
from apps.trajectories.trace_schemas import TRACE_PATHS, trace_components

Json = dict[str, Any]
ANY_SCOPE = "any key"
MEMBERS_KEY = ", a member's key"
# Answered by every operation; `default` is what else may go wrong: 409 where something is in the way, 413 for a body
# over a limit, 503 while the database is away.
REFUSALS = {
    401: "no key, or one that is unknown, revoked or expired",
    403: "the key does not have the scope, or may not be used from this address",
    404: "there is no such thing for this key",
    422: "an invalid value, named by `pointer` or `parameter`",
    429: "the key was used too often; see Retry-After",
}
OTHERWISE = "another error"
_STATUS = {"type": "object", "properties": {"status": {"type": "string"}}, "required": ["status"]}


class StrictSchema(OpenAPISchema):
    """Where two classes of one name differ, ninja keeps the last, and the document says something wrong."""

    def add_schema_definitions(self, definitions: Json) -> None:
        self.schemas = _merged([self.schemas, definitions])


def complete_document(document: Json) -> Json:
    """ninja's document with scopes, problems, hand-written components, and the paths of other processes."""
    document = with_references(document)
    for operations in document["paths"].values():
        for operation in operations.values():
            _complete_operation(operation)
    document["paths"] |= reward_paths() | TRACE_PATHS | _probes()
    components = [document["components"]["schemas"], described_components(), reward_components()]
    components += [trace_components(), {"Problem": PROBLEM, "ServiceStatus": _STATUS}]
    document["components"] = {"schemas": _merged(components), "securitySchemes": SECURITY_SCHEMES}
    used = {tag: None for ops in document["paths"].values() for each in ops.values() for tag in each["tags"]}
    named = {tag["name"]: tag for tag in TAGS}
    document["tags"] = [named.get(name, {"name": name}) for name in used]
    return document


def _complete_operation(operation: Json) -> None:
    scopes = operation.pop(SCOPES, [])
    operation["security"] = [{KEY: [scope]} for scope in scopes] or [{KEY: []}]
    refusals = {str(status): problem_response(why) for status, why in REFUSALS.items()}
    responses = {str(status): answer for status, answer in operation["responses"].items()}
    operation["responses"] = refusals | responses | {"default": problem_response(OTHERWISE)}
    for parameter in operation.get("parameters", []):
        parameter["schema"].pop("description", None)  # ninja has put it next to the schema


def _probes() -> Json:
    """Of the web process; the `rewards` process has the same at its own port."""
    ready = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/ServiceStatus"}}}}
    alive = {"description": "it answers", "content": {"text/plain": {"schema": {"type": "string"}}}}
    return {
        "/healthz": {"get": _probe("healthz", "Whether the process answers", {"200": alive})},
        "/readyz": {
            "get": _probe(
                "readyz",
                "Whether pages can be served",
                {"200": {"description": "yes"} | ready, "503": {"description": "not yet"} | ready},
            )
        },
    }


def _probe(name: str, summary: str, responses: Json) -> Json:
    return {
        "operationId": name,
        "summary": summary,
        "tags": ["health"],
        "parameters": [],
        "security": [],
        "responses": responses,
    }


def _merged(components: list[dict[str, Json]]) -> dict[str, Json]:
    """Raises ValueError where one name has two meanings: a reader of the document would see the last one."""
    merged: dict[str, Json] = {}
    for found in components:
        for name, schema in found.items():
            if merged.setdefault(name, schema) != schema:
                raise ValueError(f"two schemas are called {name}; a component has one meaning")
    return dict(sorted(merged.items()))


def scopes_of(operation: Json) -> str:
    """Of a completed operation, in words; empty where no key is needed."""
    found = [scope for each in operation["security"] for scope in each.get(KEY, [])]
    return " or ".join(found) or (ANY_SCOPE if operation["security"] else "")


def who_may_call(operation: Json) -> str:
    """`scopes_of`, and whether the key must be a member's."""
    return scopes_of(operation) + (MEMBERS_KEY if operation.get(PERSON) else "")


def scopes_table(document: Json) -> str:
    """The tables of docs/api.md: every call with its scope, under headings of what the calls are about."""
    rows: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            scopes = scopes_of(operation)
            named = (
                scopes
                if scopes in ("", ANY_SCOPE)
                else " or ".join(f"`{each}`" for each in scopes.split(" or "))
            )
            named += MEMBERS_KEY if operation.get(PERSON) else ""
            call = f"`{method.upper()} {path.removeprefix('/api/v1')}`"
            row = f"| {call} | {operation['summary']} | {named or 'none, no key'} |"
            rows.setdefault(operation["tags"][0], []).append(row)
    head = "\n\n| call | does | scope |\n|---|---|---|\n"
    return "\n".join(f"### Calls: {tag}{head}" + "\n".join(lines) + "\n" for tag, lines in rows.items())
