"""Fields that several formats share."""

from typing import Any

from workers.errors import InvalidRecord
from workers.schema import Task
from workers.schema.decode import json_type_name, optional_str, require_object


def read_task(value: Any, *, pointer: str = "/task") -> Task:
    """A task as its id alone, or as an object; without an id one is made from the content."""
    if value is None:
        return Task(id="")
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return Task(id=str(value))
    value = require_object(value, pointer=pointer)
    identity = value.get("id")
    if isinstance(identity, bool) or not isinstance(identity, str | int | None):
        raise InvalidRecord(f"expected a string, got {json_type_name(identity)}.", pointer=f"{pointer}/id")
    metadata = dict(require_object(value.get("metadata") or {}, pointer=f"{pointer}/metadata"))
    known = ("id", "instruction", "reference", "metadata")
    return Task(
        id="" if identity is None else str(identity),
        instruction=optional_str(value.get("instruction"), pointer=f"{pointer}/instruction") or "",
        reference=optional_str(value.get("reference"), pointer=f"{pointer}/reference"),
        metadata=metadata | {key: item for key, item in value.items() if key not in known},
    )


def read_agent(value: Any, *, pointer: str = "/agent") -> tuple[str, str]:
    """Name and version of an agent given as a name or as an object."""
    if value is None or isinstance(value, str):
        return value or "", ""
    value = require_object(value, pointer=pointer)
    name = optional_str(value.get("name"), pointer=f"{pointer}/name")
    version = value.get("version")
    if isinstance(version, int | float) and not isinstance(version, bool):
        version = str(version)
    return name or "", optional_str(version, pointer=f"{pointer}/version") or ""


def read_success(value: Any, *, pointer: str = "/success") -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise InvalidRecord(f"success is true or false, not {json_type_name(value)}.", pointer=pointer)
    return value


def read_id(value: Any, *, pointer: str = "/id") -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return optional_str(value, pointer=pointer)
