"""Regular expressions that people write. RE2: its time grows with the text, whatever the expression."""

from functools import lru_cache
from typing import Any

import re2

from workers.errors import InvalidRecord


@lru_cache(maxsize=256)
def compiled(expression: str) -> Any:
    """Raises InvalidRecord, without a pointer, for what RE2 does not take."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(expression, options)
    except re2.error as error:
        said = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
        raise InvalidRecord(
            f"{expression!r} is no regular expression of RE2 (no look-around, no back-references): {said}."
        ) from None
