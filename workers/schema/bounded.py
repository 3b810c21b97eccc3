"""JSON of servers that may answer anything: what a few bytes become in memory is bounded before they are parsed."""

import json
from typing import Any

from workers.errors import InvalidRecord
from workers.schema.shape import BODY_LIMITS, check_json_shape


def loads(text: bytes | str) -> Any:
    """The document. Raises ValueError where it is none, or larger or deeper than `BODY_LIMITS`."""
    try:
        check_json_shape(text, BODY_LIMITS)
        return json.loads(text)
    except InvalidRecord as error:
        raise ValueError(error.message) from None
    except RecursionError:
        raise ValueError("nested too deeply to be read") from None
