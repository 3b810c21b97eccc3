"""The OpenAPI document of the reward API, at /api/v1/rewards/openapi.json."""

from typing import Any

from touchstone_client import ESTIMATORS

from apps.rewards.serving.advantages import OPTIONS
from apps.rewards.serving.probes import PROBES, SUMMARIES
from apps.rewards.serving.requests import LONGEST_CRITERION, MOST_CRITERIA
from apps.rewards.serving.wire import WIRES
from workers.schema.jsonschemas import ITEM

Json = dict[str, Any]
JSON_TYPE, PROBLEM_TYPE = "application/json", "application/problem+json"
_REF = "#/components/schemas/"
_LABEL = {
    "anyOf": [
        {"type": "string", "pattern": r"^[^\x00-\x1f\x7f]{1,200}$"},
        {"type": "integer"},
        {"type": "null"},
    ]
}
_NUMBER: Json = {"type": "number"}
_COUNT: Json = {"type": "integer", "minimum": 0}
_REFUSALS = {
    "400": "the body is not JSON",
    "401": "no key, or one that is revoked or expired",
    "403": "the key does not have the scope `reward`",
    "404": "no such endpoint for this key",
    "408": "the body did not arrive in time",
    "409": "`version` is not served",
    "413": "the body is over a limit, has over 32 inputs with reasons, or one that is too long and may not be cut",
    "422": "an invalid value, named by `pointer`; or a judge cannot score the input",
    "429": "the queue is full, or a judge is rate-limited; see Retry-After",
    "502": "a verifier or judge of the endpoint gave an invalid reply; see Retry-After",
    "503": "switched off, not loaded yet, or a verifier or judge cannot be called; see Retry-After where there is one",
}


def document() -> Json:
    base = "/api/v1/rewards/{endpoint}"
    described = "What is deployed: version, spec, reward statistics, template fingerprint"
    paths: Json = {
        f"{base}/score": {"post": _operation("Rewards of inputs, in order", "ScoreRequest", "Scores")},
        f"{base}/compare": {
            "post": _operation(
                "Probability that the first of two inputs is better", "CompareRequest", "Comparison"
            )
        },
        f"{base}/rank": {
            "post": _operation("Order of several inputs, best first", "ScoreRequest", "Ranking")
        },
        f"{base}/critique": {
            "post": _operation("Rewards of inputs, with critiques by component", "ScoreRequest", "Critiques")
        },
        f"{base}/advantages": {
            "post": _operation("Advantages of groups of roll-outs", "AdvantagesRequest", "Advantages")
        },
        f"{base}/": {"get": _operation(described, None, "Deployment")},
    }
    for wire in WIRES:
        operation = _operation(wire.summary, None, None, query_key=True)
        operation["requestBody"] = _body({"type": "object", "required": list(wire.required)})
        paths[wire.path] = {method.lower(): operation for method in wire.methods}
    for path, handler in PROBES.items():
        paths[path] = {"get": _operation(SUMMARIES[handler], None, None, query_key=True)}
    for path, operations in paths.items():
        if "{endpoint}" in path:
            named = {
                "name": "endpoint",
                "in": "path",
                "required": True,
                "schema": {"type": "string", "minLength": 1},
            }
            for operation in operations.values():
                operation["parameters"] = [named, *operation.get("parameters", [])]
    return {
        "openapi": "3.1.0",
        "info": {"title": "Touchstone rewards", "version": "1"},
        "paths": paths,
        "security": [{"key": []}],
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer"},
                "query": {"type": "apiKey", "in": "query", "name": "key"},
            },
        },
    }


def _operation(summary: str, asks: str | None, answers: str | None, *, query_key: bool = False) -> Json:
    schema = {"$ref": _REF + answers} if answers else {}
    answered = {"description": "OK", "content": {JSON_TYPE: {"schema": schema}}}
    problem = {"schema": {"$ref": f"{_REF}Problem"}}
    operation: Json = {
        "summary": summary,
        "responses": {"200": answered}
        | {
            status: {"description": why, "content": {PROBLEM_TYPE: problem}}
            for status, why in _REFUSALS.items()
        },
    }
    if asks:
        operation["requestBody"] = _body({"$ref": _REF + asks})
    if query_key:
        operation["security"] = [{"key": []}, {"query": []}]
    return operation


def _body(schema: Json) -> Json:
    return {"required": True, "content": {JSON_TYPE: {"schema": schema}}}


def _object(required: Json, optional: Json | None = None, *, closed: bool = True) -> Json:
    return {
        "type": "object",
        "properties": required | (optional or {}),
        "required": list(required),
        "additionalProperties": not closed,
    }


def _list(items: Json) -> Json:
    return {"type": "array", "items": items}


def _reason() -> Json:
    text: Json = {"type": "string"}
    step = {"type": ["integer", "null"], "minimum": 0}
    word = {"kind": {"const": "word"}, "text": text, "step": step, "count": _COUNT, "by": _NUMBER}
    event = {"kind": {"const": "event"}, "name": text, "steps": _list(_COUNT), "by": _NUMBER}
    return {"oneOf": [_object(word), _object(event)]}


def _schemas() -> Json:
    tags = {"run": _LABEL, "policy_version": _LABEL, "version": {"type": ["integer", "null"]}}
    options = tags | {
        "steps": {"type": "boolean"},
        "uncertainty": {"type": "boolean"},
        "reasons": {"type": "boolean"},
        "criteria": {
            "anyOf": [
                {"type": "null"},
                _list({"type": "string", "minLength": 1, "maxLength": LONGEST_CRITERION})
                | {"maxItems": MOST_CRITERIA},
            ]
        },
    }
    item = {"$ref": f"{_REF}Item"}
    result = {"$ref": f"{_REF}Result"}
    head = {"endpoint": {"type": "string"}, "version": {"type": "integer", "minimum": 1}}
    usage = {"usage": {"$ref": f"{_REF}Usage"}}
    scores = head | {"results": _list(result)} | usage
    result_fields: Json = {
        "reward": _NUMBER,
        "raw": _NUMBER,
        "baseline": _NUMBER,
        "std": {"type": ["number", "null"], "minimum": 0},
        "steps": {"anyOf": [{"type": "null"}, _list(_object({"agent_step": _COUNT, "reward": _NUMBER}))]},
        "criteria": {"anyOf": [{"type": "null"}, {"type": "object", "additionalProperties": _NUMBER}]},
        "components": {"type": "object", "additionalProperties": _NUMBER},
        "flags": _list({"type": "string"}),
        "tokens": _COUNT,
        "cached_tokens": _COUNT,
    }
    result_options: Json = {
        "task_tokens": _COUNT,
        "reasons": {"type": "object", "additionalProperties": _list({"$ref": f"{_REF}Reason"})},
    }
    scored = _object(
        {"reward": _NUMBER},
        {
            "steps": _list(_NUMBER),
            "states": _list({"type": "string"}),
            "stratum": {"type": ["string", "number", "null"]},
            "flags": _list({"type": "string"}),
        },
    )
    text: Json = {"type": "string"}
    judge = _object(
        {
            "component": text,
            "judge": text,
            "criterion": {"type": ["string", "null"]},
            "weight": _NUMBER,
        }
    )
    option = {"anyOf": [_NUMBER, {"type": "boolean"}]}
    advantage = _object(
        {"advantage": _NUMBER, "steps": _list(_NUMBER), "reward": _NUMBER}, {"flags": _list(text)}
    )
    return {
        "Item": ITEM,
        "ScoreRequest": _object({"inputs": _list(item)}, options),
        "CompareRequest": _object({"inputs": _list(item) | {"minItems": 2, "maxItems": 2}}, options),
        "AdvantagesRequest": _object(
            {"groups": _list(_list({"anyOf": [scored, {"type": "object"}]}))},
            tags
            | {
                "estimator": {"enum": list(ESTIMATORS)},
                "options": {"type": "object", "properties": dict.fromkeys(OPTIONS, option)},
            },
        ),
        "Result": _object(result_fields, result_options),
        "Reason": _reason(),
        "Critiqued": _object(
            result_fields | {"critiques": {"type": "object", "additionalProperties": {"type": "string"}}},
            result_options,
        ),
        "Usage": _object(
            {
                "inputs": _COUNT,
                "tokens": _COUNT,
                "cached_tokens": _COUNT,
                "cut_tokens": _COUNT,
                "milliseconds": {"type": "number", "minimum": 0},
            }
        ),
        "Scores": _object(scores),
        "Critiques": _object(head | {"results": _list({"$ref": f"{_REF}Critiqued"})} | usage),
        "Comparison": _object(
            scores | {"probability": {"type": "number", "minimum": 0, "maximum": 1}, "margin": _NUMBER}
        ),
        "Ranking": _object(scores | {"order": _list(_COUNT), "rewards": _list(_NUMBER)}),
        "Advantages": _object(
            head
            | {
                "estimator": {"enum": list(ESTIMATORS)},
                "groups": _list(_list(advantage)),
                "usage": {"$ref": f"{_REF}Usage"},
            },
            {"warnings": _list(text)},
        ),
        "Deployment": _object(
            {
                "endpoint": {"type": "string"},
                "project": {"type": "string"},
                "version": {"type": ["integer", "null"]},
                "wanted": {"type": ["integer", "null"]},
                "switched_off": {"type": "boolean"},
            },
            {"judges": {"anyOf": [{"type": "null"}, _list(judge)]}},
            closed=False,
        ),
        "Problem": _object(
            {
                "type": {"type": "string"},
                "title": {"type": "string"},
                "status": {"type": "integer"},
                "detail": {"type": "string"},
            },
            {"pointer": {"type": "string"}},
            closed=False,
        ),
    }
