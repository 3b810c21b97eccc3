"""The reward API in OpenAPI documents: its own at /api/v1/rewards/openapi.json, and the one of the whole installation,
which the web process makes. So nothing here imports what scoring needs."""

import json
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from apps.core.http.problem_schema import problem_response
from apps.rewards import routes
from apps.rewards.item_schemas import Json, list_schema, object_schema
from apps.rewards.serving.score_schemas import REF, score_schemas
from apps.rewards.serving.wire_schemas import WIRE_SCHEMAS
from workers.schema.conditions import CONDITIONS

JSON_TYPE = "application/json"
KEY, QUERY_KEY = "key", "query"  # names of security schemes
SECURITY_SCHEMES: Json = {
    KEY: {"type": "http", "scheme": "bearer"},
    QUERY_KEY: {"type": "apiKey", "in": "query", "name": "key", "description": "for clients without headers"},
}
TAGS: list[Json] = [
    {"name": "rewards", "description": "Answered by the `rewards` process."},
    {"name": "trainers", "description": "Protocols of trainers; unknown keys and parameters are ignored."},
]
_BASE = "/api/v1/rewards/{endpoint}"
_REFUSALS = {
    "400": "the body is not JSON",
    "401": "no key, or one that is revoked or expired",
    "403": "the key does not have the scope `reward`",
    "404": "no such endpoint for this key",
    "408": "the body did not arrive in time",
    "409": "`version` is not served",
    "413": "the body is over a limit, has over 32 inputs with reasons, or one that is too long and may not be cut",
    "422": "an invalid value, named by `pointer` or `parameter`; or a judge cannot score the input",
    "429": "the queue is full, or a judge is rate-limited; see Retry-After",
    "502": "a verifier or judge of the endpoint gave an invalid reply; see Retry-After",
    "503": "switched off, not loaded yet, or a verifier or judge cannot be called; see Retry-After where there is one",
}
_CALLS = (
    ("score", "Rewards of inputs, in order", "ScoreRequest", "Scores"),
    ("compare", "Probability that the first of two inputs is better", "CompareRequest", "Comparison"),
    ("rank", "Order of several inputs, best first", "ScoreRequest", "Ranking"),
    ("critique", "Rewards of inputs, with critiques by component", "ScoreRequest", "Critiques"),
    ("advantages", "Advantages of groups of roll-outs", "AdvantagesRequest", "Advantages"),
    ("guard", "Whether an agent may do what it proposes", "GuardRequest", "GuardReply"),
)
_PROBES = {
    "health": ("Whether the service is ready", "Health"),
    "v1/models": ("The endpoints of the key's project", "ModelList"),
    "info": ("An endpoint, or the endpoints of the key's project", "ServerInfo"),
}
_TEXT: Json = {"type": "string"}


@cache
def document_text() -> bytes:
    """The document as it is sent: made once, since anyone may ask for it."""
    return json.dumps(document()).encode()


def document() -> Json:
    """Of the reward service alone."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Touchstone rewards", "version": "1"},
        "paths": reward_paths(),
        "tags": TAGS,
        "components": {"schemas": reward_components(), "securitySchemes": SECURITY_SCHEMES},
    }


def reward_paths() -> Json:
    """Every public path of the service but that of its document."""
    paths: Json = {}
    for call, summary, asked, answered in _CALLS:
        paths[f"{_BASE}/{call}"] = {"post": _operation(call, summary, _ref(asked), _ref(answered))}
    described = "What is deployed: version, spec, reward statistics, template fingerprint"
    paths[f"{_BASE}/"] = {"get": _operation("get_deployment", described, None, _ref("Deployment"))}
    paths[_BASE] = {"get": _operation("get_deployment_without_slash", described, None, _ref("Deployment"))}
    schemas, _ = _wire_schemas()
    for route in routes.COMPAT:
        wire = WIRE_SCHEMAS[route.path]
        request, answer = (schemas[route.path, part] for part in ("request", "reply"))
        paths[route.path] = {
            method.lower(): _operation(
                wire.name if method == "POST" else f"{wire.name}_{method.lower()}",
                wire.summary,
                request,
                answer,
                is_compat=True,
            )
            for method in route.methods
        }
    for route in routes.PROBES:
        paths[route.path] = {"get": _probe(route.path)}
    return {path: _with_endpoint(path, operations) for path, operations in paths.items()}


def reward_components() -> dict[str, Json]:
    _, wires = _wire_schemas()
    label = object_schema(
        {},
        {
            "id2label": {"type": "object", "additionalProperties": _TEXT},
            "label2id": {"type": "object", "additionalProperties": {"type": "integer"}},
        },
    )
    info = object_schema(
        {
            "model_id": _TEXT,
            "model_sha": {"type": ["string", "null"]},
            "model_type": object_schema({"classifier": label}),
            "version": _TEXT,
        }
    )
    model = object_schema({"id": _TEXT, "object": _TEXT, "created": {"type": "integer"}, "owned_by": _TEXT})
    return score_schemas() | wires | {
        "Health": object_schema({}) | {"description": "an empty object"},
        "ModelList": object_schema({"object": _TEXT, "data": list_schema(model)}),
        "EndpointInfo": info,
        "ServerInfo": {"anyOf": [_ref("EndpointInfo"), object_schema({"models": list_schema(_ref("EndpointInfo"))})]},
    }  # fmt: skip


@cache
def _wire_schemas() -> tuple[dict[tuple[str, str], Json], dict[str, Json]]:
    """The schema of each request and reply by path, and the components that they name."""
    adapters = [
        ((path, part), "validation" if part == "request" else "serialization", TypeAdapter(type_))
        for path, wire in WIRE_SCHEMAS.items()
        for part, type_ in (("request", wire.request), ("reply", wire.reply))
    ]
    found, definitions = TypeAdapter.json_schemas(adapters, ref_template=REF + "{model}")  # type: ignore[arg-type]
    schemas = {key: schema for (key, _), schema in found.items()}
    return schemas, definitions["$defs"]


def _ref(name: str) -> Json:
    return {"$ref": REF + name}


def _operation(
    name: str, summary: str, request: Json | None, answer: Json, *, is_compat: bool = False
) -> Json:
    answered = {"description": "OK", "content": {JSON_TYPE: {"schema": answer}}}
    refusals = {status: problem_response(why) for status, why in _REFUSALS.items()}
    operation: Json = {
        "operationId": name,
        "summary": summary,
        "tags": ["trainers" if is_compat else "rewards"],
        "parameters": [_VERSION, *(_CONDITIONS if is_compat else [])],
        "responses": {"200": answered, **refusals},
        "security": [{KEY: ["reward"]}, *([{QUERY_KEY: ["reward"]}] if is_compat else [])],
    }
    if request is not None:
        operation["requestBody"] = {"required": True, "content": {JSON_TYPE: {"schema": request}}}
    elif not is_compat:
        operation["parameters"] = []
    return operation


_VERSION: Json = {
    "name": "version",
    "in": "query",
    "required": False,
    "schema": {"type": "integer", "minimum": 0},
    "description": "the endpoint's version that must answer, where neither body nor headers name one",
}

_CONDITIONS: list[Json] = [
    {
        "name": name,
        "in": "query",
        "required": False,
        "schema": _TEXT,
        "description": f"for models that read a {name}: that of inputs whose request has none",
    }
    for name in CONDITIONS
]


def _probe(path: str) -> Json:
    """Of the servers whose place the service takes; what trainers ask before they send anything."""
    probe = next(name for name in _PROBES if path.endswith(f"/{name}"))
    server = path.removeprefix("/compat").removesuffix(probe).strip("/").replace("/{endpoint}", "_endpoint")
    summary, answer = _PROBES[probe]
    name = "_".join(part for part in (server or "compat", probe.replace("/", "_")) if part)
    operation = _operation(name, summary, None, _ref(answer), is_compat=True)
    operation["parameters"] = []
    if probe == "health":
        operation["security"] = []
        starting = {"description": "it starts", "content": {JSON_TYPE: {"schema": _ref("Health")}}}
        operation["responses"] = {"200": operation["responses"]["200"], "503": starting}
    elif probe == "info" and "{endpoint}" not in path:
        model = {"name": "model", "in": "query", "required": False, "schema": _TEXT}
        operation["parameters"] = [model | {"description": "an endpoint; by default all are listed"}]
    return operation


def _with_endpoint(path: str, operations: Json) -> Json:
    if "{endpoint}" not in path:
        return operations
    schema: Any = {"type": "string", "minLength": 1}
    named = {"name": "endpoint", "in": "path", "required": True, "schema": schema}
    return {
        method: operation | {"parameters": [named, *operation["parameters"]]}
        for method, operation in operations.items()
    }
