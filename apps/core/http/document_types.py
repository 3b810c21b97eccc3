"""Types of JSON documents whose schema is written by hand, each a named component of the OpenAPI document:

ItemDocument = Annotated[dict[str, Any], described("Item", ITEM)]
"""

from enum import Enum
from typing import Any, get_args

import msgspec
from pydantic import WithJsonSchema

from workers.schema.jsonschemas import in_one_order

JsonSchema = dict[str, Any]
COMPONENT = "x-touchstone-component"
_described: dict[str, JsonSchema] = {}


def described(name: str, schema: JsonSchema) -> WithJsonSchema:
    """Register `schema` as the component `name`. Raises ValueError where the name means something else already."""
    if _described.setdefault(name, schema) != schema:
        raise ValueError(
            f"two schemas are called {name}; a component of the OpenAPI document has one meaning"
        )
    return WithJsonSchema({COMPONENT: name})


def choices(enumeration: type[Enum]) -> WithJsonSchema:
    """The values in place: components have the names of classes, and many enumerations are called State."""
    return WithJsonSchema({"type": "string", "enum": [member.value for member in enumeration]})


def described_struct(type_: Any) -> WithJsonSchema:
    """The same of a type that msgspec reads, with the types within it."""
    for name, component in described_struct_schemas(type_).items():
        described(name, component)
    return WithJsonSchema({COMPONENT: type_.__name__})


def described_struct_schemas(type_: Any) -> dict[str, JsonSchema]:
    """The component of such a type, and those of the types within it."""
    _, components = msgspec.json.schema_components([type_], ref_template="#/components/schemas/{name}")
    return {name: in_one_order(component) for name, component in components.items()}


def described_components() -> dict[str, JsonSchema]:
    return dict(_described)


def reference_to(document_type: Any) -> JsonSchema:
    """The schema of a described type, for a part of a document that no model makes."""
    _, marker = get_args(document_type)
    schema: JsonSchema = marker.json_schema
    return schema


def with_references(value: Any) -> Any:
    """The document with a `$ref` wherever a described type stands."""
    if isinstance(value, dict):
        name = value.get(COMPONENT)
        rest = {key: with_references(inner) for key, inner in value.items() if key != COMPONENT}
        return rest if name is None else {"$ref": f"#/components/schemas/{name}"} | rest
    return [with_references(inner) for inner in value] if isinstance(value, list) else value
