"""The API's documentation page, drawn from the OpenAPI document, without a script and without a CDN."""

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from apps.config.openapi import who_may_call

_INDENT = "  "
_ANYTHING = "any JSON"


@dataclass(frozen=True)
class Operation:
    id: str
    method: str
    path: str
    title: str
    about: str
    parameters: list[dict[str, Any]]
    scopes: str
    body: str
    answer: str
    curl: str


def render_docs(request: HttpRequest, schema: dict[str, Any]) -> HttpResponse:
    groups: dict[str, list[Operation]] = defaultdict(list)
    for path, methods in schema["paths"].items():
        for method, spec in methods.items():
            groups[(spec.get("tags") or ["other"])[0]].append(_operation(path, method, spec, schema))
    context = {"groups": list(groups.items()), "base": settings.PUBLIC_URL, "openapi": schema["info"]}
    return render(request, "core/api_docs.html", context)


def _operation(path: str, method: str, spec: dict[str, Any], schema: dict[str, Any]) -> Operation:
    definitions = schema.get("components", {}).get("schemas", {})
    answers = [part for status, part in spec["responses"].items() if status.startswith("2")]
    contents = [_content(part) for part in (spec.get("requestBody"), *answers[:1])]
    body, answer = (shape(content, definitions) if content else "" for content in contents)
    curl = f'curl -H "Authorization: Bearer $KEY" {settings.PUBLIC_URL}{path}'
    if method != "get":
        curl = curl.replace("curl ", f"curl -X {method.upper()} ", 1)
    if body:
        curl += " \\\n  -H 'Content-Type: application/json' -d @body.json"
    parameters = [
        {**parameter, "type": shape(parameter.get("schema", {}), definitions)}
        for parameter in spec.get("parameters", [])
    ]
    title = spec.get("summary") or f"{method.upper()} {path}"
    identifier = spec.get("operationId", f"{method}{path}")
    about, scopes = spec.get("description", ""), who_may_call(spec)
    return Operation(identifier, method.upper(), path, title, about, parameters, scopes, body, answer, curl)


def _content(part: dict[str, Any] | None) -> dict[str, Any]:
    for content in (part or {}).get("content", {}).values():
        found: dict[str, Any] = content.get("schema", {})
        return found
    return {}


def shape(schema: dict[str, Any] | bool, definitions: dict[str, Any], depth: int = 0) -> str:
    """A JSON Schema as people write shapes: {"name": string, "limit"?: integer = 100}."""
    if isinstance(schema, bool):
        return _ANYTHING
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return shape(definitions[name], definitions, depth) if depth < 4 else name
    options = schema.get("anyOf") or schema.get("oneOf")
    if options and "properties" not in schema:  # else they say which of these are required
        return " | ".join(dict.fromkeys(shape(option, definitions, depth) for option in options))
    if "enum" in schema:
        return " | ".join(map(json.dumps, schema["enum"]))
    if "const" in schema:
        return f'"{schema["const"]}"'
    if schema.get("type") == "array":
        return f"[{shape(schema.get('items', {}), definitions, depth)}, …]"
    if properties := schema.get("properties"):
        return _object(properties, set(schema.get("required", [])), definitions, depth)
    named = schema.get("type", _ANYTHING)
    return " | ".join(named) if isinstance(named, list) else str(named)


def _object(properties: dict[str, Any], required: set[str], definitions: dict[str, Any], depth: int) -> str:
    inside = _INDENT * (depth + 1)
    lines = [
        f'{inside}"{name}"{"" if name in required else "?"}: {shape(value, definitions, depth + 1)}'
        for name, value in properties.items()
    ]
    return "{\n" + ",\n".join(lines) + "\n" + _INDENT * depth + "}"
