"""A JSON column that gives back what it was given."""

import json
from typing import Any

import msgspec
from django.db import models
from psycopg.types.json import Json

from workers.errors import InvalidRecord

_encode = msgspec.json.Encoder().encode
_check = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


class OrderedJSONField(models.JSONField):
    """`json` rather than `jsonb`: the order of keys and the writing of numbers are content a model was shown.

    jsonb sorts the keys of a tool call's arguments, so that the stored trajectory would render to other tokens than
    the messages it came from. It cannot be queried into, which nothing does.
    """

    def db_type(self, connection: Any) -> str:
        return "json"

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        return None if value is None else Json(value, dumps=encode_json)

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        return value  # psycopg has decoded it


def encode_json(value: Any) -> str:
    """Raises InvalidRecord for NaN and infinities, which are not JSON."""
    return json_bytes(value).decode()


def json_bytes(value: Any) -> bytes:
    """As encode_json, in UTF-8."""
    try:
        encoded = _encode(value)
        if b"null" in encoded:  # which may have been a NaN
            _check(msgspec.to_builtins(value))
    except ValueError:
        raise InvalidRecord("a number is not finite (NaN, Infinity, or too large); leave it out.") from None
    return encoded
